//===- GradCheck.cpp - Gradients against finite differences ---------------===//
#include "compiler/driver/GradCheck.h"

#include "compiler/driver/FlatValue.h"
#include "compiler/driver/ReportJson.h"
#include "compiler/oracle/Convert.h"
#include "compiler/oracle/Oracle.h"
#include "runtime/error.h"

#include "mlir/IR/BuiltinOps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace sheaf::driver {

namespace {

/// Of an element's magnitude: the error of a central difference in f64 is then about 1e-10.
constexpr double kStep = 1e-5;

class GradChecker {
public:
  GradChecker(const CompiledModel &model, std::span<const rt::Instance> instances,
              const std::function<void(rt::Session &)> &initialise, const GradCheckOptions &options)
      : model_(model), instances_(instances), initialise_(initialise), options_(options) {}

  GradCheckReport run() {
    report_.model = model().name;
    report_.allowed = options_.tolerance;
    report_.ok = compute() && compare();
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

  double lossWith(const oracle::Weights &weights) {
    oracle::OracleOptions options;
    options.sampleSeed = options_.session.sampleSeed;
    // What is read is constant to gradients: it stays what it was with the weights as they are.
    std::vector<double> *reads = nullptr;
    size_t next = 0;
    bool first = reads_.empty();
    options.onRead = [&](double element) {
      if (first)
        reads->push_back(element);
      return next < reads->size() ? (*reads)[next++] : element;
    };
    if (first)
      reads_.resize(instances_.size());
    oracle::Oracle oracle(model_.program(), weights, oracle::Precision::F64, options);
    double sum = 0;
    for (size_t i = 0; i < instances_.size(); ++i) {
      const rt::Instance &instance = instances_[i];
      reads = &reads_[i];
      next = 0;
      std::vector<oracle::Value> result =
          oracle.run(model().entry.name,
                     oracle::fromInstance(model().types, model().entry.argTypes, instance.args),
                     instance.index);
      sum += oracle::tensor(result.at(0)).data[0];
    }
    return sum / static_cast<double>(instances_.size());
  }

  double difference(const std::string &param, size_t element, double relativeStep) {
    const ops::RefTensor &tensor = *weights_.at(param);
    double step = relativeStep * std::max(1.0, std::fabs(tensor.data[element]));
    auto shifted = [&](double by) {
      oracle::Weights weights = weights_;
      auto changed = std::make_shared<ops::RefTensor>(tensor);
      changed->data[element] += by;
      weights[param] = changed;
      return lossWith(weights);
    };
    return (shifted(step) - shifted(-step)) / (2 * step);
  }

  /// Elements to look at: half of them, if possible, among those with a gradient.
  std::vector<size_t> sample(const std::vector<float> &gradient) {
    std::vector<size_t> all(gradient.size()), chosen;
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = i;
    std::shuffle(all.begin(), all.end(), random_);
    auto wanted = static_cast<size_t>(options_.samples);
    for (bool zero : {false, true})
      for (size_t i : all)
        if ((gradient[i] == 0) == zero && chosen.size() < (zero ? wanted : (wanted + 1) / 2 * 2))
          chosen.push_back(i);
    return chosen;
  }

  bool compare() {
    lossWith(weights_); // remembers what is read
    std::vector<std::pair<size_t, std::vector<size_t>>> work;
    int64_t total = 0, done = 0;
    for (size_t i = 0; i < gradients_.size(); ++i) {
      // Only f32 is trained.
      if (model().params[i].synthetic || model().params[i].dtype != rt::DType::F32)
        continue;
      work.emplace_back(i, sample(gradients_[i]));
      total += static_cast<int64_t>(work.back().second.size());
    }
    bool ok = true;
    for (auto &[which, elements] : work) {
      const rt::ParamDesc &param = model().params[which];
      ParamCheck &check = report_.params.emplace_back();
      double scale = 1e-4;
      for (float g : gradients_[which])
        scale = std::max(scale, std::fabs(static_cast<double>(g)));
      for (size_t element : elements) {
        if (options_.progress)
          options_.progress(++done, total);
        double expected = difference(param.name, element, kStep);
        double actual = gradients_[which][element];
        double error = std::fabs(expected - actual) / std::max(scale, std::fabs(expected));
        // A decision that turns around makes the loss jump: the quotient has no limit.
        if (error > options_.tolerance &&
            std::fabs(difference(param.name, element, kStep / 8)) > 4 * std::fabs(expected)) {
          ++check.leftOut;
          continue;
        }
        check.error = std::max(check.error, error);
        if (!(error <= options_.tolerance)) {
          check.wrong.push_back({element, actual, expected});
          ok = false;
        }
      }
      check.name = param.name;
      check.elements = gradients_[which].size();
      check.sampled = elements.size();
      check.greatest = scale;
    }
    return ok;
  }

  const CompiledModel &model_;
  std::span<const rt::Instance> instances_;
  const std::function<void(rt::Session &)> &initialise_;
  const GradCheckOptions &options_;
  oracle::Weights weights_;
  std::vector<std::vector<float>> gradients_; ///< by parameter
  std::vector<std::vector<double>> reads_;    ///< by instance
  std::mt19937_64 random_{1};
  GradCheckReport report_;
};

} // namespace

std::string gradCheckText(const GradCheckReport &report) {
  std::string text;
  for (const ParamCheck &param : report.params) {
    for (const WrongGradient &wrong : param.wrong)
      text += fmt::format("{}[{}]: the gradient is {:.8g}, the difference {:.8g}\n", param.name,
                          wrong.element, wrong.gradient, wrong.difference);
    text += fmt::format(
        "{}: {} of {} elements, greatest gradient {:.3g}, largest error {:.2g} of it{}\n",
        param.name, param.sampled, param.elements, param.greatest, param.error,
        param.leftOut ? fmt::format("; {} where a decision turns around left out", param.leftOut)
                      : "");
  }
  if (!report.problem.empty())
    text += report.problem + "\n";
  return text + (report.ok ? "gradients verified\n" : "gradients NOT verified\n");
}

std::string gradCheckJson(const GradCheckReport &report) {
  Json params = Json::array();
  for (const ParamCheck &param : report.params) {
    Json wrong = Json::array();
    for (const WrongGradient &each : param.wrong)
      wrong.push_back({{"element", each.element},
                       {"gradient", each.gradient},
                       {"difference", each.difference}});
    params.push_back({{"name", param.name},
                      {"elements", param.elements},
                      {"sampled", param.sampled},
                      {"greatest_gradient", param.greatest},
                      {"largest_error", param.error},
                      {"left_out", param.leftOut},
                      {"wrong", wrong}});
  }
  Json json = reportJson("grad-check", 1,
                         {{"model", report.model},
                          {"ok", report.ok},
                          {"allowed_error", report.allowed},
                          {"params", params}});
  if (!report.problem.empty())
    json["problem"] = report.problem;
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
