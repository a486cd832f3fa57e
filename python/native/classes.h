//===- classes.h - Which objects are values of which data -------*- C++ -*-===//
//
// A constructor is a Python class and its fields are attributes. How an object of a class is read
// is found out once a class: from the places of its slots, or, of what has none, by its attributes.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_PYTHON_NATIVE_CLASSES_H
#define SHEAF_PYTHON_NATIVE_CLASSES_H

#include "python/native/raise.h"

#include "runtime/api/handles.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sheaf::python {

/// A part of a value, and how it is read of an object.
struct Member {
  uint32_t type;
  rt::TypeKind kind;
  uint32_t data;  ///< of data: which
  int64_t tokens; ///< of tokens: how many there are
  int64_t slots;
  /// Where the object has the field's address; -1: it has none there, but may have it among its
  /// attribute values (attributes.h), or is asked for the attribute.
  Py_ssize_t offset = -1;
  Py_ssize_t place = -1;    ///< among attribute values; -1: none
  PyObject *name = nullptr; ///< interned

  /// Whether there is no such token of its vocabulary.
  bool lacks(int64_t number) const {
    return kind == rt::TypeKind::Token &&
           static_cast<uint64_t>(number) >= static_cast<uint64_t>(tokens);
  }
};

/// A part of this type.
inline Member memberOf(const api::LoadedModel &model, uint32_t type) {
  const rt::TypeDesc &desc = model.types().types[type];
  return {type, desc.kind, desc.data, desc.kind == rt::TypeKind::Token ? model.tokens(type) : 0,
          model.slots(type)};
}

/// How objects of one Python class are read.
struct Reading {
  nb::object type; ///< the class
  uint32_t constructor;
  Py_ssize_t tupleSize = 0; ///< not 0: it is a tuple, with so many elements at least
  int64_t slots = 0;        ///< of the value that is made: the constructor and its fields
  Py_ssize_t ahead = -1;    ///< where the address of the last of several fields is
  bool isFlat = false;      ///< it has fields, and they are ints and tokens
  std::vector<Member> members;
};

/// A constructor of one type of data.
struct Constructor {
  std::string name;
  std::vector<nb::str> fields; ///< interned
  nb::tuple keywords;          ///< the same, for calls
  nb::object type;             ///< the class; none until bind()
  /// Whether objects of other classes with its name are values, too.
  bool byName = true;
  std::vector<Member> members; ///< without offsets
  int64_t slots = 1;
};

/// Data of which an object is a value by itself: None that of one constructor, any other the only
/// field of the other.
struct OptionalData {
  rt::Slot none, some; ///< the constructors' numbers
  Member value;
};

class Classes {
public:
  explicit Classes(const api::LoadedModel &model);

  /// Says which class a constructor is, of every type of data that has one of this name. `strict`:
  /// objects must be of this class, not of another of its name.
  void bind(const std::string &constructor, nb::object type, bool strict);

  /// Says that the field of this constructor stands for its value, and None for the other one, in
  /// every type of data that has it.
  void bindOptional(const std::string &constructor);
  /// Null when objects of a class are its values.
  const OptionalData *optional(uint32_t data) const {
    return optionals_[data] ? &*optionals_[data] : nullptr;
  }

  /// How objects of a class are read where this data belongs; null when that has not been found
  /// out.
  const Reading *known(uint32_t data, PyTypeObject *type) const {
    const Table &table = tables_[data];
    for (size_t at = place(type) & table.mask;; at = (at + 1) & table.mask) {
      if (table.types[at] == type)
        return table.readings[at];
      if (!table.types[at])
        return nullptr;
    }
  }
  /// Finds it out, which may run code of others; null when no constructor is theirs.
  const Reading *learn(uint32_t data, PyTypeObject *type);
  const Constructor &constructor(uint32_t data, size_t number) const {
    return constructors_[data][number];
  }
  const std::vector<Constructor> &constructors(uint32_t data) const { return constructors_[data]; }

private:
  /// Open addressing by the address of a class.
  struct Table {
    std::vector<PyTypeObject *> types;
    std::vector<const Reading *> readings;
    size_t mask = 0, used = 0;
  };
  static size_t place(PyTypeObject *type) { return reinterpret_cast<size_t>(type) >> 4; }
  void insert(Table &table, PyTypeObject *type, const Reading *reading);

  std::vector<std::vector<Constructor>> constructors_; ///< by data
  std::vector<std::optional<OptionalData>> optionals_; ///< by data
  std::vector<Table> tables_;                          ///< by data
  std::vector<std::unique_ptr<Reading>> readings_;
};

} // namespace sheaf::python

#endif // SHEAF_PYTHON_NATIVE_CLASSES_H
