//===- tensors.h - Arrays and nested lists as tensors -----------*- C++ -*-===//
#ifndef SHEAF_PYTHON_NATIVE_TENSORS_H
#define SHEAF_PYTHON_NATIVE_TENSORS_H

#include "python/native/arrays.h"
#include "python/native/model.h"

namespace sheaf::python {

/// Copies an array, or numbers in lists in lists, into a heap, and writes the slots of a tensor of
/// this type. Throws Refusal.
void putTensor(Model &model, uint32_t type, PyObject *object, io::SlotHeap &heap, rt::Slot *to);
void putTensor(Model &model, uint32_t type, const Array &array, io::SlotHeap &heap, rt::Slot *to);

/// The element `i` of an array with one axis, as a slot of a value of this type of numbers.
rt::Slot numberOf(Model &model, uint32_t type, const Array &array, int64_t i);
/// Throws Refusal unless the elements of an array do for numbers of this type.
void checkNumbers(Model &model, uint32_t type, const Array &array);

[[noreturn]] void noToken(Model &model, uint32_t type, int64_t token);

} // namespace sheaf::python

#endif // SHEAF_PYTHON_NATIVE_TENSORS_H
