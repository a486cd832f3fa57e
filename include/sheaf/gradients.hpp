//===- gradients.hpp - Gradients and steps, for C++ -------------*- C++ -*-===//
//
// A thin header over gradients.h for C++17. What the functions mean is said there.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_GRADIENTS_HPP
#define SHEAF_GRADIENTS_HPP

#include "sheaf/gradients.h"
#include "sheaf/sheaf.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sheaf {

/// The names of a model's weights, by number.
inline std::vector<std::string> weightNames(const Model &model) {
  std::vector<std::string> names(sheaf_model_weight_count(model.get()));
  for (std::size_t i = 0; i < names.size(); ++i)
    names[i] = sheaf_model_weight_name(model.get(), i);
  return names;
}

/// A copy of a weight of a session.
inline Tensor weight(const Session &session, const Model &model, const std::string &name) {
  DLManagedTensor *tensor = nullptr;
  check(sheaf_session_weight(session.get(), model.get(), name.c_str(), &tensor));
  return Tensor(tensor);
}
inline void setWeight(const Session &session, const Model &model, const std::string &name,
                      const DLTensor &tensor) {
  check(sheaf_session_set_weight(session.get(), model.get(), name.c_str(), &tensor));
}

/// How weights are taken from a file: sheaf_load_weights_options.
struct LoadWeights {
  std::vector<std::string> renames;          ///< "FROM=TO"
  std::vector<std::string> fresh;            ///< patterns of weights that stay as they are
  bool partial = false;                      ///< what the file lacks stays, too
  std::map<std::string, std::string> tables; ///< with `partial`: vocabularies of weights by word
  bool strict = false;                       ///< what no weight takes is an error
  std::optional<Stop> stop = {};             ///< requested, gives it up between weights
};
/// What became of it.
struct LoadedWeights {
  std::vector<std::string> missing, unused;
  std::string conversions;
  std::vector<std::string> words; ///< of tables, "weight: word", that the file lacks
};

/// Gives a model the weights of a file in this session.
inline LoadedWeights loadWeights(const Session &session, const Model &model,
                                 const std::string &path, const LoadWeights &how = {}) {
  std::vector<const char *> renames, fresh;
  for (const std::string &rename : how.renames)
    renames.push_back(rename.c_str());
  for (const std::string &pattern : how.fresh)
    fresh.push_back(pattern.c_str());
  sheaf_load_weights_options options{};
  options.size = sizeof options;
  options.renames = renames.data();
  options.rename_count = renames.size();
  options.fresh = fresh.data();
  options.fresh_count = fresh.size();
  std::vector<sheaf_word_table> tables;
  for (const auto &[weight, vocabulary] : how.tables)
    tables.push_back({weight.c_str(), vocabulary.c_str()});
  options.tables = tables.data();
  options.table_count = tables.size();
  options.partial = how.partial;
  options.strict = how.strict;
  options.stop = how.stop ? how.stop->get() : nullptr;
  sheaf_loaded_weights *made = nullptr;
  check(sheaf_session_load_weights(session.get(), model.get(), path.c_str(), &options, &made));
  std::unique_ptr<sheaf_loaded_weights, void (*)(sheaf_loaded_weights *)> loaded(
      made, sheaf_loaded_weights_release);
  auto names = [&](sheaf_weights_list which) {
    std::vector<std::string> all(sheaf_loaded_weights_count(made, which));
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = sheaf_loaded_weights_name(made, which, i);
    return all;
  };
  return {names(SHEAF_WEIGHTS_MISSING), names(SHEAF_WEIGHTS_UNUSED),
          sheaf_loaded_weights_conversions(made), names(SHEAF_WEIGHTS_WORDS)};
}
/// Writes the weights of a session. `vocabularies`: and their words beside them.
inline void saveWeights(const Session &session, const Model &model, const std::string &path,
                        bool vocabularies = false) {
  sheaf_save_weights_options options{};
  options.size = sizeof options;
  options.vocabularies = vocabularies;
  check(sheaf_session_save_weights(session.get(), model.get(), path.c_str(), &options));
}

inline void freeze(const Session &session, const Model &model, const std::string &pattern) {
  check(sheaf_session_freeze(session.get(), model.get(), pattern.c_str()));
}
inline void unfreeze(const Session &session, const Model &model, const std::string &pattern) {
  check(sheaf_session_unfreeze(session.get(), model.get(), pattern.c_str()));
}

/// What arrives at a part of the results of some instances: `tensor` has these along its first
/// axis.
struct Cotangent {
  DLTensor tensor{};
  std::vector<std::size_t> path;                     ///< empty: the result
  std::optional<std::vector<std::size_t>> instances; ///< not given: all of them
};

/// The gradient of a weight. With `indices` the tensor has only these rows of it.
struct WeightGradient {
  Tensor tensor;
  std::optional<Tensor> indices;
};

/// Gradients of a run, or a sum of such.
class Gradients {
public:
  explicit Gradients(sheaf_gradients *gradients) : gradients_(gradients, sheaf_gradients_release) {}
  /// A sum, zero.
  explicit Gradients(const Model &model) {
    sheaf_gradients *sum = nullptr;
    check(sheaf_gradients_create(model.get(), &sum));
    gradients_.reset(sum, sheaf_gradients_release);
  }
  sheaf_gradients *get() const { return gradients_.get(); }

  /// Of all elements.
  Tensor weight(const std::string &name) const {
    DLManagedTensor *tensor = nullptr;
    check(sheaf_gradients_weight(get(), name.c_str(), &tensor, nullptr));
    return Tensor(tensor);
  }
  /// Of the rows that have one, where only some of a table have.
  WeightGradient rows(const std::string &name) const {
    DLManagedTensor *tensor = nullptr, *indices = nullptr;
    check(sheaf_gradients_weight(get(), name.c_str(), &tensor, &indices));
    WeightGradient gradient{Tensor(tensor), std::nullopt};
    if (indices)
      gradient.indices.emplace(indices);
    return gradient;
  }
  /// Of an argument of all instances.
  Result argument(std::size_t argument) const {
    sheaf_result *result = nullptr;
    check(sheaf_gradients_argument(get(), argument, &result));
    return Result(result);
  }

  /// Of sums.
  void add(const Gradients &more) { check(sheaf_gradients_add(get(), more.get())); }
  void clear() { check(sheaf_gradients_clear(get())); }

private:
  std::shared_ptr<sheaf_gradients> gradients_;
};

/// Goes back from the losses of a result, each counting 1.
inline Gradients backward(const Session &session, const Result &result) {
  sheaf_gradients *gradients = nullptr;
  check(sheaf_session_backward(session.get(), result.get(), nullptr, 0, &gradients));
  return Gradients(gradients);
}
/// Goes back from what arrives at parts of a result.
inline Gradients backward(const Session &session, const Result &result,
                          const std::vector<Cotangent> &cotangents) {
  std::vector<sheaf_cotangent> given;
  const std::size_t none = 0;
  for (const Cotangent &each : cotangents)
    given.push_back(
        {each.instances ? each.instances->empty() ? &none : each.instances->data() : nullptr,
         each.instances ? each.instances->size() : 0, each.path.data(), each.path.size(),
         &each.tensor});
  sheaf_cotangent unused{};
  sheaf_gradients *gradients = nullptr;
  check(sheaf_session_backward(session.get(), result.get(), given.empty() ? &unused : given.data(),
                               given.size(), &gradients));
  return Gradients(gradients);
}

/// The rate of a step, from 0.
inline double learningRate(sheaf_rate_options options, std::uint64_t step) {
  options.size = sizeof options;
  double rate = 0;
  check(sheaf_learning_rate(&options, step, &rate));
  return rate;
}

/// Changes the weights of a model in one session.
class Optimizer {
public:
  /// `options.size` is filled in.
  Optimizer(const Session &session, const Model &model, sheaf_optimizer_options options = {}) {
    options.size = sizeof options;
    sheaf_optimizer *optimizer = nullptr;
    check(sheaf_optimizer_create(session.get(), model.get(), &options, &optimizer));
    optimizer_.reset(optimizer, sheaf_optimizer_release);
  }
  sheaf_optimizer *get() const { return optimizer_.get(); }

  sheaf_step_report step(const Gradients &gradients, double learningRate, double scale = 1) {
    sheaf_step_report report{};
    report.size = sizeof report;
    check(sheaf_optimizer_step(get(), gradients.get(), learningRate, scale, &report));
    return report;
  }

private:
  std::shared_ptr<sheaf_optimizer> optimizer_;
};

} // namespace sheaf

#endif // SHEAF_GRADIENTS_HPP
