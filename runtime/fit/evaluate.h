//===- evaluate.h - Measures of a model over data ---------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_FIT_EVALUATE_H
#define SHEAF_RUNTIME_FIT_EVALUATE_H

#include "runtime/io/vocab.h"
#include "runtime/model/error.h"
#include "runtime/session/session.h"
#include "runtime/train/confusion.h"

#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

namespace sheaf::fit {

/// Instances to train on or to measure over. Whoever uses them does not own them.
struct Data {
  std::span<const rt::Instance> instances;
  /// Where an instance (Instance::index) comes from, such as `file:line`. May be empty.
  std::function<std::string(int64_t index)> nameOf = {};

  /// What became of one that failed, with its place if that is known.
  std::string failure(const RunError &error) const;
};

/// A function of the model whose result is a number, or pairs of predicted and actual classes
/// (rt::isPrediction), with the score that is taken of pairs.
struct Metric {
  std::string function;
  std::string score = {}; ///< of pairs: accuracy, precision, recall or f1; empty: f1

  /// `FUNCTION` or `FUNCTION:SCORE`; nothing for another form.
  static std::optional<Metric> parse(const std::string &text);
};

/// What a function came to over data.
struct Measure {
  double value = 0; ///< the mean, or of pairs the score, over the instances that did not fail
  int64_t instances = 0, failed = 0;
  std::string error;                   ///< of the first that failed, with its place in the data
  std::optional<RunError> firstFailed; ///< that
  std::string firstPlace;              ///< where it was read; empty: not known
  std::optional<rt::Confusion> confusion;
  bool isBool = false; ///< scores are those of `true`, else the means over classes

  rt::ClassScores scores() const;
};

/// Throws UserError unless the result of the model's entry is a number, a truth value or a tensor
/// of one without axes, or pairs of classes if `score` is not given or names one of theirs.
void requireMeasure(const rt::Model &model, const Metric &metric);

struct EvaluateOptions {
  int64_t batch = 64; ///< instances that run together
  std::stop_token stop = {};
  /// Told how many instances were measured since it was told last. May be empty.
  std::function<void(int64_t instances)> progress = {};
};

/// What a metric, which is the session's entry, comes to over data; nothing when it was stopped.
std::optional<Measure> evaluate(rt::Session &session, const Data &data, const Metric &metric,
                                const EvaluateOptions &options = {});

/// How a class is called, in pairs that the model's entry gives: by its word, `true`, or its
/// number.
std::string className(const rt::Model &model, const io::Vocabularies &vocabularies, int64_t number);

/// Gives a session the parameters of another that have the same name; `get` returns the tensor of
/// one, by its index there.
void copyParams(const rt::Session &from, const std::function<rt::TensorView(size_t)> &get,
                rt::Session &to);

} // namespace sheaf::fit

#endif // SHEAF_RUNTIME_FIT_EVALUATE_H
