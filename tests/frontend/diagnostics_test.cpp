// Tests of how diagnostics are rendered.

#include "compiler/frontend/Diagnostics.h"

#include <gtest/gtest.h>

#include <string>

namespace sheaf {
namespace {

/// One error over the first occurrence of `place`, rendered.
std::string rendered(const std::string &text, const std::string &place) {
  SourceFile source("m.sheaf", text);
  Diagnostics diags(source);
  auto begin = static_cast<uint32_t>(text.find(place));
  diags.error({begin, static_cast<uint32_t>(begin + place.size())}, "bad");
  return diags.render();
}

TEST(Diagnostics, PointsAtTheSource) {
  SourceFile source("m.sheaf", "dim a = 1\nlet x = (y\n");
  Diagnostics diags(source);
  diags.error({18, 20}, "expected ')'", "close it").withNote({10, 13}, "opened here");
  diags.warning({4, 5}, "not used");
  EXPECT_EQ(diags.render(), "m.sheaf:1:5: warning: not used\n"
                            "dim a = 1\n"
                            "    ^\n"
                            "m.sheaf:2:9: error: expected ')'\n"
                            "let x = (y\n"
                            "        ^~\n"
                            "help: close it\n"
                            "m.sheaf:2:1: note: opened here\n"
                            "let x = (y\n"
                            "^~~\n");
  EXPECT_EQ(diags.errorCount(), 1u);
}

TEST(Diagnostics, Columns) {
  // Tabs count as one column and are shown as blanks up to the next stop.
  EXPECT_EQ(rendered("a\tb\tcd", "cd"), "m.sheaf:1:5: error: bad\na   b   cd\n        ^~\n");
  EXPECT_EQ(rendered("é = ü + x", "x"), "m.sheaf:1:9: error: bad\né = ü + x\n        ^\n");
  EXPECT_EQ(rendered("é = ü + x", "ü"), "m.sheaf:1:5: error: bad\né = ü + x\n    ^\n");
  // Wide characters take two cells, combining ones none.
  EXPECT_EQ(rendered("日本 x", "x"), "m.sheaf:1:4: error: bad\n日本 x\n     ^\n");
  EXPECT_EQ(rendered("e\u0301 x", "x"), "m.sheaf:1:4: error: bad\ne\u0301 x\n  ^\n");
  // What could steer a terminal or is no UTF-8 is replaced.
  EXPECT_EQ(rendered("\x1b[1m\xff x", "x"),
            "m.sheaf:1:7: error: bad\n\uFFFD[1m\uFFFD x\n      ^\n");
}

TEST(Diagnostics, Edges) {
  EXPECT_EQ(rendered("", ""), "m.sheaf:1:1: error: bad\n\n^\n");
  EXPECT_EQ(rendered("a\r\nb\r\n", "b"), "m.sheaf:2:1: error: bad\nb\n^\n");
  EXPECT_EQ(rendered("ab\ncd", "b\ncd"), "m.sheaf:1:2: error: bad\nab\n ^\n");
  SourceFile source("m.sheaf", "ab\n");
  Diagnostics diags(source);
  diags.error({3, 3}, "at the end");
  diags.error({90, 95}, "beyond the end");
  EXPECT_EQ(diags.render(), "m.sheaf:2:1: error: at the end\n\n^\n"
                            "m.sheaf:2:1: error: beyond the end\n\n^\n");
}

TEST(Diagnostics, LongLinesAreCut) {
  std::string text = std::string(100000, 'a') + "!" + std::string(100000, 'b');
  std::string out = rendered(text, "!");
  EXPECT_LT(out.size(), 400u);
  EXPECT_NE(out.find("\n..." + std::string(80, 'a') + "!" + std::string(79, 'b') + "...\n" +
                     std::string(83, ' ') + "^\n"),
            std::string::npos)
      << out;
}

TEST(Diagnostics, TooManyErrors) {
  SourceFile source("m.sheaf", "x");
  Diagnostics diags(source, 2);
  diags.error({0, 1}, "first");
  diags.error({0, 1}, "second");
  EXPECT_FALSE(diags.tooManyErrors());
  diags.error({0, 1}, "third").withHelp("lost").withNote({0, 1}, "lost");
  EXPECT_TRUE(diags.tooManyErrors());
  EXPECT_EQ(diags.all().size(), 2u);
  EXPECT_EQ(diags.render(), "m.sheaf:1:1: error: first\nx\n^\n"
                            "m.sheaf:1:1: error: second\nx\n^\n"
                            "m.sheaf: error: too many errors (only 2 are shown)\n");
}

TEST(Diagnostics, Colour) {
  SourceFile source("m.sheaf", "x");
  Diagnostics diags(source);
  diags.error({0, 1}, "bad");
  EXPECT_EQ(diags.render(/*colour=*/true), "\x1b[1mm.sheaf:1:1:\x1b[0m \x1b[1;31merror:\x1b[0m "
                                           "\x1b[1mbad\x1b[0m\nx\n\x1b[1;32m^\x1b[0m\n");
}

} // namespace
} // namespace sheaf
