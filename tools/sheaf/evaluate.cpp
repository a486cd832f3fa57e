//===- evaluate.cpp - The mean of a function over data, sheaf eval --------===//
#include "tools/sheaf/evaluate.h"

#include "tools/sheaf/command.h"
#include "tools/sheaf/weights.h"

#include "runtime/convert.h"
#include "runtime/error.h"
#include "runtime/init.h"
#include "runtime/non_finite.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

namespace sheaf::tool {

namespace {

double elementOf(const rt::TensorView &view) {
  uint8_t bytes[8] = {};
  view.copyTo(bytes);
  auto as = [&](auto value) {
    std::memcpy(&value, bytes, sizeof value);
    return value;
  };
  switch (view.dtype) {
  case rt::DType::F32:
    return static_cast<double>(as(float()));
  case rt::DType::BF16:
    return static_cast<double>(rt::bf16ToFloat(as(uint16_t())));
  case rt::DType::F16:
    return static_cast<double>(rt::f16ToFloat(as(uint16_t())));
  case rt::DType::I32:
  case rt::DType::Bool:
    return as(int32_t());
  case rt::DType::I64:
    return static_cast<double>(as(int64_t()));
  }
  return 0;
}

} // namespace

void requireNumber(const rt::Model &model) {
  const rt::TypeDesc &type = model.types.types.at(model.entry.resultType);
  bool number = type.kind == rt::TypeKind::Int || type.kind == rt::TypeKind::Float ||
                type.kind == rt::TypeKind::Bool ||
                (type.kind == rt::TypeKind::Tensor && type.shape.empty() && !type.isToken);
  if (!number)
    throw UserError("'" + model.entry.name +
                    "' is no measure: its result must be a number, a truth value, or a tensor of "
                    "one without axes");
}

std::string Mean::text(int decimals) const {
  if (instances == 0)
    return "none";
  if (!std::isfinite(value))
    return rt::nonFiniteName(value);
  return decimals < 0 ? fmt::format("{:.6g}", value) : fmt::format("{:.{}f}", value, decimals);
}

driver::Json Mean::json() const {
  return instances == 0 ? driver::Json(nullptr) : driver::Json(value);
}

Mean evaluate(rt::Session &session, const LoadedRun &run, int64_t batch) {
  uint32_t resultType = session.model().entry.resultType;
  const rt::TypeDesc &type = session.model().types.types.at(resultType);
  auto valueOf = [&](const rt::Outcome &outcome) {
    if (type.kind == rt::TypeKind::Tensor)
      return elementOf(session.tensor(resultType, outcome.slots));
    if (type.kind == rt::TypeKind::Float)
      return std::bit_cast<double>(outcome.slots[0]);
    return static_cast<double>(outcome.slots[0]);
  };
  Mean mean;
  double sum = 0;
  // Those that had too little memory run again later, but count in the order of the data.
  std::vector<double> values;
  std::vector<std::string> errors;
  std::span<const rt::Instance> rest = run.instances;
  while (!rest.empty()) {
    std::span<const rt::Instance> some =
        rest.first(std::min<size_t>(static_cast<size_t>(batch), rest.size()));
    rest = rest.subspan(some.size());
    values.assign(some.size(), 0);
    errors.assign(some.size(), "");
    rt::runEach(
        some, [&](std::span<const rt::Instance> part) { return session.run(part); },
        [&](size_t i, const rt::Outcome &outcome) {
          if (outcome.ok())
            values[i] = valueOf(outcome);
          else
            errors[i] = failureText(run.data, *outcome.error);
        });
    for (size_t i = 0; i < some.size(); ++i) {
      if (errors[i].empty()) {
        ++mean.instances;
        sum += values[i];
      } else if (mean.failed++ == 0) {
        mean.error = errors[i];
      }
    }
  }
  if (mean.instances)
    mean.value = sum / static_cast<double>(mean.instances);
  return mean;
}

void copyParams(const rt::Session &from, const std::function<rt::TensorView(size_t)> &get,
                rt::Session &to) {
  const std::vector<rt::ParamDesc> &params = to.model().params;
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < params.size(); ++i) {
    int64_t source = params[i].synthetic ? -1 : from.findParam(params[i].name);
    if (source < 0) {
      // What the compiler made has its value from the initialiser.
      to.setParam(i, rt::initialise(params[i], 0));
      continue;
    }
    rt::TensorView view = get(static_cast<size_t>(source));
    bytes.resize(static_cast<size_t>(view.elements() * rt::dtypeBytes(view.dtype)));
    view.copyTo(bytes.data());
    to.setParam(i, bytes);
  }
}

namespace {

struct EvalArguments {
  ModelOptions model;
  DataOptions data;
  WeightOptions weights;
  LimitOptions limits;
  BatchOptions batches;
  FormatOption format;
};

void print(const Mean &mean, const rt::Model &model, bool asJson) {
  if (!asJson) {
    fmt::print("{} {} over {} instances\n", model.entry.name, mean.text(), mean.instances);
    return;
  }
  driver::Json json = driver::reportJson("eval", 1,
                                         {{"model", model.name},
                                          {"function", model.entry.name},
                                          {"mean", mean.json()},
                                          {"instances", mean.instances},
                                          {"failed", mean.failed}});
  if (mean.failed)
    json["first_failure"] = mean.error;
  fmt::print("{}", driver::jsonText(json));
}

int runEval(EvalArguments &arguments) {
  bool asJson = arguments.format.json();
  arguments.batches.check();
  arguments.weights.check();
  arguments.limits.check();
  LoadedRun run = loadRun(arguments.model, arguments.data, arguments.weights);
  requireNumber(run.model());
  rt::Session session(run.model(),
                      sessionOptions(arguments.limits, arguments.batches.threads, run.model()));
  if (run.compiled)
    setWeights(session, arguments.weights, run, /*quiet=*/false);
  Mean mean = evaluate(session, run, arguments.batches.batch);
  print(mean, run.model(), asJson);
  if (mean.failed)
    fmt::print(stderr, "error: {} of {} instances failed; the first: {}\n", mean.failed,
               run.instances.size(), mean.error);
  return mean.failed ? kFailed : kOk;
}

} // namespace

void addEval(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(app, "eval", "the mean of a function of the model over data");
  auto arguments = std::make_shared<EvalArguments>();
  arguments->model.add(*sub, /*vocabulary=*/true, EntryOption::Metric);
  arguments->model.addStore(*sub);
  arguments->model.addArtefact(*sub);
  arguments->data.add(*sub);
  arguments->weights.add(*sub);
  arguments->limits.add(*sub);
  arguments->batches.add(*sub);
  arguments->format.add(*sub);
  sub->callback([arguments, &action] { action = [arguments] { return runEval(*arguments); }; });
}

} // namespace sheaf::tool
