//===- GradientsProducts.cpp - Gradients of matrix products ---------------===//

#include "compiler/ops/Gradient.h"

namespace sheaf::ops {
namespace {

using mlir::Value;
using Values = std::vector<Value>;

Value transpose(ExpandBuilder &b, Value x) { return applyOne(b, "transpose", x); }

/// Vectors are matrices of one row (left) or one column (right); of their products the added axis
/// is dropped. The gradients of an operator's products are products of the same operator.
Values ofMatmul(ExpandBuilder &b, const GradientCall &call) {
  auto matmul = [&](ExpandBuilder &builder, Value left, Value right) {
    return applyOne(builder, call.apply.getOp(), {left, right});
  };
  Value left = call.x(0), right = call.x(1), dy = call.dy();
  int64_t leftRank = rankOf(left), rightRank = rankOf(right);
  Value ofLeft, ofRight;
  if (leftRank == 1 && rightRank == 1)
    return {applyOne(b, "mul", {dy, right}), applyOne(b, "mul", {dy, left})};
  if (leftRank == 1) {
    if (call.wanted[0]) {
      if (rightRank == 2)
        ofLeft = matmul(b, dy, transpose(b, right));
      else
        ofLeft = sumToShapeOf(b, matmul(b, insertAxis(b, dy, rankOf(dy) - 1), transpose(b, right)),
                              left);
      // Of batches a row of each is left.
      while (rankOf(ofLeft) > 1)
        ofLeft = reduceAxis(b, "reduce_sum", ofLeft, 0, false);
    }
    if (call.wanted[1])
      ofRight = applyOne(b, "mul", {insertAxis(b, left, 1), insertAxis(b, dy, rankOf(dy) - 1)});
    return {ofLeft, ofRight};
  }
  if (rightRank == 1) {
    if (call.wanted[0])
      ofLeft = applyOne(b, "mul", {insertAxis(b, dy, rankOf(dy)), right});
    if (call.wanted[1]) {
      ofRight =
          leftRank == 2 ? matmul(b, dy, left) : matmul(b, insertAxis(b, dy, rankOf(dy) - 1), left);
      while (rankOf(ofRight) > 1)
        ofRight = reduceAxis(b, "reduce_sum", ofRight, 0, false);
    }
    return {ofLeft, ofRight};
  }
  if (call.wanted[0])
    ofLeft = sumToShapeOf(b, matmul(b, dy, transpose(b, right)), left);
  if (call.wanted[1])
    ofRight = sumToShapeOf(b, matmul(b, transpose(b, left), dy), right);
  return {ofLeft, ofRight};
}

/// Of the scores of queries (left) with keys: a score that got no gradient, as that of a key which
/// its query does not see, reads neither. `seen`: the product that leaves out zeros.
GradientRule ofScores(const char *seen) {
  return [seen](ExpandBuilder &b, const GradientCall &call) -> Values {
    Value left = call.x(0), right = call.x(1), dy = call.dy(), ofLeft, ofRight;
    if (call.wanted[0])
      ofLeft = sumToShapeOf(b, applyOne(b, seen, {dy, transpose(b, right)}), left);
    if (call.wanted[1])
      ofRight = sumToShapeOf(b, transpose(b, applyOne(b, seen, {transpose(b, dy), left})), right);
    return {ofLeft, ofRight};
  };
}

/// Of a sum of values (right) by weights. A weight that is 0 and a row that got no gradient give
/// none, whatever is beside them.
GradientRule ofSeen(const char *seen) {
  return [seen](ExpandBuilder &b, const GradientCall &call) -> Values {
    Value left = call.x(0), right = call.x(1), dy = call.dy(), ofLeft, ofRight;
    if (call.wanted[0])
      ofLeft = sumToShapeOf(b, applyOne(b, seen, {dy, transpose(b, right)}), left);
    if (call.wanted[1])
      ofRight = sumToShapeOf(b, applyOne(b, seen, {transpose(b, left), dy}), right);
    return {ofLeft, ofRight};
  };
}

} // namespace

void addProductGradients(GradientRules &rules) {
  rules["matmul"] = {Gradient::Rule, ofMatmul};
  rules["matmul_bf16"] = {Gradient::Rule, ofMatmul};
  rules["matmul_scores"] = {Gradient::Rule, ofScores("matmul_seen")};
  rules["matmul_seen"] = {Gradient::Rule, ofSeen("matmul_seen")};
  rules["matmul_scores_bf16"] = {Gradient::Rule, ofScores("matmul_seen_bf16")};
  rules["matmul_seen_bf16"] = {Gradient::Rule, ofSeen("matmul_seen_bf16")};
  // Made when gradients are there.
  rules["matmul_factors"] = {Gradient::Untrained};
  rules["matmul_seen_factors"] = {Gradient::Untrained};
}

} // namespace sheaf::ops
