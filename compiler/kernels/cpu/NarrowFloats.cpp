//===- NarrowFloats.cpp - Conversions of 16-bit floats --------------------===//

#include "compiler/kernels/cpu/NarrowFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace sheaf::kernels::cpu {
namespace {

/// Integer arithmetic on lanes (or on one number) shaped like a given value.
struct Bits {
  ImplicitLocOpBuilder b;
  Type like;

  Bits(PatternRewriter &rewriter, Operation *op)
      : b(op->getLoc(), rewriter), like(op->getResult(0).getType()) {}

  Type of(Type element) const {
    auto vector = dyn_cast<VectorType>(like);
    return vector ? Type(vector.clone(element)) : element;
  }
  Value number(TypedAttr attr) {
    if (auto vector = dyn_cast<VectorType>(of(attr.getType())))
      attr = DenseElementsAttr::get(vector, ArrayRef<Attribute>{attr});
    return arith::ConstantOp::create(b, attr);
  }
  Value number(uint32_t v) { return number(b.getI32IntegerAttr(static_cast<int32_t>(v))); }
  Value number(float v) { return number(b.getF32FloatAttr(v)); }
  Value as(Type element, Value v) { return arith::BitcastOp::create(b, of(element), v); }
  Value add(Value x, uint32_t y) { return arith::AddIOp::create(b, x, number(y)); }
  Value mask(Value x, uint32_t y) { return arith::AndIOp::create(b, x, number(y)); }
  Value left(Value x, uint32_t n) { return arith::ShLIOp::create(b, x, number(n)); }
  Value right(Value x, uint32_t n) { return arith::ShRUIOp::create(b, x, number(n)); }
  Value both(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
  Value ifBelow(Value x, uint32_t limit, Value then, Value otherwise) {
    Value below = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, number(limit));
    return arith::SelectOp::create(b, below, then, otherwise);
  }
};

/// Rounds to nearest, ties to even, as rt::floatToF16 does.
struct TruncateToF16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF16() ||
        !getElementTypeOrSelf(op.getIn().getType()).isF32())
      return failure();
    Bits i(rewriter, op);
    Type f32 = rewriter.getF32Type(), i32 = rewriter.getI32Type();
    Value all = i.as(i32, op.getIn());
    Value sign = i.mask(i.right(all, 16), 0x8000), bits = i.mask(all, 0x7FFFFFFF);
    // The sum's lowest bit is worth 2^-24, the step of subnormals, so the addition rounds.
    Value shifted = arith::AddFOp::create(i.b, i.as(f32, bits), i.number(0.5f));
    Value subnormal = i.add(i.as(i32, shifted), 0u - 0x3F000000u);
    Value odd = i.mask(i.right(bits, 13), 1);
    Value normal = i.right(arith::AddIOp::create(i.b, i.add(bits, 0xFFFu - 0x38000000u), odd), 13);
    Value finite = i.ifBelow(bits, 0x38800000, subnormal, normal);
    Value ordered = i.ifBelow(bits, 0x477FF000, finite, i.number(0x7C00u));
    Value half = i.both(sign, i.ifBelow(bits, 0x7F800001, ordered, i.number(0x7E00u)));
    Value narrow = arith::TruncIOp::create(i.b, i.of(rewriter.getI16Type()), half);
    rewriter.replaceOp(op, i.as(rewriter.getF16Type(), narrow));
    return success();
  }
};

struct ExtendF16 : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn().getType()).isF16() ||
        !getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    Bits i(rewriter, op);
    Type f32 = rewriter.getF32Type(), i32 = rewriter.getI32Type();
    Value all = arith::ExtUIOp::create(i.b, i.of(i32), i.as(rewriter.getI16Type(), op.getIn()));
    Value sign = i.left(i.mask(all, 0x8000), 16), bits = i.mask(all, 0x7FFF);
    // A subnormal is its fraction times 2^-24, exactly.
    Value fraction = arith::UIToFPOp::create(i.b, i.of(f32), bits);
    Value subnormal = i.as(i32, arith::MulFOp::create(i.b, fraction, i.number(0x1p-24f)));
    Value shifted = i.left(bits, 13);
    Value special = i.both(shifted, i.number(0x7F800000u));
    Value number = i.ifBelow(bits, 0x7C00, i.add(shifted, 112u << 23), special);
    Value magnitude = i.ifBelow(bits, 0x400, subnormal, number);
    rewriter.replaceOp(op, i.as(f32, i.both(sign, magnitude)));
    return success();
  }
};

} // namespace

void populateNarrowFloatPatterns(RewritePatternSet &patterns, const rt::Target &target) {
  arith::populateExpandBFloat16Patterns(patterns);
  if (!target.f16)
    patterns.add<TruncateToF16, ExtendF16>(patterns.getContext());
}

} // namespace sheaf::kernels::cpu
