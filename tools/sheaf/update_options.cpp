//===- update_options.cpp - The options of an optimiser -------------------===//
#include "tools/sheaf/update_options.h"

#include "tools/sheaf/command.h"
#include "tools/sheaf/nearest.h"

#include "runtime/io/name_pattern.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

namespace sheaf::tool {

std::vector<size_t> paramsOf(const rt::Model &model, const std::string &option,
                             const std::vector<std::string> &patterns) {
  std::vector<size_t> found;
  std::vector<std::string> names;
  for (const rt::ParamDesc &param : model.params)
    if (!param.synthetic)
      names.push_back(param.name);
  for (const std::string &pattern : patterns) {
    size_t before = found.size();
    for (size_t i = 0; i < model.params.size(); ++i)
      if (!model.params[i].synthetic && io::matches(model.params[i].name, pattern))
        found.push_back(i);
    if (found.size() == before)
      throw UsageError(option + ": no parameter of the model is called '" + pattern + "'" +
                       didYouMean(pattern, names));
  }
  return found;
}

std::vector<size_t> frozenParams(const rt::Model &model, const std::vector<std::string> &patterns) {
  std::vector<size_t> frozen = paramsOf(model, "--freeze", patterns);
  bool isAnyLeft = patterns.empty();
  for (size_t i = 0; i < model.params.size(); ++i)
    isAnyLeft |= !model.params[i].synthetic && model.params[i].dtype == rt::DType::F32 &&
                 std::find(frozen.begin(), frozen.end(), i) == frozen.end();
  if (!isAnyLeft)
    throw UsageError("--freeze leaves no parameter that could be trained");
  return frozen;
}

void requireFraction(const char *option, double value) {
  if (!(value >= 0 && value < 1))
    throw UsageError(fmt::format("{} takes a number from 0 to less than 1", option));
}

/// `adam, adamw and lamb`: all optimisers, or those with an option.
static std::string optimizerNames(const char *last, std::string_view option = {}) {
  std::vector<std::string_view> names;
  for (const rt::OptimizerInfo &info : rt::optimizers())
    if (option.empty() ||
        std::find(info.options.begin(), info.options.end(), option) != info.options.end())
      names.push_back(info.name);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? last : ", ") + std::string(names[i]);
  return text;
}

std::vector<CLI::Option *> UpdateOptions::add(CLI::App &app) {
  HelpGroup group(app, "Steps of training");
  size_t before = app.get_options().size();
  auto number = [&](const char *name, auto &value, const std::string &meaning) {
    app.add_option(name, value, meaning)->type_name("NUMBER");
  };
  app.add_option("--optimizer", optimizer, optimizerNames(" or ") + " (default: adam)")
      ->type_name("NAME");
  number("--lr", rate, "the learning rate (default: 0.001)");
  app.add_option("--schedule", schedule,
                 "what becomes of it: constant, linear or cosine, to 0 (default: constant)")
      ->type_name("NAME");
  number("--warmup", warmup, "steps over which it grows from 0 (default: 0)");
  auto ofSome = [&](const char *name, double &value, const char *what, const char *byDefault) {
    number(name, value,
           fmt::format("{}of {} (default: {})", what, optimizerNames(" and ", name), byDefault));
  };
  ofSome("--momentum", momentum, "", "0.9");
  ofSome("--beta1", beta1, "", "0.9");
  ofSome("--beta2", beta2, "", "0.999");
  ofSome("--rmsprop-decay", decay, "of the squares ", "0.99");
  ofSome("--epsilon", epsilon, "added to the root of squares ", "1e-8");
  number("--weight-decay", weightDecay,
         "of all parameters; apart from the gradient with adamw and lamb (default: 0)");
  app.add_option("--no-decay", noDecay, "parameters without weight decay; * stands for anything")
      ->type_name("PATTERN")
      ->expected(1)
      ->take_all();
  app.add_option("--lr-for", rates,
                 "another learning rate, on the same schedule, for these parameters; the first "
                 "pattern that matches counts")
      ->type_name("PATTERN=NUMBER")
      ->expected(1)
      ->take_all();
  app.add_option("--decay-for", decays, "another weight decay for these parameters; likewise")
      ->type_name("PATTERN=NUMBER")
      ->expected(1)
      ->take_all();
  app.add_option("--freeze", frozen, "parameters that stay as they are; likewise")
      ->type_name("PATTERN")
      ->expected(1)
      ->take_all();
  number("--clip", clip, "most length of all gradients together (default: 0, no limit)");
  number("--batch", batch, "instances a mini-batch (default: 64)");
  number("--accumulate", accumulate,
         "mini-batches whose gradients make one step together (default: 1)");
  app.add_option("--parts", parts,
                 "parts that a mini-batch is divided into, by cost, and that run one after the "
                 "other: a number, or auto: 1, or as many as --memory-limit asks for in the first "
                 "step (default: auto)")
      ->type_name("N");
  app.add_option("--reduction", reduction,
                 "what a step takes of its losses: mean or sum (default: mean)")
      ->type_name("NAME");
  std::vector<CLI::Option *> all = app.get_options({});
  return {all.begin() + static_cast<ptrdiff_t>(before), all.end()};
}

void UpdateOptions::check() const {
  for (auto [name, value] : {std::pair("--beta1", beta1),
                             {"--beta2", beta2},
                             {"--momentum", momentum},
                             {"--rmsprop-decay", decay}})
    requireFraction(name, value);
  for (auto [name, value] : {std::pair("--lr", rate),
                             {"--epsilon", epsilon},
                             {"--weight-decay", weightDecay},
                             {"--clip", clip}})
    if (!(value >= 0 && std::isfinite(value)))
      throw UsageError(fmt::format("{} takes a finite number from 0", name));
}

/// What `PATTERN=NUMBER` gives to parameters: each takes the first that matches it.
static std::map<size_t, double> numbersFor(const rt::Model &model, const std::string &option,
                                           const std::vector<std::string> &texts) {
  std::map<size_t, double> numbers;
  for (const std::string &text : texts) {
    size_t equals = text.rfind('=');
    const char *begin = text.data() + std::min(equals, text.size() - 1) + 1;
    double value = 0;
    auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
    if (equals == 0 || equals == std::string::npos || error != std::errc() ||
        end != text.data() + text.size() || !(value >= 0 && std::isfinite(value)))
      throw UsageError(fmt::format("{} takes PATTERN=NUMBER with a finite number from 0, not '{}'",
                                   option, text));
    for (size_t param : paramsOf(model, option, {text.substr(0, equals)}))
      numbers.emplace(param, value);
  }
  return numbers;
}

std::vector<rt::ParamUpdate> UpdateOptions::paramUpdates(const rt::Model &model) const {
  std::vector<rt::ParamUpdate> updates(model.params.size());
  if (!rates.empty() && rate == 0)
    throw UsageError("--lr-for needs an --lr that is not 0: its schedule is that of --lr");
  for (auto [param, factor] : numbersFor(model, "--lr-factors", rateFactors))
    updates[param].rate = factor;
  for (auto [param, own] : numbersFor(model, "--lr-for", rates))
    updates[param].rate = own / rate;
  for (auto [param, own] : numbersFor(model, "--decay-for", decays))
    updates[param].decay = own;
  for (size_t param : paramsOf(model, "--no-decay", noDecay))
    updates[param].decay = 0;
  return updates;
}

rt::TrainerOptions UpdateOptions::trainer(uint64_t seed) const {
  rt::TrainerOptions options;
  options.batch = parseNumber("--batch", batch);
  options.accumulate = parseNumber("--accumulate", accumulate);
  options.parts = parts == "auto" ? 0 : parseNumber("--parts", parts);
  options.seed = seed;
  if (reduction != "mean" && reduction != "sum")
    throw UsageError(fmt::format("--reduction takes mean or sum, not '{}'", reduction));
  options.sum = reduction == "sum";
  options.optimizer.kind = fromCommandLine([&] { return rt::optimizerKind(optimizer); });
  options.optimizer.momentum = momentum;
  options.optimizer.beta1 = beta1;
  options.optimizer.beta2 = beta2;
  options.optimizer.decay = decay;
  options.optimizer.epsilon = epsilon;
  options.optimizer.weightDecay = weightDecay;
  options.optimizer.clip = clip;
  options.rate.schedule = fromCommandLine([&] { return rt::scheduleNamed(schedule); });
  options.rate.peak = rate;
  options.rate.warmup = warmup == "0" ? 0 : parseNumber("--warmup", warmup);
  return options;
}

} // namespace sheaf::tool
