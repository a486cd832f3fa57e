//===- encode.h - Python's objects as values --------------------*- C++ -*-===//
#ifndef SHEAF_PYTHON_ENCODE_H
#define SHEAF_PYTHON_ENCODE_H

#include "python/native/model.h"
#include "python/native/scalars.h"

#include "runtime/api/values.h"

#include <unordered_map>
#include <vector>

namespace sheaf::python {

/// Walks objects, however deep, with a stack of its own, and writes the slots of values into a
/// heap. Objects are held while they are read, as the code of others among them may let them go.
class Encoder {
public:
  Encoder(Model &model, io::SlotHeap &heap) : model_(model), heap_(heap) {}
  ~Encoder();
  Encoder(const Encoder &) = delete;

  /// Whose value comes next: errors begin with its name.
  void begin(const char *argument, size_t instance) {
    argument_ = argument;
    instance_ = instance;
    nodes_ = 0;
    if (sharing_)
      forget();
  }
  /// Throws nb::python_error, which says where in the value something is wrong.
  void encode(PyObject *object, uint32_t type, rt::Slot *to);
  /// Raises what is wrong with what stands where this is now.
  [[noreturn]] void refuse(const Refusal &refusal) const;

private:
  /// A value of which a part is read next.
  struct Frame {
    PyObject *object; ///< held
    const Reading *reading;
    const Member *next, *end; ///< of data and tuples
    rt::Slot *to;
    Py_ssize_t index, size; ///< of lists, and how far tuples are
    int64_t width;          ///< of an element of a list
    uint32_t type;
    enum Kind : uint8_t { Data, Tuple, List } kind;
    bool shared;
  };
  /// What has been read, where many objects stand in more than one place.
  struct Seen {
    PyObject *object; ///< held
    rt::Slot slot;
    bool done;
  };

  void walk();
  void enter(PyObject *object, uint32_t type, rt::Slot *to);
  void enterData(PyObject *object, uint32_t type, rt::Slot *to);
  void enterTuple(PyObject *object, uint32_t type, rt::Slot *to);
  void enterList(PyObject *object, uint32_t type, rt::Slot *to);
  void enterArray(PyObject *object, uint32_t type, rt::Slot *to);
  rt::Slot *listOf(uint32_t type, Py_ssize_t size, rt::Slot *to);
  void push(Frame frame, PyObject *object);
  void pop();
  void scalar(PyObject *object, uint32_t type, rt::TypeKind kind, rt::Slot *to);
  rt::Slot token(PyObject *object, uint32_t type);
  const Member *membersOf(uint32_t tuple);
  void forget();
  std::string path() const;
  /// Once in many values: signals are looked for, and what is shared from now on.
  void manyNodes();

  static constexpr size_t kMany = size_t(1) << 16;
  static constexpr size_t kDeepest = size_t(1) << 24;

  Model &model_;
  io::SlotHeap &heap_;
  std::vector<Frame> frames_;
  const char *argument_ = "";
  size_t instance_ = 0;
  size_t nodes_ = 0; ///< of data in this value
  bool sharing_ = false;
  std::unordered_map<PyObject *, Seen> seen_;
  std::unordered_map<uint32_t, std::vector<Member>> tuples_;
};

/// The instances of columns, one for each argument: lists, tuples, other sequences, or arrays whose
/// first axis is the instances'. Writes them into a store, with ids from 0.
void encodeColumns(Model &model, nb::handle columns, api::ValueStore &store);

} // namespace sheaf::python

#endif // SHEAF_PYTHON_ENCODE_H
