//===- GradCheckReport.cpp - What grad-check tells ------------------------===//
#include "compiler/report/ReportJson.h"
#include "compiler/verify/Conditioning.h"
#include "compiler/verify/GradCheck.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace sheaf::driver {

/// NaN without a sign, which says nothing.
static double plain(double x) {
  return std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x;
}

static std::string trainCheckText(const TrainCheckReport &report) {
  std::string text;
  if (!report.steps.empty())
    text += fmt::format("{} steps: the loss goes from {:.6g} to {:.6g}, in f64 from {:.6g} to "
                        "{:.6g}, largest difference {:.2g} of it\n",
                        report.steps.size(), plain(report.steps.front().loss),
                        plain(report.steps.back().loss), plain(report.steps.front().oracleLoss),
                        plain(report.steps.back().oracleLoss), report.error);
  if (report.failed)
    text += fmt::format("instances that failed, as compiled and in f64, were left out {} times\n",
                        report.failed);
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
               {"failed", report.failed},
               {"steps", steps}};
  if (!report.problem.empty())
    json["problem"] = report.problem;
  return json;
}

static std::string paramText(const ParamCheck &param) {
  std::string text = fmt::format("{}: {} elements, ", param.name, param.elements);
  text += param.greatest == 0 ? "no gradient reaches any"
                              : fmt::format("greatest gradient {:.3g}", plain(param.greatest));
  text += fmt::format(", largest error {:.2g} of {}", param.error,
                      param.greatest == param.scale ? "it" : fmt::format("{:.3g}", param.scale));
  if (param.conditioned)
    text +=
        fmt::format(" ({:.2g} allowed by {:.0f}x the worst of runs whose roundings go either way)",
                    param.conditioned, kConditioningFactor);
  if (param.hasDifferences())
    text += fmt::format(", the oracle's {:.2g} along {} direction{}", param.oracleError,
                        param.directions, param.directions == 1 ? "" : "s");
  if (param.leftOut)
    text += fmt::format("; left out, at a kink or a decision that turns around: {}{}",
                        param.leftOut, param.hasDifferences() ? "" : ", which are all");
  return text + "\n";
}

/// Of which parameters less is known than that the gradients are verified.
static std::string exceptionsText(const GradCheckReport &report) {
  std::string names;
  for (const ParamCheck &param : report.params)
    if (!param.hasDifferences())
      names += (names.empty() ? "" : ", ") + param.name;
  return names.empty() ? "" : "; NOT compared with differences, in no direction: " + names;
}

std::string gradCheckText(const GradCheckReport &report) {
  std::string text;
  for (const ParamCheck &param : report.params) {
    for (const WrongGradient &wrong : param.wrong)
      text += fmt::format("{}[{}]: the gradient is {:.8g}, that of the oracle {:.8g}\n", param.name,
                          wrong.element, plain(wrong.gradient), plain(wrong.expected));
    if (param.wrongCount > param.wrong.size())
      text +=
          fmt::format("{}: {} more are wrong\n", param.name, param.wrongCount - param.wrong.size());
    for (const WrongGradient &wrong : param.wrongRule)
      text += fmt::format("{}[{}]: the oracle's gradient is {:.12g}, the difference {:.12g}\n",
                          param.name, wrong.element, plain(wrong.gradient), plain(wrong.expected));
    text += paramText(param);
  }
  if (report.failed)
    text += fmt::format("{} of {} instances failed, as compiled and by the oracle, and are left "
                        "out; the first: {}\n",
                        report.failed, report.instances, report.failure);
  if (!report.problem.empty())
    text += report.problem + "\n";
  text +=
      report.ok ? "gradients verified" + exceptionsText(report) + "\n" : "gradients NOT verified\n";
  return report.training ? text + trainCheckText(*report.training) : text;
}

std::string whatIsWrong(const GradCheckReport &report) {
  if (!report.problem.empty())
    return report.problem;
  auto howWrong = [](const WrongGradient &wrong) {
    return std::isnan(wrong.gradient)       ? "NaN"
           : std::isinf(wrong.gradient)     ? "infinite"
           : !std::isfinite(wrong.expected) ? "finite, which it should not be"
           : wrong.gradient == 0            ? "zero"
                                            : "wrong";
  };
  for (const ParamCheck &param : report.params) {
    if (!param.wrong.empty())
      return fmt::format("the compiled gradient is {}", howWrong(param.wrong.front()));
    if (!param.wrongRule.empty())
      return fmt::format("the gradient of the oracle is {}", howWrong(param.wrongRule.front()));
  }
  if (report.training && !report.training->problem.empty())
    return report.training->problem;
  return "the losses of the training differ";
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
                      {"scale", param.scale},
                      {"largest_error", param.error},
                      {"conditioned_error", param.conditioned},
                      {"wrong_elements", param.wrongCount},
                      {"wrong", list(param.wrong, "oracle")},
                      {"directions", param.directions},
                      {"left_out", param.leftOut},
                      {"compared_with_differences", param.hasDifferences()},
                      {"largest_oracle_error", param.oracleError},
                      {"wrong_oracle", list(param.wrongRule, "difference")}});
  Json json = reportJson("grad-check", 3,
                         {{"model", report.model},
                          {"ok", report.ok},
                          {"instances", report.instances},
                          {"failed", report.failed},
                          {"allowed_error", report.allowed},
                          {"allowed_oracle_error", GradCheckOptions::kOracleTolerance},
                          {"params", params}});
  if (report.failed)
    json["first_failure"] = report.failure;
  if (!report.problem.empty())
    json["problem"] = report.problem;
  if (report.training)
    json["training"] = trainCheckJson(*report.training);
  return jsonText(json);
}

} // namespace sheaf::driver
