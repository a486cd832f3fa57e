#include "runtime/fit/config.h"

#include "runtime/fit/training.h"
#include "runtime/io/json.h"
#include "runtime/io/output.h"
#include "runtime/io/text.h"
#include "runtime/io/weights_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

namespace sheaf::fit {

namespace {

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

constexpr const char *kIndent = "  ";

void append(std::string &out, const std::string &text, const char * = "") {
  io::appendJsonString(out, text);
}
void append(std::string &out, bool truth, const char * = "") { out += truth ? "true" : "false"; }
void append(std::string &out, double number, const char * = "") { io::appendNumber(out, number); }
void append(std::string &out, uint64_t number, const char * = "") { out += std::to_string(number); }
void append(std::string &out, int number, const char * = "") { out += std::to_string(number); }

/// One member or element a line.
template <typename Container, typename Each>
void appendLines(std::string &out, const Container &of, const char *brackets, const char *indent,
                 Each each) {
  out += brackets[0];
  bool first = true;
  for (const auto &one : of) {
    out += first ? "\n" : ",\n";
    first = false;
    out += indent;
    out += kIndent;
    each(one);
  }
  if (!first) {
    out += '\n';
    out += indent;
  }
  out += brackets[1];
}
void append(std::string &out, const std::vector<std::string> &list, const char *indent = "") {
  appendLines(out, list, "[]", indent, [&](const std::string &text) { append(out, text); });
}
void append(std::string &out, const std::map<std::string, std::string> &map,
            const char *indent = "") {
  appendLines(out, map, "{}", indent, [&](const auto &entry) {
    append(out, entry.first);
    out += ": ";
    append(out, entry.second);
  });
}

template <typename T> std::string textOf(const T &value) {
  std::string text;
  append(text, value);
  return text;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

using io::JsonEvent, io::JsonPull;

// All return whether the value that begins with `first` is of the member's type.

bool take(JsonPull &pull, JsonEvent first, std::string &out) {
  if (first == JsonEvent::String)
    out = pull.text();
  return first == JsonEvent::String;
}
bool take(JsonPull &, JsonEvent first, bool &out) {
  out = first == JsonEvent::True;
  return out || first == JsonEvent::False;
}
bool take(JsonPull &pull, JsonEvent first, double &out) {
  return first == JsonEvent::Number && io::parseDouble(pull.text(), out);
}
template <typename Int> bool takeInteger(JsonPull &pull, JsonEvent first, Int &out) {
  std::string_view text = pull.text();
  if (first != JsonEvent::Number)
    return false;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}
bool take(JsonPull &pull, JsonEvent first, uint64_t &out) { return takeInteger(pull, first, out); }
bool take(JsonPull &pull, JsonEvent first, int &out) { return takeInteger(pull, first, out); }
bool take(JsonPull &pull, JsonEvent first, std::vector<std::string> &out) {
  out.clear();
  if (first == JsonEvent::String) { // there was one metric once
    if (!pull.text().empty())
      out.emplace_back(pull.text());
    return true;
  }
  if (first != JsonEvent::BeginArray)
    return false;
  for (JsonEvent event; (event = pull.next()) != JsonEvent::EndArray;)
    if (!take(pull, event, out.emplace_back()))
      return false;
  return true;
}
bool take(JsonPull &pull, JsonEvent first, std::map<std::string, std::string> &out) {
  out.clear();
  if (first != JsonEvent::BeginObject)
    return false;
  while (pull.next() != JsonEvent::EndObject) {
    std::string key(pull.text());
    if (!take(pull, pull.next(), out[key]))
      return false;
  }
  return true;
}

/// Members that there were not always.
constexpr std::array kLater = {
    "precision", "strict_weights", "rename",  "init_from", "fresh",       "lr_for",
    "decay_for", "patience",       "history", "ended",     "strict_data", "skip_bad_lines",
    "forks",     "target_cache",   "target",  "tokenizer", "constants",   "parts",
    "sums",      "own_weights",    "untold",  "lr_factors"};

} // namespace

void TrainConfig::save(const std::string &path) const {
  std::string text = "{";
  forEachConfigMember([&](const char *key, auto member) {
    text += text.size() == 1 ? "\n" : ",\n";
    text += kIndent;
    append(text, std::string(key));
    text += ": ";
    append(text, this->*member, kIndent);
  });
  text += "\n}\n";
  io::AtomicFile file(path);
  file.write(text);
  file.commit();
}

void TrainConfig::load(const std::string &path) {
  io::SourceText source = io::readSource(path);
  std::set<std::string> found;
  auto refuse = [&](const std::string &key) {
    throw PlacedError({path}, "'" + key + "' is missing or wrong");
  };
  sums = 1; // of files that do not say so
  try {
    JsonPull pull(source.text);
    if (pull.next() != JsonEvent::BeginObject)
      throw io::TextError{0, "an object of options is expected"};
    while (pull.next() != JsonEvent::EndObject) {
      std::string name(pull.text());
      JsonEvent first = pull.next();
      bool known = false;
      forEachConfigMember([&](const char *key, auto member) {
        if (name != key || known)
          return;
        known = true;
        if (!found.insert(name).second || !take(pull, first, this->*member))
          refuse(name);
      });
      if (!known)
        pull.skip(first);
    }
  } catch (const io::TextError &error) {
    io::TextPlace place = io::PlaceFinder(source.text).at(error.offset);
    io::failAt(path, place.line, place.column, error.message);
  }
  forEachConfigMember([&](const char *key, auto) {
    if (!found.contains(key) &&
        std::find(kLater.begin(), kLater.end(), std::string_view(key)) == kLater.end())
      refuse(key);
  });
}

std::string configOption(std::string_view key) {
  std::string option = key == "model" ? std::string(key) : "--" + std::string(key);
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

std::vector<std::string> configChanges(const TrainConfig &before, const TrainConfig &now) {
  std::vector<std::string> changes;
  forEachConfigMember([&](const char *key, auto member) {
    if (before.*member == now.*member)
      return;
    std::string is = textOf(now.*member), was = textOf(before.*member);
    changes.push_back(
        std::string_view(key) == "sums"
            ? fmt::format("gradients summed in order {} instead of {}: last bits differ from those "
                          "of a training that goes on as it was begun",
                          is, was)
            : fmt::format("{} {} instead of {}", configOption(key), is, was));
  });
  return changes;
}

void describeOptions(const TrainingOptions &options, const rt::Model &model, TrainConfig &config) {
  const rt::TrainerOptions &trainer = options.trainer;
  const rt::OptimizerOptions &optimizer = trainer.optimizer;
  config.epochs = std::to_string(options.epochs);
  config.patience = std::to_string(options.patience);
  config.checkpointEvery = std::to_string(options.checkpointEvery);
  config.keep = std::to_string(options.keep);
  config.batch = std::to_string(trainer.batch);
  config.accumulate = std::to_string(trainer.accumulate);
  if (trainer.parts) // else one that is taken up has as many as it had
    config.parts = std::to_string(trainer.parts);
  config.seed = trainer.seed;
  config.reduction = trainer.sum ? "sum" : "mean";
  config.detectAnomaly = trainer.findAnomalies;
  bool isDynamic = trainer.lossScale.isDynamic();
  config.lossScale = isDynamic == model.f16 && (isDynamic || trainer.lossScale.scale() == 1)
                         ? "auto"
                     : isDynamic ? "dynamic"
                                 : textOf(trainer.lossScale.scale());
  config.ema = std::max(trainer.averageDecay, 0.0);
  config.schedule = rt::scheduleName(trainer.rate.schedule);
  config.rate = trainer.rate.peak;
  config.warmup = std::to_string(trainer.rate.warmup);
  config.optimizer = rt::optimizers()[optimizer.kind].name;
  config.momentum = optimizer.momentum;
  config.beta1 = optimizer.beta1;
  config.beta2 = optimizer.beta2;
  config.decay = optimizer.decay;
  config.epsilon = optimizer.epsilon;
  config.weightDecay = optimizer.weightDecay;
  config.clip = optimizer.clip;
  config.freeze.clear();
  for (size_t param : options.frozen)
    config.freeze.push_back(model.params[param].name);
  config.noDecay.clear();
  config.rateFor.clear();
  config.decayFor.clear();
  config.rateFactors.clear();
  for (size_t i = 0; i < options.updates.size(); ++i) {
    const rt::ParamUpdate &update = options.updates[i];
    if (update.rate != 1)
      config.rateFactors.push_back(model.params[i].name + "=" + textOf(update.rate));
    if (update.decay)
      config.decayFor.push_back(model.params[i].name + "=" + textOf(*update.decay));
  }
}

} // namespace sheaf::fit
