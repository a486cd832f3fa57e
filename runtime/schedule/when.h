//===- when.h - When something is done that costs and saves -----*- C++ -*-===//
#ifndef SHEAF_RUNTIME_SCHEDULE_WHEN_H
#define SHEAF_RUNTIME_SCHEDULE_WHEN_H

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace sheaf::rt {

/// When a session does something that saves memory and costs time; it changes no result.
enum class When : uint8_t {
  Worth, ///< where it is worth it: each use says where
  Always,
  Never
};

struct NamedWhen {
  When when;
  std::string_view name;
};
inline constexpr NamedWhen kWhens[] = {
    {When::Worth, "worth"}, {When::Always, "always"}, {When::Never, "never"}};

inline std::optional<When> whenByName(std::string_view name) {
  auto it = std::find_if(std::begin(kWhens), std::end(kWhens),
                         [&](const NamedWhen &named) { return named.name == name; });
  return it == std::end(kWhens) ? std::nullopt : std::optional(it->when);
}

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_SCHEDULE_WHEN_H
