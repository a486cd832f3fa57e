// Types written as in the source, for tests of the operator records.
#ifndef SHEAF_TESTS_OPS_TYPES_H
#define SHEAF_TESTS_OPS_TYPES_H

#include "compiler/ops/Op.h"

#include <string_view>

namespace sheaf::ops::test {

/// `hidden + 2*n - 1`. Throws on anything else; so do the others.
Dim dim(std::string_view text);
/// `f32[n, 2*hidden]`, `token<word>[n]`, `i32`, `int`, `float`, `bool`, `token`,
/// `list<f32[hidden]>`, `list<f32[4]>[n]`. Bare `bool` and `token` are host types, `bool[]` and
/// `token[]` tensors.
OperandType type(std::string_view text);
/// `axis=1, dims=[n, 4], eps=0.5, size=2*n`: a number is an int, with a point a float; anything
/// else an extent.
Attrs attrs(std::string_view text);

/// As the type checker answers: equal only if proven. hidden is 256, h is 4, one is 1; all other
/// names are per-instance.
class StrictOracle : public DimOracle {
public:
  bool same(const Dim &a, const Dim &b) const override;
  std::optional<int64_t> value(const Dim &d) const override;
  std::optional<Dim> quotient(const Dim &a, const Dim &b) const override;
};

/// What the shape rule says: the result types, `; `-separated, or `error: ...` with ` [operand]`
/// where it blames one and ` (help: ...)` where it helps.
std::string shapeOf(std::string_view op, const std::vector<std::string> &operands,
                    std::string_view attributes = "");

} // namespace sheaf::ops::test

#endif // SHEAF_TESTS_OPS_TYPES_H
