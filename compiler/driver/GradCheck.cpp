//===- GradCheck.cpp - Gradients against finite differences ---------------===//
#include "compiler/driver/GradCheck.h"

#include "compiler/driver/FlatValue.h"
#include "compiler/driver/ReportJson.h"
#include "compiler/oracle/Convert.h"
#include "compiler/oracle/Gradient.h"
#include "runtime/error.h"

#include "mlir/IR/BuiltinOps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace sheaf::driver {

namespace {

/// By how much every element of a parameter changes: errors of central differences in f64, of the
/// third derivative and of rounding, are then about 1e-10.
constexpr double kStep = 1e-5;
/// Elements of a parameter that are told when they are wrong.
constexpr size_t kMostTold = 8;

class GradChecker {
public:
  GradChecker(const CompiledModel &model, std::span<const rt::Instance> instances,
              const std::function<void(rt::Session &)> &initialise, const GradCheckOptions &options)
      : model_(model), instances_(instances), initialise_(initialise), options_(options) {}

  GradCheckReport run() {
    report_.model = model().name;
    report_.allowed = options_.tolerance;
    report_.ok = compute() && differentiate() && compare();
    return std::move(report_);
  }

private:
  const rt::Model &model() const { return model_.model(); }

  bool fail(const std::string &message) {
    report_.problem = message;
    return false;
  }

  /// The compiled gradients, on several numbers of threads.
  bool compute() {
    for (unsigned threads : {1u, 2u, 3u}) {
      rt::SessionOptions options = options_.session;
      options.threads = threads;
      options.keepBytes = 0;
      rt::Session session(model(), options);
      initialise_(session);
      std::span<const rt::Outcome> outcomes = session.run(instances_);
      for (size_t i = 0; i < outcomes.size(); ++i) {
        if (!outcomes[i].ok())
          return fail(outcomes[i].error->what());
        float loss = 0;
        session.tensor(model().entry.resultType, outcomes[i].slots).copyTo(&loss);
        if (!std::isfinite(loss))
          return fail(fmt::format("instance {}: the loss is {}", instances_[i].index, loss));
      }
      std::vector<float> weights(instances_.size(), 1.0F / static_cast<float>(instances_.size()));
      std::span<const rt::ParamGradient> gradients = session.backward(weights);
      if (threads == 1)
        weights_ = oracle::weightsOf(session);
      for (size_t i = 0; i < model().params.size(); ++i) {
        std::vector<float> gradient = gradientOf(model().params[i], gradients[i]);
        if (threads == 1)
          gradients_.push_back(std::move(gradient));
        else if (!gradient.empty() && std::memcmp(gradient.data(), gradients_[i].data(),
                                                  gradient.size() * sizeof(float)) != 0)
          return fail(fmt::format("the gradient of {} is not the same on {} threads as on one",
                                  model().params[i].name, threads));
      }
    }
    return true;
  }

  /// The mean loss and its gradients by the oracle.
  double gradientsOf(mlir::ModuleOp program, oracle::Precision precision,
                     oracle::OracleOptions options, oracle::ParamGradients &gradients) {
    oracle::GradientOracle differentiated(program, precision, std::move(options));
    differentiated.setWeights(weights_);
    auto count = static_cast<double>(instances_.size());
    double sum = 0;
    for (const rt::Instance &instance : instances_) {
      reads_.emplace_back();
      sum += differentiated.addGradients(model().entry.name, argumentsOf(instance), instance.index,
                                         0, 1 / count, gradients);
    }
    return sum / count;
  }

  /// Remembers what is read: it is constant to gradients, and stays what it was with the weights
  /// as they are.
  bool differentiate() {
    oracle::OracleOptions options;
    options.sampleSeed = options_.session.sampleSeed;
    if (model_.precision() == Precision::Bf16)
      gradientsOf(model_.roundedProgram(), oracle::Precision::Bf16, options, rounded_);
    reads_.clear();
    options.onRead = [&](double element) { return reads_.back().emplace_back(element); };
    loss_ = gradientsOf(model_.program(), oracle::Precision::F64, options, exact_);
    options.onRead = [&](double element) {
      return nextRead_ < atReads_->size() ? (*atReads_)[nextRead_++] : element;
    };
    oracle_.emplace(model_.program(), weights_, oracle::Precision::F64, options);
    return std::isfinite(loss_) || fail(fmt::format("the loss of the oracle is {}", loss_));
  }

  std::vector<oracle::Value> argumentsOf(const rt::Instance &instance) const {
    return oracle::fromInstance(model().types, model().entry.argTypes, instance.args);
  }

  double lossWith(const oracle::Weights &weights) {
    oracle_->setWeights(weights);
    double sum = 0;
    for (size_t i = 0; i < instances_.size(); ++i) {
      atReads_ = &reads_[i];
      nextRead_ = 0;
      std::vector<oracle::Value> result =
          oracle_->run(model().entry.name, argumentsOf(instances_[i]), instances_[i].index);
      sum += oracle::tensor(result.at(0)).data[0];
    }
    return sum / static_cast<double>(instances_.size());
  }

  /// How fast the loss grows when the elements [begin, end) of a parameter change by these signs.
  double difference(const std::string &param, const std::vector<double> &signs, size_t begin,
                    size_t end, double step) {
    const ops::RefTensor &tensor = *weights_.at(param);
    auto shifted = [&](double by) {
      oracle::Weights weights = weights_;
      auto changed = std::make_shared<ops::RefTensor>(tensor);
      for (size_t i = begin; i < end; ++i)
        changed->data[i] += by * signs[i];
      weights[param] = changed;
      return lossWith(weights);
    };
    return (shifted(step) - shifted(-step)) / (2 * step);
  }

  static double along(const std::vector<double> &gradient, const std::vector<double> &signs,
                      size_t begin, size_t end) {
    double sum = 0;
    for (size_t i = begin; i < end && i < gradient.size(); ++i)
      sum += gradient[i] * signs[i];
    return sum;
  }

  /// The oracle's gradient along a direction in which no element stands still: that one of them is
  /// wrong shows as it is, with a random sign.
  bool checkDirection(ParamCheck &check, const std::vector<double> &gradient) {
    std::vector<double> signs(check.elements);
    for (double &sign : signs)
      sign = random_() & 1 ? 1 : -1;
    double expected = along(gradient, signs, 0, signs.size());
    double error = INFINITY, first = 0, last = 0;
    // Where a function has a kink near, a shorter step may not reach it.
    for (double step : {kStep, kStep / 8}) {
      last = difference(check.name, signs, 0, signs.size(), step);
      if (step == kStep)
        first = last;
      error = std::min(error, std::fabs(last - expected) / check.greatest);
      if (error <= GradCheckOptions::kOracleTolerance) {
        check.oracleError = std::max(check.oracleError, error);
        return true;
      }
    }
    // A decision that turns around makes the loss jump: the quotient has no limit.
    if (std::fabs(last) > 4 * std::max(std::fabs(first), std::fabs(expected))) {
      ++check.leftOut;
      return true;
    }
    check.oracleError = std::max(check.oracleError, error);
    check.wrongRule.push_back(findWrong(check, gradient, signs));
    return false;
  }

  /// The element that is most to blame, by halves.
  WrongGradient findWrong(const ParamCheck &check, const std::vector<double> &gradient,
                          const std::vector<double> &signs) {
    auto deviation = [&](size_t begin, size_t end) {
      return std::fabs(difference(check.name, signs, begin, end, kStep) -
                       along(gradient, signs, begin, end));
    };
    size_t begin = 0, end = signs.size();
    while (end - begin > 1) {
      size_t middle = begin + (end - begin) / 2;
      (deviation(begin, middle) >= deviation(middle, end) ? end : begin) = middle;
    }
    return {begin, begin < gradient.size() ? gradient[begin] : 0,
            difference(check.name, signs, begin, end, kStep) * signs[begin]};
  }

  /// Every element of the compiled gradient.
  bool compareCompiled(ParamCheck &check, const std::vector<float> &compiled,
                       const std::vector<double> &exact) {
    for (size_t i = 0; i < check.elements; ++i) {
      double actual = i < compiled.size() ? static_cast<double>(compiled[i]) : 0;
      double expected = i < exact.size() ? exact[i] : 0;
      double error = std::fabs(expected - actual) / check.greatest;
      check.error = std::max(check.error, error);
      if (error <= options_.tolerance)
        continue;
      if (++check.wrongCount <= kMostTold)
        check.wrong.push_back({i, actual, expected});
    }
    return check.wrongCount == 0;
  }

  bool compare() {
    std::vector<size_t> trained; // only f32 is
    for (size_t i = 0; i < model().params.size(); ++i)
      if (!model().params[i].synthetic && model().params[i].dtype == rt::DType::F32)
        trained.push_back(i);
    auto total = static_cast<int64_t>(trained.size()) * options_.directions;
    int64_t done = 0;
    bool ok = true;
    for (size_t which : trained) {
      ParamCheck &check = report_.params.emplace_back();
      check.name = model().params[which].name;
      check.elements = weights_.at(check.name)->data.size();
      const std::vector<double> &exact = exact_[check.name].elements;
      // Of a parameter that does next to nothing the loss's own rounding would be compared.
      check.greatest = 1e-4 * std::max(1.0, std::fabs(loss_));
      for (double g : exact)
        check.greatest = std::max(check.greatest, std::fabs(g));
      bool isRounded = model_.precision() == Precision::Bf16;
      ok &= compareCompiled(check, gradients_[which],
                            isRounded ? rounded_[check.name].elements : exact);
      for (int64_t i = 0; i < options_.directions; ++i) {
        if (options_.progress)
          options_.progress(++done, total);
        ++check.directions;
        if (!checkDirection(check, exact)) {
          ok = false;
          break;
        }
      }
    }
    return ok;
  }

  const CompiledModel &model_;
  std::span<const rt::Instance> instances_;
  const std::function<void(rt::Session &)> &initialise_;
  const GradCheckOptions &options_;
  oracle::Weights weights_;
  std::vector<std::vector<float>> gradients_; ///< by parameter
  oracle::ParamGradients exact_;
  oracle::ParamGradients rounded_; ///< in bf16, where the model computes in it
  double loss_ = 0;
  std::optional<oracle::Oracle> oracle_;
  std::vector<std::vector<double>> reads_; ///< by instance
  const std::vector<double> *atReads_ = nullptr;
  size_t nextRead_ = 0;
  std::mt19937_64 random_{1};
  GradCheckReport report_;
};

} // namespace

static std::string trainCheckText(const TrainCheckReport &report) {
  std::string text;
  if (!report.steps.empty())
    text +=
        fmt::format("{} steps: the loss goes from {:.6g} to {:.6g}, in f64 from {:.6g} to "
                    "{:.6g}, largest difference {:.2g} of it\n",
                    report.steps.size(), report.steps.front().loss, report.steps.back().loss,
                    report.steps.front().oracleLoss, report.steps.back().oracleLoss, report.error);
  if (!report.problem.empty())
    text += report.problem + "\n";
  return text + (report.ok ? "training verified\n" : "training NOT verified\n");
}

static Json trainCheckJson(const TrainCheckReport &report) {
  Json steps = Json::array();
  for (const CheckedStep &step : report.steps)
    steps.push_back({{"loss", step.loss},
                     {"oracle_loss", step.oracleLoss},
                     {"norm", step.norm},
                     {"oracle_norm", step.oracleNorm}});
  Json json = {{"ok", report.ok},
               {"allowed_error", report.allowed},
               {"largest_error", report.error},
               {"steps", steps}};
  if (!report.problem.empty())
    json["problem"] = report.problem;
  return json;
}

std::string gradCheckText(const GradCheckReport &report) {
  std::string text;
  for (const ParamCheck &param : report.params) {
    for (const WrongGradient &wrong : param.wrong)
      text += fmt::format("{}[{}]: the gradient is {:.8g}, that of the oracle {:.8g}\n", param.name,
                          wrong.element, wrong.gradient, wrong.expected);
    if (param.wrongCount > param.wrong.size())
      text +=
          fmt::format("{}: {} more are wrong\n", param.name, param.wrongCount - param.wrong.size());
    for (const WrongGradient &wrong : param.wrongRule)
      text += fmt::format("{}[{}]: the oracle's gradient is {:.12g}, the difference {:.12g}\n",
                          param.name, wrong.element, wrong.gradient, wrong.expected);
    text += fmt::format(
        "{}: {} elements, greatest gradient {:.3g}, largest error {:.2g} of it, "
        "the oracle's {:.2g} along {} direction{}{}\n",
        param.name, param.elements, param.greatest, param.error, param.oracleError,
        param.directions, param.directions == 1 ? "" : "s",
        param.leftOut ? fmt::format("; {} where a decision turns around left out", param.leftOut)
                      : "");
  }
  if (!report.problem.empty())
    text += report.problem + "\n";
  text += report.ok ? "gradients verified\n" : "gradients NOT verified\n";
  return report.training ? text + trainCheckText(*report.training) : text;
}

std::string gradCheckJson(const GradCheckReport &report) {
  auto list = [](const std::vector<WrongGradient> &all, const char *expected) {
    Json json = Json::array();
    for (const WrongGradient &each : all)
      json.push_back(
          {{"element", each.element}, {"gradient", each.gradient}, {expected, each.expected}});
    return json;
  };
  Json params = Json::array();
  for (const ParamCheck &param : report.params)
    params.push_back({{"name", param.name},
                      {"elements", param.elements},
                      {"greatest_gradient", param.greatest},
                      {"largest_error", param.error},
                      {"wrong_elements", param.wrongCount},
                      {"wrong", list(param.wrong, "oracle")},
                      {"directions", param.directions},
                      {"left_out", param.leftOut},
                      {"largest_oracle_error", param.oracleError},
                      {"wrong_oracle", list(param.wrongRule, "difference")}});
  Json json = reportJson("grad-check", 2,
                         {{"model", report.model},
                          {"ok", report.ok},
                          {"allowed_error", report.allowed},
                          {"allowed_oracle_error", GradCheckOptions::kOracleTolerance},
                          {"params", params}});
  if (!report.problem.empty())
    json["problem"] = report.problem;
  if (report.training)
    json["training"] = trainCheckJson(*report.training);
  return jsonText(json);
}

void requireLoss(const rt::Model &model) {
  const rt::TypeDesc &type = model.types.types.at(model.entry.resultType);
  if (type.kind != rt::TypeKind::Tensor || type.dtype != rt::DType::F32 || !type.shape.empty())
    throw UserError("'" + model.entry.name + "' is no loss: its result must be f32 without axes");
}

GradCheckReport checkGradients(const CompiledModel &model, std::span<const rt::Instance> instances,
                               const std::function<void(rt::Session &)> &initialise,
                               const GradCheckOptions &options) {
  return GradChecker(model, instances, initialise, options).run();
}

} // namespace sheaf::driver
