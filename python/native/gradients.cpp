#include "python/native/gradients.h"
#include "python/native/arrays.h"
#include "python/native/decode.h"
#include "runtime/api/gradients.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <tuple>

namespace sheaf::python {

nb::object Gradients::weight(const std::string &name, bool dense) const {
  DLManagedTensor *tensor = nullptr, *indices = nullptr;
  check(
      sheaf_gradients_weight(gradients_.get(), name.c_str(), &tensor, dense ? nullptr : &indices));
  nb::object array = takeArray(tensor);
  if (!indices)
    return array;
  return nb::make_tuple(takeArray(indices), array);
}

nb::object Gradients::argument(Model &model, size_t number) const {
  sheaf_result *made = nullptr;
  check(sheaf_gradients_argument(gradients_.get(), number, &made));
  std::unique_ptr<sheaf_result, void (*)(sheaf_result *)> result(made, sheaf_result_release);
  for (const auto &item : result->data->items)
    if (!item.slots)
      return decodeEach(model, result.get());
  return decodeColumn(model, result.get());
}

nb::object Run::results(bool each) const {
  if (each)
    return decodeEach(model_, running_->result);
  raiseFailures(running_->result);
  return decodeColumn(model_, running_->result);
}

nb::list Run::failures() const {
  nb::list all;
  for (size_t i = 0; i < size(); ++i)
    if (!running_->result->data->items[i].slots)
      all.append(failureOf(running_->result, i));
  return all;
}

std::unique_ptr<Gradients> Run::backward(nb::handle cotangents,
                                         const std::vector<std::string> &frozen) const {
  using Instances = std::vector<size_t>;
  std::deque<Instances> numbers;
  std::deque<LentTensor> tensors;
  std::vector<sheaf_cotangent> all;
  if (!cotangents.is_none())
    for (nb::handle one : nb::cast<nb::list>(cotangents)) {
      auto [instances, path, array] =
          nb::cast<std::tuple<nb::object, std::vector<size_t>, nb::object>>(one);
      sheaf_cotangent &made = all.emplace_back();
      if (!instances.is_none()) {
        const Instances &which = numbers.emplace_back(nb::cast<Instances>(instances));
        made.instances = which.data();
        made.count = which.size();
      }
      const Instances &steps = numbers.emplace_back(std::move(path));
      made.path = steps.data();
      made.length = steps.size();
      made.tensor = tensors.emplace_back(array.ptr(), "a cotangent").get();
    }
  // An empty list is of cotangents, too: of a result of which nothing counts.
  static constexpr sheaf_cotangent none{};
  const sheaf_cotangent *given = cotangents.is_none() ? nullptr : all.empty() ? &none : all.data();
  std::vector<size_t> without;
  std::unique_ptr<sheaf_gradients> made;
  check(api::guarded([&] {
    for (const std::string &name : frozen)
      without.push_back(model_.loaded().weight(name.c_str()));
    Unlocked unlocked;
    made = api::backward(*running_->session, *running_->result, given, all.size(), without);
  }));
  return std::make_unique<Gradients>(running_, made.release());
}

OptimizerOptions::OptimizerOptions(const nb::dict &from) {
  options_.size = sizeof options_;
  name_ = nb::cast<std::string>(from["name"]);
  options_.name = name_.c_str();
  auto number = [&](const char *key, double &to) {
    if (from.contains(key))
      to = asGiven(nb::cast<double>(from[key]));
  };
  number("momentum", options_.momentum);
  number("beta1", options_.beta1);
  number("beta2", options_.beta2);
  number("decay", options_.decay);
  number("epsilon", options_.epsilon);
  number("weight_decay", options_.weight_decay);
  number("clip", options_.clip);
  for (nb::handle one : from["updates"]) {
    auto [pattern, rate, decay] = nb::cast<std::tuple<std::string, double, nb::object>>(one);
    patterns_.push_back(pattern);
    updates_.push_back({patterns_.back().c_str(), asGiven(rate),
                        decay.is_none() ? 0 : asGiven(nb::cast<double>(decay))});
  }
  options_.updates = updates_.data();
  options_.update_count = updates_.size();
}

namespace {

class Optimizer {
public:
  Optimizer(Session &session, const nb::dict &from) : session_(session.handle()) {
    OptimizerOptions options(from);
    sheaf_optimizer *made = nullptr;
    check(sheaf_optimizer_create(session_.get(), session.model().handle(), options.get(), &made));
    optimizer_.reset(made);
  }

  /// (length of the gradients, whether they held NaN or infinity, whether a weight has changed)
  nb::tuple step(const Gradients &gradients, double rate, double scale) {
    sheaf_step_report report{};
    report.size = sizeof report;
    sheaf_status status;
    {
      Unlocked unlocked;
      status = sheaf_optimizer_step(optimizer_.get(), gradients.handle(), rate, scale, &report);
    }
    check(status);
    return nb::make_tuple(report.norm, report.skipped != 0, report.changed != 0);
  }

  /// Whether it is of what the session is now: after a fork it is not.
  bool isOf(Session &session) const { return session.handle() == session_; }

private:
  struct Release {
    void operator()(sheaf_optimizer *optimizer) const { sheaf_optimizer_release(optimizer); }
  };
  std::shared_ptr<sheaf_session> session_;
  std::unique_ptr<sheaf_optimizer, Release> optimizer_;
};

} // namespace

void bindGradients(nb::module_ &module) {
  nb::class_<Run>(module, "Run")
      .def("__len__", &Run::size)
      .def("results", &Run::results)
      .def("failures", &Run::failures)
      .def("backward", &Run::backward, nb::arg("cotangents").none(),
           nb::arg("frozen") = std::vector<std::string>());
  nb::class_<Gradients>(module, "Gradients")
      .def("weight", &Gradients::weight)
      .def("argument", [](const Gradients &gradients, Model &model, size_t number) {
        return gradients.argument(model, number);
      });
  nb::class_<Optimizer>(module, "Optimizer")
      .def(nb::init<Session &, const nb::dict &>())
      .def("step", &Optimizer::step)
      .def("is_of", &Optimizer::isOf);
  module.def(
      "run_kept",
      [](Session &session, nb::tuple columns, uint64_t step) {
        return std::make_unique<Run>(session.model(), session.runKept(columns, step));
      },
      nb::keep_alive<0, 1>());
}

} // namespace sheaf::python
