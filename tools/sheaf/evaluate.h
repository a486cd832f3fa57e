//===- evaluate.h - The mean of a function over data ------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_EVALUATE_H
#define SHEAF_TOOLS_SHEAF_EVALUATE_H

#include "tools/sheaf/load.h"

#include "compiler/driver/ReportJson.h"

namespace sheaf::tool {

struct Mean {
  double value = 0; ///< over the instances that did not fail
  int64_t instances = 0, failed = 0;
  std::string error; ///< of the first that failed, with its place in the data

  /// "0.5", "NaN", or "none" of no instances. `decimals`: after the point; -1: six digits in all.
  std::string text(int decimals = -1) const;
  /// Null of no instances, and where it is not finite.
  driver::Json json() const;
};

/// Throws UserError unless the result of the model's entry is a number, a truth value or a tensor
/// of one without axes.
void requireNumber(const rt::Model &model);

/// The mean of the entry's results over what was loaded.
Mean evaluate(rt::Session &session, const LoadedRun &run, int64_t batch);

/// Gives a session the parameters of another that have the same name; `get` returns the tensor of
/// one, by its index there.
void copyParams(const rt::Session &from, const std::function<rt::TensorView(size_t)> &get,
                rt::Session &to);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_EVALUATE_H
