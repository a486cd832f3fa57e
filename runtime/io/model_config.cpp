#include "runtime/io/model_config.h"

#include "runtime/io/json.h"
#include "runtime/io/text.h"
#include "runtime/io/weights_path.h"
#include "runtime/model/error.h"

#include <fmt/format.h>
#include <vector>

namespace sheaf::io {

ModelConfig ModelConfig::parse(std::string_view text, const std::string &name) {
  ModelConfig config;
  config.name_ = name;
  try {
    JsonPull json(text, 64);
    if (JsonEvent first = json.next(); first != JsonEvent::BeginObject)
      throw TextError{json.offset(), fmt::format("expected an object, found {}",
                                                 describeEvent(first, json.text()))};
    struct Level { // an open object
      std::string path;
      int64_t entries = 0;
    };
    std::vector<Level> open(1);
    for (JsonEvent event; (event = json.next()) != JsonEvent::End;) {
      std::string &path = open.back().path;
      if (event == JsonEvent::Key) {
        std::string outer = open.size() > 1 ? open[open.size() - 2].path + "." : "";
        path = outer + std::string(json.text());
        ++open.back().entries;
      } else if (event == JsonEvent::BeginObject) {
        open.emplace_back();
      } else if (event == JsonEvent::EndObject) {
        int64_t entries = open.back().entries;
        open.pop_back();
        if (!open.empty())
          config.members_[open.back().path] = std::to_string(entries);
      } else if (event == JsonEvent::BeginArray) {
        int64_t entries = 0;
        for (; json.peek() != JsonEvent::EndArray; ++entries)
          json.skip(json.next());
        json.next();
        config.members_[path] = std::to_string(entries);
      } else if (event == JsonEvent::Number) {
        config.members_[path] = json.text();
      } else if (event != JsonEvent::Null) {
        config.members_[path] = describeEvent(event, json.text());
      }
    }
  } catch (const TextError &error) {
    TextPlace place = PlaceFinder(text).at(error.offset);
    failAt(name, place.line, place.column, error.message);
  }
  return config;
}

std::optional<ModelConfig> ModelConfig::beside(const std::string &weights) {
  std::string path = fileBeside(weights, "config.json");
  if (weights.empty() || !isFile(path))
    return std::nullopt;
  return parse(readSource(path).text, path);
}

std::optional<int64_t> ModelConfig::size(const std::string &member) const {
  auto it = members_.find(member);
  if (it == members_.end())
    return std::nullopt;
  int64_t value = 0;
  if (!parseInteger(it->second, value) || value < 1 || value >= int64_t{1} << 31)
    throw UserError(fmt::format("{}: the member {} is {}, but a dim is a whole number from 1 to {}",
                                name_, quoted(member), it->second, (int64_t{1} << 31) - 1));
  return value;
}

} // namespace sheaf::io
