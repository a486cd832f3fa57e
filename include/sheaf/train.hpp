//===- train.hpp - Trainings, for C++ ---------------------------*- C++ -*-===//
//
// A thin header over train.h for C++17. What the options and events mean is said there.
//
//   sheaf::Values data = sheaf::readValues(loss, "train.txt");
//   sheaf_training_options options{};
//   options.epochs = 20;
//   sheaf::Training training(session, loss, data, options);
//   for (const sheaf_training_event &event : training)
//     std::cout << event.step << ": " << event.loss << "\n";
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_TRAIN_HPP
#define SHEAF_TRAIN_HPP

#include "sheaf/sheaf.hpp"
#include "sheaf/train.h"

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>

namespace sheaf {

/// The instances of a file, for the model's entry.
inline Values readValues(const Model &model, const std::string &path,
                         sheaf_read_options options = {}) {
  options.size = sizeof options;
  sheaf_values *values = nullptr;
  check(sheaf_values_read(model.get(), path.c_str(), &options, &values));
  return Values(values);
}
inline sheaf_read_report reportOf(const Values &values) {
  sheaf_read_report report{};
  report.size = sizeof report;
  check(sheaf_values_report(values.get(), &report));
  return report;
}

/// What a function of the model comes to over data. Copies share it.
class Measure {
public:
  explicit Measure(sheaf_measure *measure) : measure_(measure, sheaf_measure_release) {}
  /// Of the model's entry, with the weights that it has in the session.
  Measure(const Session &session, const Model &model, const Values &data,
          sheaf_measure_options options = {}) {
    options.size = sizeof options;
    sheaf_measure *measure = nullptr;
    check(sheaf_measure_take(session.get(), model.get(), data.get(), &options, &measure));
    measure_.reset(measure, sheaf_measure_release);
  }
  sheaf_measure *get() const { return measure_.get(); }

  sheaf_scores scores() const {
    sheaf_scores scores{};
    scores.size = sizeof scores;
    check(sheaf_measure_scores(get(), &scores));
    return scores;
  }
  double value() const { return scores().value; }
  /// The first instance that failed.
  Failure failure() const {
    sheaf_failure failure{};
    failure.size = sizeof failure;
    check(sheaf_measure_failure(get(), &failure));
    return detail::failureOf(failure);
  }

  struct Cell {
    std::int64_t actual = 0, predicted = 0;
    std::uint64_t times = 0;
  };
  Cell cell(std::size_t number) const {
    Cell cell;
    check(sheaf_measure_cell(get(), number, &cell.actual, &cell.predicted, &cell.times));
    return cell;
  }

private:
  std::shared_ptr<sheaf_measure> measure_;
};

/// Gives a model the weights that another has in this session, by name.
inline void copyWeights(const Session &session, const Model &from, const Model &to) {
  check(sheaf_session_copy_weights(session.get(), from.get(), to.get()));
}

/// A training of a model's weights in a session. Copies are one training.
class Training {
public:
  Training(const Session &session, const Model &model, const Values &data,
           sheaf_training_options options = {}) {
    options.size = sizeof options;
    sheaf_training *training = nullptr;
    check(sheaf_training_create(session.get(), model.get(), data.get(), &options, &training));
    training_.reset(training, sheaf_training_release);
  }
  sheaf_training *get() const { return training_.get(); }

  /// The last that is added decides which weights are best.
  void addMeasure(const Model &model, const Values &data, sheaf_measure_options options = {}) {
    options.size = sizeof options;
    check(sheaf_training_add_measure(get(), model.get(), data.get(), &options));
  }

  /// The texts of an event are valid until the next.
  sheaf_training_event next() { return next(nullptr); }
  sheaf_training_event next(const Stop &stop) { return next(stop.get()); }

  /// The instance that `error` of the last event, a step, tells of.
  Failure failure() const {
    sheaf_failure failure{};
    failure.size = sizeof failure;
    check(sheaf_training_failure(get(), &failure));
    return detail::failureOf(failure);
  }

  /// Those of the last epoch.
  std::size_t measures() const { return sheaf_training_measure_count(get()); }
  Measure measure(std::size_t number) const {
    sheaf_measure *measure = nullptr;
    check(sheaf_training_measure(get(), number, &measure));
    return Measure(measure);
  }

  void checkpoint() { check(sheaf_training_checkpoint(get())); }
  void save(const std::string &path) { check(sheaf_training_save(get(), path.c_str())); }
  /// False when no epoch was the best, or nothing has kept it.
  bool restoreBest() {
    int found = 0;
    check(sheaf_training_restore_best(get(), &found));
    return found != 0;
  }

  /// The events that are still to come, but for SHEAF_TRAINING_ENDED.
  class Iterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = sheaf_training_event;
    using difference_type = std::ptrdiff_t;
    using pointer = const sheaf_training_event *;
    using reference = const sheaf_training_event &;

    Iterator() = default;
    explicit Iterator(Training &training) : training_(&training) { ++*this; }
    reference operator*() const { return event_; }
    pointer operator->() const { return &event_; }
    Iterator &operator++() {
      event_ = training_->next();
      if (event_.kind == SHEAF_TRAINING_ENDED)
        training_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(const Iterator &other) const { return training_ == other.training_; }
    bool operator!=(const Iterator &other) const { return training_ != other.training_; }

  private:
    Training *training_ = nullptr; ///< null: at the end
    sheaf_training_event event_{};
  };
  Iterator begin() { return Iterator(*this); }
  Iterator end() { return {}; }

private:
  sheaf_training_event next(sheaf_stop *stop) {
    sheaf_training_event event{};
    event.size = sizeof event;
    check(sheaf_training_next(get(), stop, &event));
    return event;
  }

  std::shared_ptr<sheaf_training> training_;
};

} // namespace sheaf

#endif // SHEAF_TRAIN_HPP
