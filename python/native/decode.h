//===- decode.h - Results as Python's objects -------------------*- C++ -*-===//
#ifndef SHEAF_PYTHON_NATIVE_DECODE_H
#define SHEAF_PYTHON_NATIVE_DECODE_H

#include "python/native/model.h"

#include <memory>

namespace sheaf::python {

/// A tensor that the C interface gave, which the array takes, as an array of NumPy's.
nb::object takeArray(DLManagedTensor *tensor);

/// Makes objects of values of a result, however deep, with a stack of its own. What stands in a
/// value more than once is one object.
nb::object decode(Model &model, const std::shared_ptr<const api::ResultData> &result, uint32_t type,
                  const rt::Slot *slots);

/// The results of all instances, or gradients of an argument, none of which may have failed: of
/// tensors with the same extents and of numbers one array, of tuples a tuple of such, of all else a
/// list.
nb::object decodeColumn(Model &model, sheaf_result *result);

/// The results of all instances in a list, with an exception where one failed.
nb::list decodeEach(Model &model, sheaf_result *result);

/// Raises InstanceErrors if an instance has failed.
void raiseFailures(sheaf_result *result);

/// An instance's InstanceError.
nb::object failureOf(sheaf_result *result, size_t instance);

} // namespace sheaf::python

#endif // SHEAF_PYTHON_NATIVE_DECODE_H
