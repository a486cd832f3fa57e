//===- evaluate.h - Measures of a model over data ---------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_EVALUATE_H
#define SHEAF_TOOLS_SHEAF_EVALUATE_H

#include "tools/sheaf/load.h"

#include "compiler/report/ReportJson.h"
#include "runtime/io/progress.h"
#include "runtime/train/confusion.h"

namespace sheaf::tool {

/// `--metric FUNCTION` or `--metric FUNCTION:SCORE`: a function of the model whose result is a
/// number, or pairs of predicted and actual classes (rt::isPrediction).
struct Metric {
  std::string function;
  std::string score; ///< of pairs: accuracy, precision, recall or f1; empty: f1

  /// Throws UsageError.
  static Metric parse(const std::string &text);
};

/// What a function came to over data.
struct Measure {
  double value = 0; ///< the mean, or of pairs the score, over the instances that did not fail
  int64_t instances = 0, failed = 0;
  std::string error; ///< of the first that failed, with its place in the data
  std::optional<rt::Confusion> confusion;
  bool isBool = false; ///< scores are those of `true`, else the means over classes

  rt::ClassScores scores() const;
  /// "0.5", "NaN", or "none" of no instances. `decimals`: after the point; -1: six digits in all.
  std::string text(int decimals = -1) const;
  /// Null of no instances, and where it is not finite.
  driver::Json json() const;
};

/// Throws UserError unless the result of the model's entry is a number, a truth value or a tensor
/// of one without axes, or pairs of classes if `score` is not given or names one of theirs.
void requireMeasure(const rt::Model &model, const Metric &metric);

/// What a metric comes to over what was loaded. `stop` is asked before every mini-batch, and may be
/// empty; nothing when it said so.
std::optional<Measure> evaluate(rt::Session &session, const LoadedRun &run, const Metric &metric,
                                int64_t batch, const std::function<bool()> &stop = {});

/// How classes of pairs are called.
std::string className(const LoadedRun &run, int64_t number);

/// Gives a session the parameters of another that have the same name; `get` returns the tensor of
/// one, by its index there.
void copyParams(const rt::Session &from, const std::function<rt::TensorView(size_t)> &get,
                rt::Session &to);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_EVALUATE_H
