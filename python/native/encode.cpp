#include "python/native/encode.h"
#include "python/native/attributes.h"
#include "python/native/tensors.h"

#include <bit>

namespace sheaf::python {

using rt::Slot;
using rt::TypeKind;

namespace {

/// A field of an object by its place, or null: the object is asked for it.
PyObject *fieldOf(PyObject *object, const Member &member) {
  if (member.offset >= 0)
    return *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) + member.offset);
  return member.place >= 0 ? valueAt(object, member.place) : nullptr;
}

/// A sequence whose elements are those of a list: itself, or a copy. Throws Refusal for what is
/// none, such as a generator, which could be read only once.
nb::object elementsOf(PyObject *object, const std::string &wanted) {
  if (PyList_Check(object) || PyTuple_Check(object))
    return nb::borrow(object);
  bool refused = PyUnicode_Check(object) || PyBytes_Check(object) || PyDict_Check(object) ||
                 !PySequence_Check(object);
  if (!refused) {
    // What has items by index and a length.
    Py_ssize_t size = PySequence_Size(object);
    if (size >= 0)
      return owned(PySequence_List(object));
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
      throw nb::python_error();
    PyErr_Clear();
  }
  std::string message = wanted + " belongs here, not " + kindOf(object);
  if (PyIter_Check(object))
    message += ": make a list of it";
  throw Refusal(PyExc_TypeError, message);
}

} // namespace

Encoder::~Encoder() {
  for (Frame &frame : frames_)
    if (frame.held)
      Py_DECREF(frame.object);
  forget();
}

void Encoder::forget() {
  // Letting go may run code of others.
  auto seen = std::move(seen_);
  seen_.clear();
  sharing_ = false;
  for (auto &[read, one] : seen)
    Py_DECREF(read.object);
}

std::string Encoder::path() const {
  std::string text = std::string(argument_) + "[" + std::to_string(instance_) + "]";
  constexpr size_t kShown = 12;
  size_t count = frames_.size();
  for (size_t i = 0; i < count; ++i) {
    if (count > 2 * kShown && i == kShown) {
      text += " ... ";
      i = count - kShown;
    }
    const Frame &frame = frames_[i];
    if (frame.kind == Frame::Data && frame.next != frame.reading->members.data())
      text += "." + textOf(frame.next[-1].name);
    else if (frame.kind != Frame::Data)
      text += "[" + std::to_string(frame.index - 1) + "]";
  }
  return text;
}

void Encoder::refuse(const Refusal &refusal) const {
  raise(refusal.type, path() + ": " + refusal.what());
}

void Encoder::encode(PyObject *object, uint32_t type, Slot *to) {
  try {
    enter(nb::borrow(object), type, to);
    walk();
  } catch (const Refusal &refusal) {
    refuse(refusal);
  } catch (nb::python_error &error) {
    if (!error.matches(PyExc_KeyboardInterrupt))
      addNote(error, "while " + path() + " was read");
    throw;
  }
}

void Encoder::pop() {
  Frame &frame = frames_.back();
  PyObject *object = frame.held ? frame.object : nullptr;
  if (frame.shared) [[unlikely]]
    if (auto found = seen_.find({frame.object, frame.reading}); found != seen_.end())
      found->second.done = true;
  frames_.pop_back();
  secured_ = std::min(secured_, frames_.size());
  if (object && Py_REFCNT(object) == 1)
    secure(); // its end may run code
  Py_XDECREF(object);
}

void Encoder::secure() {
  for (; secured_ < frames_.size(); ++secured_) {
    Frame &frame = frames_[secured_];
    if (!std::exchange(frame.held, true))
      Py_INCREF(frame.object);
  }
}

void Encoder::enterOptional(const OptionalData &data, PyObject *part, bool held, Slot *to) {
  bool isNone = part == Py_None;
  Slot *slots = heap_.allocate(isNone ? 1 : 1 + data.value.slots);
  slots[0] = isNone ? data.none : data.some;
  *to = std::bit_cast<Slot>(slots);
  if (isNone) {
    if (held)
      Py_DECREF(part);
    return;
  }
  to = slots + 1;
  if (data.value.kind == TypeKind::Data)
    if (const Reading *reading = model_.classes().known(data.value.data, Py_TYPE(part)))
      return enterData(part, held, *reading, to);
  if (!held) {
    secure();
    Py_INCREF(part);
  }
  enter(nb::steal(part), data.value.type, to);
}

inline bool Encoder::putFlat(PyObject *object, const Reading &reading, Slot *to) {
  // What is found out too late costs a place in the heap; mostly the first field tells.
  Slot *slots = nullptr, *at = nullptr;
  for (const Member &member : reading.members) {
    PyObject *part = fieldOf(object, member);
    int64_t number;
    if (!part || !isSmallInt(part, number))
      return false;
    if (member.lacks(number))
      return false;
    if (!slots)
      at = slots = heap_.allocate(reading.slots);
    *++at = number;
  }
  slots[0] = reading.constructor;
  *to = std::bit_cast<Slot>(slots);
  return true;
}

void Encoder::walk() {
  const Classes &classes = model_.classes();
  while (!frames_.empty()) {
    Frame &frame = frames_.back();
    const Member *member;
    PyObject *part;
    Slot *to = frame.to;
    bool held = false;
    if (frame.kind == Frame::Data) {
      if (frame.next == frame.end) {
        pop();
        continue;
      }
      member = frame.next++;
      part = fieldOf(frame.object, *member);
      frame.to += member->slots;
      if (!part) {
        secure();
        part = PyObject_GetAttr(frame.object, member->name);
        if (!part)
          throw nb::python_error();
        held = true;
      }
    } else {
      if (frame.index == frame.size) {
        pop();
        continue;
      }
      if (PySequence_Fast_GET_SIZE(frame.object) != frame.size) [[unlikely]]
        throw Refusal(PyExc_RuntimeError, "the list changed while it was read");
      part = PySequence_Fast_GET_ITEM(frame.object, frame.index);
      ++frame.index;
      member = frame.next;
      frame.next += frame.kind == Frame::Tuple; // of a list it is the one of all elements
      frame.to += member->slots;
    }
    // What runs nobody's code comes first: plain ints, and objects of classes that were met before.
    if (member->kind == TypeKind::Data) {
      if (const Reading *reading = classes.known(member->data, Py_TYPE(part))) [[likely]] {
        if (!reading->isFlat || held || sharing_ || !putFlat(part, *reading, to))
          enterData(part, held, *reading, to);
        continue;
      }
      if (const OptionalData *data = classes.optional(member->data)) {
        enterOptional(*data, part, held, to);
        continue;
      }
    } else if (member->kind == TypeKind::Token || member->kind == TypeKind::Int) {
      int64_t number;
      if (isSmallInt(part, number)) [[likely]] {
        if (held)
          Py_DECREF(part); // an int's end runs no code
        if (member->lacks(number)) [[unlikely]]
          noToken(model_, member->type, number);
        *to = number;
        continue;
      }
    }
    if (!held) {
      secure();
      Py_INCREF(part);
    }
    enter(nb::steal(part), member->type, to);
  }
}

void Encoder::enter(nb::object held, uint32_t type, Slot *to) {
  PyObject *object = held.ptr();
  switch (TypeKind kind = model_.type(type).kind) {
  case TypeKind::Data: {
    if (const OptionalData *data = model_.classes().optional(model_.type(type).data))
      return enterOptional(*data, held.release().ptr(), /*held=*/true, to);
    const Reading &reading = readingOf(object, type);
    return enterData(held.release().ptr(), true, reading, to);
  }
  case TypeKind::Tuple:
    return enterTuple(object, type, to);
  case TypeKind::List:
    return enterList(object, type, to);
  case TypeKind::Tensor:
    return putTensor(model_, type, object, heap_, to);
  default:
    return scalar(object, type, kind, to);
  }
}

void Encoder::manyNodes() {
  sharing_ = true;
  if (nodes_ % (16 * kMany) != 0)
    return;
  secure();
  if (PyErr_CheckSignals() != 0)
    throw nb::python_error();
}

const Reading &Encoder::readingOf(PyObject *object, uint32_t type) {
  uint32_t data = model_.type(type).data;
  const Reading *reading = model_.classes().known(data, Py_TYPE(object));
  if (!reading)
    reading = model_.classes().learn(data, Py_TYPE(object));
  if (reading)
    return *reading;
  std::string names;
  for (const Constructor &ctor : model_.classes().constructors(data))
    names += (names.empty() ? "" : ", ") + ctor.name;
  throw Refusal(PyExc_TypeError, "'" + model_.loaded().text(type) + "' belongs here (" + names +
                                     "), not " + kindOf(object));
}

void Encoder::enterData(PyObject *object, bool held, const Reading &reading, Slot *to) {
  // From here on the frame lets it go, also when something is wrong.
  const Member *members = reading.members.data();
  frames_.push_back({object, &reading, members, members, nullptr, 0, 0, Frame::Data, held, false});
  if (++nodes_ % kMany == 0) [[unlikely]]
    manyNodes();
  Frame &frame = frames_.back();
  if (reading.tupleSize && PyTuple_GET_SIZE(object) < reading.tupleSize) [[unlikely]]
    throw Refusal(PyExc_TypeError, kindOf(object) + " has only " +
                                       std::to_string(PyTuple_GET_SIZE(object)) + " elements");
  if (sharing_) [[unlikely]] {
    // One reference is that of what it is a part of.
    if (Py_REFCNT(object) > 1 + frame.held) {
      auto [seen, fresh] = seen_.try_emplace({object, &reading}, Seen{0, false});
      if (!fresh) {
        if (!seen->second.done)
          throw Refusal(PyExc_ValueError, "the object is inside of itself");
        *to = seen->second.slot;
        pop();
        return;
      }
      Py_INCREF(object);
      frame.shared = true;
    }
    if (frames_.size() >= kDeepest)
      throw Refusal(PyExc_ValueError,
                    "deeper than " + std::to_string(kDeepest) + " objects: has it no end?");
  }
  Slot *slots = heap_.allocate(reading.slots);
  slots[0] = reading.constructor;
  *to = std::bit_cast<Slot>(slots);
  if (frame.shared) [[unlikely]]
    seen_.find({object, &reading})->second.slot = *to;
  frame.end = members + reading.members.size();
  frame.to = slots + 1;
  // What is read last is fetched while the parts before it are read.
  if (reading.ahead >= 0) {
    __builtin_prefetch(
        *reinterpret_cast<char **>(reinterpret_cast<char *>(object) + reading.ahead));
  } else if (frame.end - members > 1) {
    if (PyObject *last = fieldOf(object, frame.end[-1])) {
      __builtin_prefetch(last);
      __builtin_prefetch(reinterpret_cast<PyObject **>(last) - kWordsBefore);
    }
  }
}

const Member *Encoder::partsOf(uint32_t tuple) {
  std::vector<Member> &members = parts_[tuple];
  if (members.empty())
    for (uint32_t child : model_.type(tuple).children)
      members.push_back(memberOf(model_.loaded(), child));
  return members.data();
}

void Encoder::enterTuple(PyObject *object, uint32_t type, Slot *to) {
  size_t count = model_.type(type).children.size();
  std::string wanted = "a tuple of " + std::to_string(count);
  if (!PyTuple_Check(object) && !PyList_Check(object))
    throw Refusal(PyExc_TypeError, wanted + " belongs here, not " + kindOf(object));
  Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
  if (size != static_cast<Py_ssize_t>(count))
    throw Refusal(PyExc_ValueError, wanted + " belongs here, not one of " + std::to_string(size));
  const Member *members = partsOf(type);
  Py_INCREF(object);
  frames_.push_back(
      {object, nullptr, members, members + count, to, 0, size, Frame::Tuple, true, false});
}

Slot *Encoder::listOf(uint32_t number, Py_ssize_t size, Slot *to) {
  const rt::TypeDesc &type = model_.type(number);
  if (type.length >= 0 && *type.length != size)
    throw Refusal(PyExc_ValueError, "a list of " + std::to_string(size) + " elements is no '" +
                                        model_.loaded().text(number) + "'");
  int64_t width = model_.loaded().slots(type.children[0]);
  constexpr int64_t kObject = sizeof(rt::ListObject) / sizeof(Slot);
  Slot *place = heap_.allocate(kObject + size * width);
  *to = std::bit_cast<Slot>(new (place) rt::ListObject{place + kObject, size, width, nullptr});
  return place + kObject;
}

void Encoder::enterList(PyObject *given, uint32_t number, Slot *to) {
  const Member *element = partsOf(number);
  bool mayBeNone = element->kind == TypeKind::Data && model_.classes().optional(element->data);
  if (!PyList_Check(given) && !PyTuple_Check(given) && PyObject_CheckBuffer(given) &&
      !PyBytes_Check(given) && !mayBeNone)
    return enterArray(given, number, to);
  nb::object list = elementsOf(given, "a list ('" + model_.loaded().text(number) + "')");
  Py_ssize_t size = PySequence_Fast_GET_SIZE(list.ptr());
  Slot *elements = listOf(number, size, to);
  if (frames_.size() >= kDeepest)
    throw Refusal(PyExc_ValueError, "deeper than " + std::to_string(kDeepest) + " objects");
  frames_.push_back({list.release().ptr(), nullptr, element, nullptr, elements, 0, size,
                     Frame::List, true, false});
}

void Encoder::enterArray(PyObject *object, uint32_t number, Slot *to) {
  uint32_t element = model_.type(number).children[0];
  TypeKind kind = model_.type(element).kind;
  Array array;
  if (!array.borrow(object) || array.axes() == 0)
    throw Refusal(PyExc_TypeError, "a list belongs here, not " + kindOf(object));
  auto size = static_cast<Py_ssize_t>(array.shape[0]);
  if (kind == TypeKind::Tensor) {
    int64_t width = model_.loaded().slots(element);
    Slot *elements = listOf(number, size, to);
    for (Py_ssize_t i = 0; i < size; ++i)
      putTensor(model_, element, array.part(i), heap_, elements + i * width);
    return;
  }
  if (kind == TypeKind::Data || kind == TypeKind::Tuple || kind == TypeKind::List ||
      array.axes() != 1)
    throw Refusal(PyExc_TypeError,
                  "a list ('" + model_.loaded().text(number) + "') belongs here, not an array");
  checkNumbers(model_, element, array);
  Slot *elements = listOf(number, size, to);
  for (Py_ssize_t i = 0; i < size; ++i)
    elements[i] = numberOf(model_, element, array, i);
}

Slot Encoder::token(PyObject *object, uint32_t type) {
  int64_t number;
  if (PyUnicode_Check(object))
    return model_.token(type, object);
  if (PyBool_Check(object))
    throw Refusal(PyExc_TypeError, "a token belongs here, an int or a str, not bool");
  if (!isSmallInt(object, number)) {
    if (!PyLong_Check(object) && !PyIndex_Check(object))
      throw Refusal(PyExc_TypeError,
                    "a token belongs here, an int or a str, not " + kindOf(object));
    number = toIntSlow(object);
  }
  if (number < 0 || number >= model_.words(type).size)
    noToken(model_, type, number);
  return number;
}

void Encoder::scalar(PyObject *object, uint32_t type, TypeKind kind, Slot *to) {
  switch (kind) {
  case TypeKind::Token:
    *to = token(object, type);
    return;
  case TypeKind::Float:
    *to = std::bit_cast<Slot>(toFloat(object));
    return;
  case TypeKind::Bool:
    *to = toBool(object);
    return;
  default:
    *to = toInt(object);
  }
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

namespace {

/// The values of one argument.
struct Column {
  nb::object list; ///< or
  Array array;
  size_t size = 0;
};

Column columnOf(Model &model, uint32_t type, const char *name, PyObject *object) {
  Column column;
  TypeKind kind = model.type(type).kind;
  try {
    if (!PyList_Check(object) && !PyTuple_Check(object) && kind != TypeKind::Data &&
        kind != TypeKind::Tuple && kind != TypeKind::List) {
      bool objects = false;
      try {
        objects = !column.array.borrow(object);
      } catch (const Refusal &) {
        nb::object dtype = nb::steal(PyObject_GetAttrString(object, "dtype"));
        PyErr_Clear(); // an array of objects is a sequence like others
        if (!dtype.is_valid() || textOf(nb::str(dtype).ptr()) != "object")
          throw;
        objects = true;
      }
      if (!objects) {
        if (column.array.axes() == 0)
          throw Refusal(PyExc_TypeError, "a list of instances belongs here, not one number");
        if (kind != TypeKind::Tensor) {
          if (column.array.axes() != 1)
            throw Refusal(PyExc_ValueError, "an array of " + std::to_string(column.array.axes()) +
                                                " axes is no column of '" +
                                                model.loaded().text(type) + "'");
          checkNumbers(model, type, column.array);
        }
        column.size = static_cast<size_t>(column.array.shape[0]);
        return column;
      }
    }
    column.list = elementsOf(object, "a list with a value for each instance");
  } catch (const Refusal &refusal) {
    raise(refusal.type, std::string(name) + ": " + refusal.what());
  }
  column.size = static_cast<size_t>(PySequence_Fast_GET_SIZE(column.list.ptr()));
  return column;
}

} // namespace

void encodeColumns(Model &model, nb::handle columns, api::ValueStore &store) {
  const rt::EntryDesc &entry = model.loaded().model().entry;
  PyObject *given = columns.ptr();
  auto count = static_cast<size_t>(PyTuple_GET_SIZE(given));
  if (count != entry.argTypes.size()) {
    std::string names;
    for (const std::string &name : entry.argNames)
      names += (names.empty() ? "" : ", ") + name;
    raise(PyExc_TypeError, "'" + entry.name + "' takes " + std::to_string(entry.argTypes.size()) +
                               " lists (" + names + "), and " + std::to_string(count) +
                               (count == 1 ? " is" : " are") + " given");
  }
  std::vector<Column> all;
  std::vector<int64_t> places{0};
  for (size_t i = 0; i < count; ++i) {
    all.push_back(columnOf(model, entry.argTypes[i], entry.argNames[i].c_str(),
                           PyTuple_GET_ITEM(given, static_cast<Py_ssize_t>(i))));
    if (all[i].size != all[0].size)
      raise(PyExc_ValueError, entry.argNames[i] + " has " + std::to_string(all[i].size) +
                                  " values, and " + entry.argNames[0] + " has " +
                                  std::to_string(all[0].size));
    places.push_back(places.back() + model.loaded().slots(entry.argTypes[i]));
  }
  size_t instances = all.empty() ? 0 : all[0].size;
  int64_t width = places.back();
  Slot *args = store.heap.allocate(std::max<int64_t>(1, width * static_cast<int64_t>(instances)));
  Encoder encoder(model, store.heap);
  for (size_t argument = 0; argument < count; ++argument) {
    uint32_t type = entry.argTypes[argument];
    Column &column = all[argument];
    Slot *to = args + places[argument];
    for (size_t i = 0; i < instances; ++i, to += width) {
      encoder.begin(entry.argNames[argument].c_str(), i);
      if (column.list.is_valid()) {
        PyObject *list = column.list.ptr();
        if (static_cast<size_t>(PySequence_Fast_GET_SIZE(list)) != instances)
          raise(PyExc_RuntimeError,
                entry.argNames[argument] + ": the list changed while it was read");
        nb::object value = nb::borrow(PySequence_Fast_GET_ITEM(list, static_cast<Py_ssize_t>(i)));
        encoder.encode(value.ptr(), type, to);
        continue;
      }
      try {
        if (model.type(type).kind == TypeKind::Tensor)
          putTensor(model, type, column.array.part(static_cast<int64_t>(i)), store.heap, to);
        else
          *to = numberOf(model, type, column.array, static_cast<int64_t>(i));
      } catch (const Refusal &refusal) {
        encoder.refuse(refusal);
      }
    }
  }
  if (model.loaded().bindsExtents())
    for (size_t i = 0; i < instances; ++i)
      try {
        api::bindExtents(model.loaded(), entry.argTypes, args + static_cast<int64_t>(i) * width);
      } catch (const api::Invalid &error) {
        raise(PyExc_ValueError, "instance " + std::to_string(i) + ": " + error.what());
      }
  store.instances.reserve(store.instances.size() + instances);
  for (size_t i = 0; i < instances; ++i)
    store.instances.push_back({args + static_cast<int64_t>(i) * width, static_cast<int64_t>(i), 0});
}

} // namespace sheaf::python
