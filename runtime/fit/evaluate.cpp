#include "runtime/fit/evaluate.h"

#include "runtime/model/convert.h"
#include "runtime/model/error.h"
#include "runtime/session/init.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace sheaf::fit {

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

std::string Data::failure(const RunError &error) const {
  return nameOf ? fmt::format("{}: {}", nameOf(error.instance()), error.what()) : error.what();
}

std::optional<Metric> Metric::parse(const std::string &text) {
  size_t colon = text.find(':');
  Metric metric{text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
  constexpr std::array scores = {"accuracy", "precision", "recall", "f1"};
  bool isScore = std::find(scores.begin(), scores.end(), metric.score) != scores.end();
  if (metric.function.empty() || (colon != std::string::npos && !isScore))
    return std::nullopt;
  return metric;
}

void requireMeasure(const rt::Model &model, const Metric &metric) {
  if (model.entry.emits)
    throw UserError("'" + model.entry.name + "' is no measure: it emits");
  const rt::TypeDesc &type = model.types.types.at(model.entry.resultType);
  bool number = type.kind == rt::TypeKind::Int || type.kind == rt::TypeKind::Float ||
                type.kind == rt::TypeKind::Bool ||
                (type.kind == rt::TypeKind::Tensor && type.shape.empty() && !type.isToken);
  bool pairs = rt::isPrediction(model.types, model.entry.resultType);
  if (!number && !pairs)
    throw UserError("'" + model.entry.name +
                    "' is no measure: its result must be a number, a truth value, a tensor of one "
                    "without axes, or a pair of the predicted and the actual class");
  if (number && !metric.score.empty())
    throw UserError(fmt::format("'{}' has no {}: its result is a number, not a pair of the "
                                "predicted and the actual class",
                                model.entry.name, metric.score));
}

rt::ClassScores Measure::scores() const { return isBool ? confusion->of(1) : confusion->macro(); }

std::string className(const rt::Model &model, const io::Vocabularies &vocabularies,
                      int64_t number) {
  const rt::TypeTable &types = model.types;
  const rt::TypeDesc &type = types.types[rt::classType(types, model.entry.resultType)];
  if (type.kind == rt::TypeKind::Bool ||
      (type.kind == rt::TypeKind::Tensor && type.dtype == rt::DType::Bool))
    return number ? "true" : "false";
  if (type.kind == rt::TypeKind::Token || type.isToken)
    if (const io::Vocabulary *words = vocabularies.find(type.vocab);
        words && words->hasWords() && number >= 0 && number < words->size())
      return std::string(words->word(number));
  return std::to_string(number);
}

namespace {

/// Adds up what instances come to.
class Measuring {
public:
  Measuring(rt::Session &session, const Data &data)
      : session_(session), data_(data), type_(session.model().entry.resultType) {
    const rt::TypeTable &types = session.model().types;
    if (!rt::isPrediction(types, type_))
      return;
    measure_.confusion.emplace();
    const rt::TypeDesc &of = types.types[rt::classType(types, type_)];
    measure_.isBool = of.kind == rt::TypeKind::Bool ||
                      (of.kind == rt::TypeKind::Tensor && of.dtype == rt::DType::Bool);
  }

  /// Those that had too little memory run again later, but count in the order of the data.
  void run(std::span<const rt::Instance> some, const std::stop_token &stop) {
    values_.assign(some.size(), 0);
    failures_.assign(some.size(), std::nullopt);
    rt::runEach(
        some, [&](std::span<const rt::Instance> part) { return session_.run(part, stop); },
        [&](size_t i, const rt::Outcome &outcome) {
          if (!outcome.ok())
            failures_[i] = {*outcome.error, data_.failure(*outcome.error)};
          else if (measure_.confusion)
            failures_[i] = addPairs(some[i], outcome);
          else
            values_[i] = valueOf(outcome);
        });
    for (size_t i = 0; i < some.size(); ++i) {
      if (!failures_[i]) {
        ++measure_.instances;
        sum_ += values_[i];
      } else if (measure_.failed++ == 0) {
        measure_.error = failures_[i]->text;
        measure_.firstFailed = failures_[i]->error;
        if (data_.nameOf)
          measure_.firstPlace = data_.nameOf(failures_[i]->error.instance());
      }
    }
  }

  Measure finish(const Metric &metric) {
    if (!measure_.confusion) {
      if (measure_.instances)
        measure_.value = sum_ / static_cast<double>(measure_.instances);
      return measure_;
    }
    rt::ClassScores scores = measure_.scores();
    measure_.value = metric.score == "accuracy"    ? measure_.confusion->accuracy()
                     : metric.score == "precision" ? scores.precision
                     : metric.score == "recall"    ? scores.recall
                                                   : scores.f1;
    return measure_;
  }

private:
  double valueOf(const rt::Outcome &outcome) {
    const rt::TypeDesc &type = session_.model().types.types.at(type_);
    if (type.kind == rt::TypeKind::Tensor)
      return elementOf(session_.tensor(type_, outcome.slots));
    if (type.kind == rt::TypeKind::Float)
      return std::bit_cast<double>(outcome.slots[0]);
    return static_cast<double>(outcome.slots[0]);
  }

  struct Failed {
    RunError error;
    std::string text; ///< with its place in the data
  };
  std::optional<Failed> addPairs(const rt::Instance &instance, const rt::Outcome &outcome) {
    std::string problem = rt::addPrediction(
        *measure_.confusion, session_.model().types, type_, outcome.slots,
        [&](uint32_t type, const rt::Slot *slots) { return session_.tensor(type, slots); });
    if (problem.empty())
      return std::nullopt;
    return Failed{RunError(instance.index, problem),
                  data_.nameOf ? fmt::format("{}: {}", data_.nameOf(instance.index), problem)
                               : problem};
  }

  rt::Session &session_;
  const Data &data_;
  uint32_t type_;
  Measure measure_;
  double sum_ = 0;
  std::vector<double> values_;
  std::vector<std::optional<Failed>> failures_;
};

} // namespace

std::optional<Measure> evaluate(rt::Session &session, const Data &data, const Metric &metric,
                                const EvaluateOptions &options) {
  Measuring measuring(session, data);
  std::span<const rt::Instance> rest = data.instances;
  while (!rest.empty()) {
    std::span<const rt::Instance> some =
        rest.first(std::min<size_t>(static_cast<size_t>(options.batch), rest.size()));
    rest = rest.subspan(some.size());
    measuring.run(some, options.stop);
    // What ran when it was asked for may have failed for that.
    if (options.stop.stop_requested())
      return std::nullopt;
    if (options.progress)
      options.progress(static_cast<int64_t>(some.size()));
  }
  return measuring.finish(metric);
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

} // namespace sheaf::fit
