//===- gradients.h - Going back from a run, and steps -----------*- C++ -*-===//
#ifndef SHEAF_PYTHON_NATIVE_GRADIENTS_H
#define SHEAF_PYTHON_NATIVE_GRADIENTS_H

#include "python/native/session.h"

#include "sheaf/gradients.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace sheaf::python {

/// Gradients of a run, valid until its session runs or goes back with its model again.
class Gradients {
public:
  Gradients(std::shared_ptr<Running> run, sheaf_gradients *gradients)
      : run_(std::move(run)), gradients_(gradients, sheaf_gradients_release) {}

  const sheaf_gradients *handle() const { return gradients_.get(); }
  /// An array, or, of a table of which only some rows were read, unless it shall be `dense`, the
  /// numbers of these rows and an array of them.
  nb::object weight(const std::string &name, bool dense) const;
  /// Of an argument, as results are.
  nb::object argument(Model &model, size_t number) const;

private:
  std::shared_ptr<Running> run_;
  std::unique_ptr<sheaf_gradients, void (*)(sheaf_gradients *)> gradients_;
};

/// A run that is held, so that the session can go back from it.
class Run {
public:
  Run(Model &model, std::shared_ptr<Running> running)
      : model_(model), running_(std::move(running)) {}

  /// Its results; failures are raised, or, with `each`, stand in a list.
  nb::object results(bool each) const;
  /// The InstanceErrors of those that failed.
  nb::list failures() const;
  size_t size() const { return running_->result->data->items.size(); }
  /// `cotangents`: None, of a loss, or tuples of instances (None: all), a path and an array.
  /// `frozen`: names of weights of which no gradients are computed.
  std::unique_ptr<Gradients> backward(nb::handle cotangents,
                                      const std::vector<std::string> &frozen) const;

private:
  Model &model_; ///< Python keeps it
  std::shared_ptr<Running> running_;
};

/// What an optimiser is told, and what that points at.
class OptimizerOptions {
public:
  /// Of a dict: `name`, numbers by their names in the C interface, `updates` as tuples of a
  /// pattern, a rate and a decay.
  explicit OptimizerOptions(const nb::dict &from);
  OptimizerOptions(const OptimizerOptions &) = delete;

  const sheaf_optimizer_options *get() const { return &options_; }

private:
  std::string name_;
  std::deque<std::string> patterns_;
  std::vector<sheaf_weight_update> updates_;
  sheaf_optimizer_options options_{};
};

/// A number for options of the C interface, where 0 stands for the default.
inline double asGiven(double number) { return number == 0 ? -1 : number; }

void bindGradients(nb::module_ &module);
void bindTraining(nb::module_ &module);

} // namespace sheaf::python

#endif // SHEAF_PYTHON_NATIVE_GRADIENTS_H
