//===- uses_test.cpp - Files that a model uses ----------------------------===//

#include "compiler/frontend/AstPrinter.h"
#include "compiler/frontend/Checker.h"
#include "compiler/frontend/Parser.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

namespace sheaf {
namespace {

/// A resolver of texts in memory that counts what it is asked.
struct Texts {
  std::map<std::string, std::string> texts;
  std::shared_ptr<int> asked = std::make_shared<int>(0);

  UsedFile operator()(const std::string &used, const std::string &) const {
    ++*asked;
    auto it = texts.find(used);
    return it == texts.end() ? UsedFile{{}, {}, "there is no such text"}
                             : UsedFile{it->first, it->second, {}};
  }
};

std::string errorsOf(const SourceFile &source) {
  Diagnostics diags(source);
  Module module = parseModule(source, diags);
  CheckOptions options;
  options.requireEntry = false;
  check(module, options, diags);
  return diags.render();
}

TEST(Uses, EachFileIsThereOnce) {
  Texts texts{{{"a", "use \"b\"\nfn f(x: int) -> int = g(x)"}, {"b", "fn g(x: int) -> int = x"}}};
  SourceFile source("m.sheaf", "use \"a\"\nuse \"b\" as b\nfn main(x: int) -> int = f(x) + b.g(x)",
                    texts);
  ASSERT_EQ(source.files().size(), 3u);
  EXPECT_EQ(*texts.asked, 3);
  EXPECT_EQ(source.files()[1].name(), "a");
  EXPECT_EQ(source.files()[2].name(), "b");
  EXPECT_EQ(source.name(), "m.sheaf");
  EXPECT_EQ(errorsOf(source), "");
}

TEST(Uses, OffsetsTellTheFile) {
  SourceFile source("m.sheaf", "use \"a\"", Texts{{{"a", "fn f(\n  x: int) -> int = x"}}});
  ASSERT_EQ(source.files().size(), 2u);
  const SourceText &used = source.files()[1];
  for (uint32_t i = 0; i <= source.text().size(); ++i)
    EXPECT_EQ(source.numberOf(i), 0u) << i;
  for (uint32_t i = 0; i <= used.text().size(); ++i) {
    EXPECT_EQ(source.numberOf(used.begin() + i), 1u) << i;
    EXPECT_EQ(source.slice({used.begin() + i, used.begin() + i + 1}), used.text().substr(i, 1));
  }
  EXPECT_EQ(source.lineColumn(used.begin() + 8), (LineColumn{2, 3}));
  EXPECT_EQ(used.lineText(2), "  x: int) -> int = x");
  EXPECT_EQ(source.find("a"), &used);
  EXPECT_EQ(source.find("c"), nullptr);
}

TEST(Uses, WithoutAResolverNothingCanBeUsed) {
  SourceFile source("m.sheaf", "use \"a\"\nfn main(x: int) -> int = x");
  EXPECT_EQ(errorsOf(source), "m.sheaf:1:5: error: 'a' cannot be used: no other files can be used "
                              "here\nuse \"a\"\n    ^~~\n");
}

TEST(Uses, TheResolversProblemIsTold) {
  SourceFile source("m.sheaf", "use \"a\"\nuse \"a\" as b", Texts{});
  std::string errors = errorsOf(source);
  EXPECT_NE(errors.find("m.sheaf:1:5: error: 'a' cannot be used: there is no such text"),
            std::string::npos)
      << errors;
  EXPECT_NE(errors.find("m.sheaf:2:5: error: 'a' cannot be used"), std::string::npos) << errors;
}

/// Names that lead to ever new files end.
TEST(Uses, EndlesslyManyFiles) {
  int next = 0;
  SourceFile source("m.sheaf", "use \"more\"", [&](const std::string &, const std::string &) {
    return UsedFile{std::to_string(++next), "use \"more\"", {}};
  });
  EXPECT_LE(source.files().size(), 1001u);
  EXPECT_NE(errorsOf(source).find("the model uses more than 1000 files"), std::string::npos);
}

TEST(Uses, OnlyWhatSaysSoIsUsed) {
  Texts texts;
  SourceFile source(
      "m.sheaf", "fn main(use: int) -> int = { check use > 0, \"a\"; use }\n// use \"a\"\n", texts);
  EXPECT_EQ(*texts.asked, 0);
  EXPECT_EQ(errorsOf(source), "");
}

TEST(Uses, QualifiedNamesPrintAsTheyAreWritten) {
  const std::string text = "use \"a.sheaf\" as a\n\nuse \"b.sheaf\"\n\n"
                           "fn f(x: a.T<int>, y: f32[a.n]) -> int = match x {\n"
                           "  a.C(z) => a.g(z)\n  a.D => 0\n}\n";
  SourceFile source("m.sheaf", text);
  Diagnostics diags(source);
  std::string printed = printModule(parseModule(source, diags));
  EXPECT_EQ(diags.render(), "");
  for (const char *part : {"use \"a.sheaf\" as a\n", "use \"b.sheaf\"\n", "x: a.T<int>", "f32[a.n]",
                           "a.C(z) => a.g(z)", "a.D => 0"})
    EXPECT_NE(printed.find(part), std::string::npos) << part << "\n" << printed;
}

TEST(Uses, WhatAFileUsesItselfIsNotVisible) {
  Texts texts{{{"a", "use \"b\""}, {"b", "fn g(x: int) -> int = x"}}};
  SourceFile source("m.sheaf", "use \"a\" as a\nuse \"a\"\nfn f(x: int) -> int = g(a.g(x))", texts);
  std::string errors = errorsOf(source);
  EXPECT_NE(errors.find("there is no function 'g'"), std::string::npos) << errors;
  EXPECT_NE(errors.find("'a' declares no 'g'"), std::string::npos) << errors;
}

TEST(Source, AProgramIsToldByItsBeginning) {
  for (const char *text :
       {"module {\n}", "module attributes {sheaf.x} {}", "module @m {}",
        "\"builtin.module\"() ({})", "// as printed\n#loc = loc(unknown)\n!t = i32\n\nmodule {}"})
    EXPECT_TRUE(SourceFile("m.sheaf", text).isProgram()) << text;
  for (const char *text : {"", "# module {", "dim n = 1 # module {", "fn module(x: int) -> int = x",
                           "modules {", "module", "use \"module {\""})
    EXPECT_FALSE(SourceFile("m.mlir", text).isProgram()) << text;
}

TEST(Source, IsParsedOnceAndChangedInPlacesOfItsOwn) {
  SourceFile source("m.sheaf", "dim a = 1\nfn f(x: int) -> int = (y\n");
  SourceFile copy = source;
  EXPECT_EQ(source.syntax(), copy.syntax());
  EXPECT_EQ(source.syntax()->errors, 1u);
  EXPECT_EQ(soundSyntax(source), nullptr);
  Module overlay = source.syntax()->module.overlay();
  EXPECT_EQ(overlay.arena.make<DimDecl>(SourceRange())->id, source.syntax()->module.arena.size());
  overlay.decls.clear();
  EXPECT_EQ(source.syntax()->module.decls.size(), 2u);
}

} // namespace
} // namespace sheaf
