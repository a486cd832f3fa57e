//===- values.h - Instances that were encoded -------------------*- C++ -*-===//
#ifndef SHEAF_PYTHON_NATIVE_VALUES_H
#define SHEAF_PYTHON_NATIVE_VALUES_H

#include "python/native/model.h"

#include <memory>
#include <span>
#include <vector>

namespace sheaf::python {

/// Instances of a model, or of one whose arguments have the same types. Immutable; parts share what
/// they are made of.
class Values {
public:
  /// Of columns, as encodeColumns() takes them.
  static std::unique_ptr<Values> encode(Model &model, nb::handle columns);

  size_t size() const { return instances_.size(); }
  size_t bytes() const;
  std::span<const rt::Instance> instances() const { return instances_; }
  const std::vector<std::shared_ptr<const api::ValueStore>> &stores() const { return stores_; }
  const std::string &signature() const { return signature_; }

  /// Makes them the instances of a store of this model, which lets them live: in their order, with
  /// ids from 0. Throws nb::python_error when they are of a model with other arguments.
  void putInto(api::ValueStore &store, const Model &model) const;

  std::unique_ptr<Values> select(std::span<const int64_t> which) const;
  /// All of these, one after the other.
  static std::unique_ptr<Values> join(const std::vector<const Values *> &parts);

  /// As arrays, for each argument a dict; see docs/design/values.md on what is written before what.
  nb::list flatten() const;
  /// From such. Throws nb::python_error when they are none of this model's.
  static std::unique_ptr<Values> unflatten(Model &model, nb::handle columns, size_t count);

private:
  std::string signature_;
  std::vector<std::shared_ptr<const api::ValueStore>> stores_; ///< all of models of one signature
  std::vector<rt::Instance> instances_;
};

void bindValues(nb::module_ &module);

} // namespace sheaf::python

#endif // SHEAF_PYTHON_NATIVE_VALUES_H
