#include "runtime/io/model_config.h"

#include "runtime/io/json.h"
#include "runtime/io/text.h"
#include "runtime/io/weights_path.h"
#include "runtime/model/error.h"

#include <fmt/format.h>
#include <vector>

namespace sheaf::io {

using Member = ModelConfig::Member;

static Member scalar(JsonEvent event, const JsonPull &json) {
  std::string_view text = json.text();
  Member member;
  if (event == JsonEvent::True || event == JsonEvent::False) {
    member.kind = Member::Kind::Bool;
    member.truth = event == JsonEvent::True;
  } else if (event == JsonEvent::String) {
    member.kind = Member::Kind::String;
    member.text = text;
  } else if (event == JsonEvent::Number) {
    member.kind = Member::Kind::Number;
    member.text = text;
    if (!parseDouble(text, member.number))
      throw TextError{json.offset(), fmt::format("the number {} is too large", text)};
  }
  return member;
}

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
        if (!config.members_.try_emplace(path).second)
          throw TextError{json.offset(), fmt::format("the member {} is there twice", quoted(path))};
      } else if (event == JsonEvent::BeginObject) {
        open.emplace_back();
      } else if (event == JsonEvent::EndObject) {
        int64_t entries = open.back().entries;
        open.pop_back();
        if (!open.empty())
          config.members_[open.back().path] = {Member::Kind::Object, "", false, 0, entries};
      } else if (event == JsonEvent::BeginArray) {
        int64_t entries = 0;
        for (; json.peek() != JsonEvent::EndArray; ++entries)
          json.skip(json.next());
        json.next();
        config.members_[path] = {Member::Kind::Array, "", false, 0, entries};
      } else {
        config.members_[path] = scalar(event, json);
      }
    }
  } catch (const TextError &error) {
    TextPlace place = PlaceFinder(text).at(error.offset);
    failAt(name, place.line, place.column, error.message);
  }
  return config;
}

static std::optional<ModelConfig> read(const std::string &path) {
  return isFile(path) ? std::optional(ModelConfig::parse(readSource(path).text, path))
                      : std::nullopt;
}

std::optional<ModelConfig> ModelConfig::beside(const std::string &weights) {
  return weights.empty() ? std::nullopt : read(fileBeside(weights, "config.json"));
}

std::optional<ModelConfig> ModelConfig::other(const std::string &file) const {
  return read(fileBeside(name_, file));
}

const Member *ModelConfig::find(const std::string &member) const {
  auto it = members_.find(member);
  return it == members_.end() || it->second.kind == Member::Kind::Null ? nullptr : &it->second;
}

std::string Member::describe() const {
  switch (kind) {
  case Kind::Null:
    return "null";
  case Kind::Bool:
    return truth ? "true" : "false";
  case Kind::Number:
    return text;
  case Kind::String:
    return "the string " + quoted(text);
  case Kind::Object:
    return fmt::format("an object of {}", plural(entries, "member"));
  case Kind::Array:
    break;
  }
  return fmt::format("an array of {}", plural(entries, "element"));
}

std::optional<int64_t> Member::whole() const {
  if (kind == Kind::Object || kind == Kind::Array)
    return entries;
  int64_t value = 0;
  return kind == Kind::Number && parseInteger(text, value) ? std::optional(value) : std::nullopt;
}

} // namespace sheaf::io
