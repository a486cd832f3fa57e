#include "python/native/classes.h"
#include "python/native/attributes.h"

#include <structmember.h>

#include <algorithm>
#include <cstring>

namespace sheaf::python {

namespace {

/// The attribute for a field: words of Python get a `_`, as sheaf/values.py has it.
std::string attributeOf(const std::string &field) {
  static const nb::object *isKeyword =
      new nb::object(nb::module_::import_("keyword").attr("iskeyword"));
  return nb::cast<bool>((*isKeyword)(field)) ? field + "_" : field;
}

nb::str interned(const std::string &text) {
  PyObject *made = PyUnicode_InternFromString(text.c_str());
  if (!made)
    throw nb::python_error();
  return nb::steal<nb::str>(made);
}

/// What a class has under a name, as attributes are looked up; null when it has nothing.
PyObject *lookUp(PyTypeObject *type, PyObject *name) {
  PyObject *order = type->tp_mro; // classes have one once they are ready
  for (Py_ssize_t i = 0; order && i < PyTuple_GET_SIZE(order); ++i) {
    nb::object members = nb::steal(PyObject_GetAttrString(PyTuple_GET_ITEM(order, i), "__dict__"));
    if (!members.is_valid()) {
      PyErr_Clear();
      continue;
    }
    nb::object found = nb::steal(PyObject_GetItem(members.ptr(), name));
    if (found.is_valid())
      return found.ptr(); // the class keeps it
    PyErr_Clear();
  }
  return nullptr;
}

/// Whether a class leaves it to Python what an attribute is.
bool looksUpAsUsual(PyTypeObject *type) {
  nb::str getter("__getattribute__");
  PyObject *get = lookUp(type, getter.ptr());
  return get && (get == lookUp(&PyBaseObject_Type, getter.ptr()) ||
                 get == lookUp(&PyTuple_Type, getter.ptr()));
}

/// Where objects of a class have the address of an attribute, if that is all that reading it means.
Py_ssize_t offsetOf(PyTypeObject *type, PyObject *name) {
  PyObject *found = lookUp(type, name);
  if (!found)
    return -1;
  if (Py_TYPE(found) == &PyMemberDescr_Type) {
    auto *descriptor = reinterpret_cast<PyMemberDescrObject *>(found);
    if (descriptor->d_member->type == T_OBJECT_EX &&
        PyType_IsSubtype(type, descriptor->d_common.d_type))
      return descriptor->d_member->offset;
    return -1;
  }
  // A field of a named tuple.
  if (PyType_IsSubtype(type, &PyTuple_Type) &&
      std::strcmp(Py_TYPE(found)->tp_name, "_collections._tuplegetter") == 0) {
    nb::object told = nb::steal(PyObject_CallMethod(found, "__reduce__", nullptr));
    if (!told.is_valid()) {
      PyErr_Clear();
      return -1;
    }
    Py_ssize_t index = -1; // (_tuplegetter, (index, doc))
    if (PyTuple_Check(told.ptr()) && PyTuple_GET_SIZE(told.ptr()) == 2)
      if (PyObject *inner = PyTuple_GET_ITEM(told.ptr(), 1);
          PyTuple_Check(inner) && PyTuple_GET_SIZE(inner) == 2)
        index = PyLong_AsSsize_t(PyTuple_GET_ITEM(inner, 0));
    if (index < 0) {
      PyErr_Clear();
      return -1;
    }
    return static_cast<Py_ssize_t>(offsetof(PyTupleObject, ob_item)) +
           index * static_cast<Py_ssize_t>(sizeof(PyObject *));
  }
  return -1;
}

/// Which of the attribute values of its objects it is, if that is what an attribute means.
Py_ssize_t placeOf(PyTypeObject *type, PyObject *name) {
  // What a class has under the name comes after them, unless it is a property or alike.
  PyObject *found = lookUp(type, name);
  return found && Py_TYPE(found)->tp_descr_set ? -1 : valuePlace(type, name);
}

std::string nameOf(PyObject *type) {
  nb::object name = nb::steal(PyObject_GetAttrString(type, "__name__"));
  if (!name.is_valid() || !PyUnicode_Check(name.ptr())) {
    PyErr_Clear();
    return {};
  }
  return textOf(name.ptr());
}

} // namespace

Classes::Classes(const api::LoadedModel &model) {
  const rt::TypeTable &types = model.types();
  constructors_.resize(types.data.size());
  optionals_.resize(types.data.size());
  tables_.resize(types.data.size());
  for (Table &table : tables_) {
    table.types.resize(8);
    table.readings.resize(8);
    table.mask = 7;
  }
  for (size_t data = 0; data < types.data.size(); ++data)
    for (const rt::CtorDesc &desc : types.data[data].ctors) {
      Constructor &ctor = constructors_[data].emplace_back();
      ctor.name = desc.name;
      nb::list names;
      for (size_t i = 0; i < desc.fieldTypes.size(); ++i) {
        uint32_t type = desc.fieldTypes[i];
        ctor.fields.push_back(interned(attributeOf(desc.fieldNames[i])));
        names.append(ctor.fields.back());
        ctor.members.push_back(memberOf(model, type));
        ctor.members.back().name = ctor.fields.back().ptr();
        ctor.slots += model.slots(type);
      }
      ctor.keywords = nb::tuple(names);
    }
}

void Classes::bind(const std::string &constructor, nb::object type, bool strict) {
  bool any = false;
  for (size_t data = 0; data < constructors_.size(); ++data)
    for (Constructor &ctor : constructors_[data])
      if (ctor.name == constructor) {
        ctor.type = type;
        ctor.byName = !strict;
        any = true;
      }
  if (!any)
    throw Refusal(PyExc_ValueError, "the model has no constructor '" + constructor + "'");
  for (Table &table : tables_) {
    std::fill(table.types.begin(), table.types.end(), nullptr);
    std::fill(table.readings.begin(), table.readings.end(), nullptr);
    table.used = 0;
  }
}

void Classes::bindOptional(const std::string &constructor) {
  for (size_t data = 0; data < constructors_.size(); ++data) {
    const std::vector<Constructor> &all = constructors_[data];
    auto some = std::find_if(all.begin(), all.end(),
                             [&](const Constructor &ctor) { return ctor.name == constructor; });
    if (some == all.end())
      continue;
    const Constructor &none = all[some == all.begin() ? all.size() - 1 : 0];
    if (all.size() != 2 || some->members.size() != 1 || !none.members.empty())
      throw Refusal(PyExc_ValueError,
                    "'" + constructor + "' has not one field, beside a constructor without any");
    optionals_[data] = {&none - all.data(), &*some - all.data(), some->members[0]};
  }
}

const Reading *Classes::learn(uint32_t data, PyTypeObject *type) {
  PyObject *order = type->tp_mro;
  for (Py_ssize_t i = 0; order && i < PyTuple_GET_SIZE(order); ++i) {
    PyObject *base = PyTuple_GET_ITEM(order, i);
    std::string name = nameOf(base);
    for (size_t number = 0; number < constructors_[data].size(); ++number) {
      const Constructor &ctor = constructors_[data][number];
      if (ctor.type.ptr() != base && !(ctor.byName && ctor.name == name))
        continue;
      auto reading = std::make_unique<Reading>();
      reading->type = nb::borrow(reinterpret_cast<PyObject *>(type));
      reading->constructor = static_cast<uint32_t>(number);
      reading->members = ctor.members;
      reading->slots = ctor.slots;
      bool usual = looksUpAsUsual(type);
      for (Member &member : reading->members) {
        if (usual && (member.offset = offsetOf(type, member.name)) < 0)
          member.place = placeOf(type, member.name);
        if (member.offset >= 0 && PyType_IsSubtype(type, &PyTuple_Type))
          reading->tupleSize = std::max<Py_ssize_t>(
              reading->tupleSize,
              (member.offset - static_cast<Py_ssize_t>(offsetof(PyTupleObject, ob_item))) /
                      static_cast<Py_ssize_t>(sizeof(PyObject *)) +
                  1);
      }
      if (reading->members.size() > 1)
        reading->ahead = reading->members.back().offset;
      reading->isFlat =
          !reading->tupleSize && !reading->members.empty() &&
          std::ranges::all_of(reading->members, [](const Member &member) {
            return member.kind == rt::TypeKind::Int || member.kind == rt::TypeKind::Token;
          });
      readings_.push_back(std::move(reading));
      insert(tables_[data], type, readings_.back().get());
      return readings_.back().get();
    }
  }
  return nullptr; // another time it may be bound
}

void Classes::insert(Table &table, PyTypeObject *type, const Reading *reading) {
  auto put = [](Table &into, PyTypeObject *key, const Reading *value) {
    size_t at = place(key) & into.mask;
    while (into.types[at])
      at = (at + 1) & into.mask;
    into.types[at] = key;
    into.readings[at] = value;
  };
  if (2 * ++table.used > table.mask) {
    Table larger;
    larger.mask = 2 * table.mask + 1;
    larger.used = table.used;
    larger.types.resize(larger.mask + 1);
    larger.readings.resize(larger.mask + 1);
    for (size_t i = 0; i <= table.mask; ++i)
      if (table.types[i])
        put(larger, table.types[i], table.readings[i]);
    table = std::move(larger);
  }
  put(table, type, reading);
}

} // namespace sheaf::python
