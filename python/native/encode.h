//===- encode.h - Python's objects as values --------------------*- C++ -*-===//
#ifndef SHEAF_PYTHON_NATIVE_ENCODE_H
#define SHEAF_PYTHON_NATIVE_ENCODE_H

#include "python/native/model.h"
#include "python/native/scalars.h"

#include "runtime/api/values.h"

#include <unordered_map>
#include <vector>

namespace sheaf::python {

/// Walks objects, however deep, with a stack of its own, and writes the slots of values into a
/// heap.
///
/// As long as no code of others runs, nothing changes: what is read by its place in an object is
/// kept by that. Before such code runs (an attribute that is asked for, a number that is no plain
/// one), all that is on the stack is held (secure()).
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
    PyObject *object;
    const Reading *reading;
    const Member *next, *end; ///< of data and tuples; of a list that of all its elements
    rt::Slot *to;
    Py_ssize_t index, size; ///< of lists and tuples
    enum Kind : uint8_t { Data, Tuple, List } kind;
    bool held;   ///< a reference to the object is the frame's
    bool shared; ///< it stands in `seen_`
  };
  /// What has been read, where many objects stand in more than one place. One object may be a value
  /// of several types, such as `Box<int>` and `Box<float>`.
  struct Read {
    PyObject *object; ///< held
    const Reading *reading;
    bool operator==(const Read &) const = default;
  };
  struct ReadHash {
    size_t operator()(const Read &read) const {
      std::hash<const void *> hash;
      return hash(read.object) * 31 + hash(read.reading);
    }
  };
  struct Seen {
    rt::Slot slot;
    bool done;
  };

  void walk();
  /// They take a reference to the object, if it is `held`.
  void enter(nb::object held, uint32_t type, rt::Slot *to);
  void enterData(PyObject *object, bool held, const Reading &reading, rt::Slot *to);
  /// The value of an object with numbers alone, if they are plain ints. Nothing else is looked at.
  bool putFlat(PyObject *object, const Reading &reading, rt::Slot *to);
  void enterOptional(const OptionalData &data, PyObject *object, bool held, rt::Slot *to);
  const Reading &readingOf(PyObject *object, uint32_t type);
  void enterTuple(PyObject *object, uint32_t type, rt::Slot *to);
  void enterList(PyObject *object, uint32_t type, rt::Slot *to);
  void enterArray(PyObject *object, uint32_t type, rt::Slot *to);
  rt::Slot *listOf(uint32_t type, Py_ssize_t size, rt::Slot *to);
  void pop();
  void secure();
  void scalar(PyObject *object, uint32_t type, rt::TypeKind kind, rt::Slot *to);
  rt::Slot token(PyObject *object, uint32_t type);
  /// Of a tuple its parts, of a list its elements.
  const Member *partsOf(uint32_t type);
  void forget();
  std::string path() const;
  /// Once in many values: signals are looked for, and what is shared from now on.
  void manyNodes();

  static constexpr size_t kMany = size_t(1) << 16;
  static constexpr size_t kDeepest = size_t(1) << 22;

  Model &model_;
  io::SlotHeap &heap_;
  std::vector<Frame> frames_;
  size_t secured_ = 0; ///< so many frames are held
  const char *argument_ = "";
  size_t instance_ = 0;
  size_t nodes_ = 0; ///< of data in this value, but for what is flat
  bool sharing_ = false;
  std::unordered_map<Read, Seen, ReadHash> seen_;
  std::unordered_map<uint32_t, std::vector<Member>> parts_;
};

/// The instances of columns, one for each argument: lists, tuples, other sequences, or arrays whose
/// first axis is the instances'. Writes them into a store, with ids from 0.
void encodeColumns(Model &model, nb::handle columns, api::ValueStore &store);

} // namespace sheaf::python

#endif // SHEAF_PYTHON_NATIVE_ENCODE_H
