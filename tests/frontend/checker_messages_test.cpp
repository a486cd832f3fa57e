// Every kind of mistake that the checker finds, with its messages as they must read.

#include "compiler/frontend/Checker.h"
#include "tests/frontend/parsed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sheaf {
namespace {

struct BadProgram {
  const char *text;
  /// In source order, each as `line:column: message [help] {line:column: note}`.
  std::vector<std::string> messages;
};

std::vector<std::string> messagesOf(const Parsed &parsed) {
  auto placed = [&](SourceRange range, const std::string &message) {
    LineColumn at = parsed.source.lineColumn(range.begin);
    return fmt::format("{}:{}: {}", at.line, at.column, message);
  };
  std::vector<std::pair<uint32_t, std::string>> messages;
  for (const Diagnostic &diagnostic : parsed.diags.all()) {
    std::string text = placed(
        diagnostic.range,
        (diagnostic.severity == Severity::Warning ? "warning: " : "") + diagnostic.message);
    if (!diagnostic.help.empty())
      text += " [" + diagnostic.help + "]";
    for (const DiagnosticNote &note : diagnostic.notes)
      text += " {" + placed(note.range, note.message) + "}";
    messages.emplace_back(diagnostic.range.begin, text);
  }
  std::sort(messages.begin(), messages.end());
  std::vector<std::string> texts;
  for (auto &[offset, text] : messages)
    texts.push_back(std::move(text));
  return texts;
}

// clang-format off
const BadProgram badPrograms[] = {
};
// clang-format on

class CheckerMessages : public testing::TestWithParam<BadProgram> {};

TEST_P(CheckerMessages, ReadAsWritten) {
  Parsed parsed(GetParam().text);
  ASSERT_FALSE(parsed.diags.hasErrors()) << parsed.diags.render();
  CheckedModule checked = check(parsed.module, {}, parsed.diags);
  EXPECT_EQ(messagesOf(parsed), GetParam().messages) << GetParam().text;
  EXPECT_EQ(checked.ok, !parsed.diags.hasErrors());
}

INSTANTIATE_TEST_SUITE_P(All, CheckerMessages, testing::ValuesIn(badPrograms));

TEST(CheckerOptions, DimsFromOutsideAreChecked) {
  Parsed parsed("dim hidden = 4\nfn main(x: f32[hidden]) -> f32[hidden] = x");
  CheckOptions options;
  options.dims = {{"hiden", 8}, {"hidden", -1}};
  check(parsed.module, options, parsed.diags);
  EXPECT_EQ(messagesOf(parsed),
            (std::vector<std::string>{
                "1:1: a value is given for dim 'hiden', which the file does not declare [did you "
                "mean 'hidden'?]",
                "1:5: dim 'hidden' is -1, but a dim is from 1 to 2147483647"}));
}

TEST(CheckerOptions, OtherEntries) {
  Parsed parsed("fn first(x: int) -> int = x\nfn second(x: int) -> int = x");
  CheckOptions options;
  options.entry = "frist";
  check(parsed.module, options, parsed.diags);
  EXPECT_EQ(messagesOf(parsed),
            (std::vector<std::string>{
                "1:1: there is no function 'frist' to begin with [did you mean 'first'?]"}));
}

TEST(CheckerMessagesMany, StopAtTheLimit) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += fmt::format("fn f{}(x: int) -> float = x\n", i);
  Parsed parsed(text);
  check(parsed.module, {}, parsed.diags);
  EXPECT_EQ(parsed.diags.all().size(), 20u);
  EXPECT_TRUE(parsed.diags.tooManyErrors());
}

} // namespace
} // namespace sheaf
