// Extents as polynomials.

#include "compiler/ops/Dim.h"

#include <gtest/gtest.h>

#include <random>

namespace sheaf {
namespace {

Dim sym(const char *name) { return Dim::symbol(name); }

TEST(Dim, NormalForm) {
  Dim n = sym("n"), h = sym("h");
  EXPECT_EQ(n + h, h + n);
  EXPECT_EQ(n * h, h * n);
  EXPECT_EQ((n + h) * (n - h), n * n - h * h);
  EXPECT_EQ(n + n, Dim(2) * n);
  EXPECT_EQ(n - n, Dim(0));
  EXPECT_EQ(n * Dim(0), Dim());
  EXPECT_NE(n, h);
  EXPECT_NE(n, n + Dim(1));
}

TEST(Dim, Text) {
  Dim n = sym("n"), h = sym("hidden");
  EXPECT_EQ(Dim(0).str(), "0");
  EXPECT_EQ(Dim(7).str(), "7");
  EXPECT_EQ(Dim(-7).str(), "-7");
  EXPECT_EQ(n.str(), "n");
  EXPECT_EQ((Dim(2) * h + Dim(1)).str(), "2*hidden + 1");
  EXPECT_EQ((h * n + h - Dim(3)).str(), "hidden*n + hidden - 3");
  EXPECT_EQ((Dim(1) - n).str(), "1 - n");
  EXPECT_EQ((Dim(0) - n).str(), "-n");
  EXPECT_EQ((Dim(0) - n - h).str(), "-hidden - n");
  EXPECT_EQ((n * n - Dim(2) * n).str(), "n*n - 2*n");
  EXPECT_EQ((Dim::fresh() + Dim(1)).str(), "? + 1");
  EXPECT_EQ(Dim(INT64_MIN).str(), "-9223372036854775808");
}

TEST(Dim, Fresh) {
  Dim a = Dim::fresh(), b = Dim::fresh();
  EXPECT_EQ(a, a);
  EXPECT_NE(a, b);
  EXPECT_TRUE(a.isFresh());
  EXPECT_FALSE((a + Dim(1)).isFresh());
  EXPECT_FALSE(sym("n").isFresh());
  EXPECT_EQ(a.str(), "?");
}

TEST(Dim, Division) {
  Dim n = sym("n"), h = sym("h");
  EXPECT_EQ((Dim(4) * h).dividedBy(Dim(2)), Dim(2) * h);
  EXPECT_EQ((Dim(4) * h).dividedBy(h), Dim(4));
  EXPECT_EQ((n * n - h * h).dividedBy(n + h), n - h);
  EXPECT_EQ((n * n - h * h).dividedBy(h - n), Dim(0) - n - h);
  EXPECT_EQ(Dim(12).dividedBy(Dim(-4)), Dim(-3));
  EXPECT_EQ(Dim(0).dividedBy(n), Dim(0));
  EXPECT_EQ((Dim(3) * h).dividedBy(Dim(2)), std::nullopt);
  EXPECT_EQ(h.dividedBy(n), std::nullopt);
  EXPECT_EQ((h + Dim(1)).dividedBy(h), std::nullopt);
  EXPECT_EQ(h.dividedBy(Dim(0)), std::nullopt);
  EXPECT_EQ(Dim(7).dividedBy(Dim(2)), std::nullopt);
  EXPECT_EQ(Dim(INT64_MIN).dividedBy(Dim(-1)), std::nullopt);
}

TEST(Dim, DivisionUndoesMultiplication) {
  std::mt19937 random(3);
  auto any = [&] {
    Dim d;
    for (int i = 0; i < 4; ++i) {
      Dim term(static_cast<int64_t>(random() % 7) - 3);
      for (unsigned k = random() % 3; k > 0; --k)
        term = term * sym(std::array{"a", "b", "c"}[random() % 3]);
      d = d + term;
    }
    return d;
  };
  for (int round = 0; round < 2000; ++round) {
    Dim x = any(), y = any();
    if (y == Dim(0))
      continue;
    ASSERT_EQ((x * y).dividedBy(y), x) << x.str() << " | " << y.str();
  }
}

TEST(Dim, Questions) {
  Dim n = sym("n"), h = sym("h");
  EXPECT_TRUE(Dim(0).isConstant());
  EXPECT_TRUE(Dim(3).isConstant());
  EXPECT_EQ(Dim(3).constant(), 3);
  EXPECT_EQ(Dim().constant(), 0);
  EXPECT_FALSE(n.isConstant());
  EXPECT_EQ(n.asSymbol(), "n");
  EXPECT_EQ((Dim(2) * n).asSymbol(), std::nullopt);
  EXPECT_EQ((n * h).asSymbol(), std::nullopt);
  EXPECT_EQ((n * h + h + Dim(1)).symbols(), (std::vector<std::string>{"h", "n"}));
}

TEST(Dim, Substitution) {
  Dim n = sym("n"), h = sym("h");
  auto lookup = [&](const std::string &name) -> std::optional<Dim> {
    if (name == "h")
      return Dim(4) * n;
    return std::nullopt;
  };
  EXPECT_EQ((h * h + Dim(2) * n + Dim(1)).substitute(lookup),
            Dim(16) * n * n + Dim(2) * n + Dim(1));
  EXPECT_EQ((h - Dim(4) * n).substitute(lookup), Dim(0));
}

TEST(Dim, OverflowGivesAFreshSymbol) {
  Dim big(INT64_MAX), n = sym("n");
  EXPECT_FALSE((big + Dim(1)).isConstant());
  EXPECT_FALSE((big * Dim(2)).isConstant());
  EXPECT_NE(big * n * Dim(2), big * n * Dim(2));
  EXPECT_FALSE((Dim(INT64_MIN) - Dim(1)).isConstant());
  EXPECT_EQ((Dim(INT64_MAX) - Dim(1)).constant(), INT64_MAX - 1);
}

} // namespace
} // namespace sheaf
