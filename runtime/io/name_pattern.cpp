#include "runtime/io/name_pattern.h"

#include "runtime/model/error.h"

#include <algorithm>
#include <fmt/format.h>

namespace sheaf::io {

std::optional<std::vector<std::string_view>> matchPattern(std::string_view name,
                                                          std::string_view pattern) {
  std::vector<std::string_view> stars;
  size_t n = 0, p = 0, star = std::string_view::npos, begin = 0;
  while (n < name.size() || p < pattern.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      begin = n;
      stars.emplace_back(name.substr(n, 0));
    } else if (n < name.size() && p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos && begin + stars.back().size() < name.size()) {
      // The last star takes one more character; what earlier ones took need not change.
      stars.back() = name.substr(begin, stars.back().size() + 1);
      p = star;
      n = begin + stars.back().size();
    } else {
      return std::nullopt;
    }
  }
  return stars;
}

bool matchesAny(std::string_view name, const std::vector<std::string> &patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string &pattern) { return matches(name, pattern); });
}

Rename parseRename(const std::string &text, const std::string &term) {
  size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
    throw UserError(fmt::format("{} takes FROM=TO, not '{}'", term, text));
  Rename rename{text.substr(0, equals), text.substr(equals + 1)};
  auto stars = [](const std::string &pattern) {
    return std::count(pattern.begin(), pattern.end(), '*');
  };
  if (stars(rename.to) > stars(rename.from))
    throw UserError(
        fmt::format("{} {}: '{}' has more stars than '{}'", term, text, rename.to, rename.from));
  return rename;
}

std::optional<size_t> renameOf(std::string_view name, const std::vector<Rename> &renames) {
  auto found = std::find_if(renames.begin(), renames.end(),
                            [&](const Rename &rename) { return matches(name, rename.from); });
  return found == renames.end() ? std::nullopt : std::optional<size_t>(found - renames.begin());
}

std::string renamed(std::string_view name, const std::vector<Rename> &renames) {
  std::optional<size_t> number = renameOf(name, renames);
  if (!number)
    return std::string(name);
  const Rename &rename = renames[*number];
  std::vector<std::string_view> stars = *matchPattern(name, rename.from);
  std::string result;
  size_t star = 0;
  for (char c : rename.to)
    if (c == '*')
      result += stars[star++];
    else
      result += c;
  return result;
}

} // namespace sheaf::io
