//===- name_pattern.h - Names of parameters with `*` ------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_IO_NAME_PATTERN_H
#define SHEAF_RUNTIME_IO_NAME_PATTERN_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::io {

/// What the stars of a pattern stand for in a name, one after the other, each as short as may be;
/// nothing when the name does not match. `*` stands for any characters, all else for itself.
std::optional<std::vector<std::string_view>> matchPattern(std::string_view name,
                                                          std::string_view pattern);

inline bool matches(std::string_view name, std::string_view pattern) {
  return matchPattern(name, pattern).has_value();
}
bool matchesAny(std::string_view name, const std::vector<std::string> &patterns);

/// Names that match `from` become `to`, in which the stars stand, in order, for what they stood for
/// in the name.
struct Rename {
  std::string from, to;
  std::string text() const { return from + "=" + to; }
};

/// `FROM=TO`. Throws UserError for another form, or when TO has more stars than FROM; `term` is
/// what its caller's users call a rename.
Rename parseRename(const std::string &text, const std::string &term = "a rename");

/// The first that matches decides; a name that none matches stays.
std::string renamed(std::string_view name, const std::vector<Rename> &renames);
/// The number of that one.
std::optional<size_t> renameOf(std::string_view name, const std::vector<Rename> &renames);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_NAME_PATTERN_H
