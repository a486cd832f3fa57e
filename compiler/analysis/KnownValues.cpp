//===- KnownValues.cpp - Taking apart what was put together ---------------===//

#include "compiler/analysis/KnownValues.h"
#include "compiler/analysis/Casts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace sheaf::passes {

std::optional<int64_t> intConstant(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  if (!constant)
    return std::nullopt;
  auto attr = dyn_cast<IntegerAttr>(constant.getValue());
  return attr ? std::optional(attr.getInt()) : std::nullopt;
}

bool makesOfParams(Operation *function) {
  return function
      ->walk([](Operation *op) {
        bool does = isa<ir::TupleOp, ir::ConstructOp, ir::ListMakeOp, ir::ConsOp>(op) &&
                    llvm::any_of(op->getOperands(), [](Value operand) {
                      return castSource(operand).getDefiningOp<ir::ParamRefOp>() != nullptr;
                    });
        return does ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace {

/// Whether values may stand for others of these types: fields, elements and results may be declared
/// with `?` where the type of the value knows the extent, or the other way round.
bool canBecome(ValueRange values, TypeRange types) {
  return values.size() == types.size() && llvm::all_of(llvm::zip(values, types), [](auto pair) {
           auto [value, type] = pair;
           return value.getType() == type ||
                  (isa<RankedTensorType>(value.getType()) && isa<RankedTensorType>(type));
         });
}

void become(MutableArrayRef<Value> values, TypeRange types, Location loc, OpBuilder &builder) {
  for (auto [value, type] : llvm::zip(values, types))
    value = makeCast(builder, loc, value, type);
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

struct FoldLen : OpRewritePattern<ir::LenOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ir::LenOp len, PatternRewriter &rewriter) const override {
    Operation *list = len.getList().getDefiningOp();
    if (auto made = dyn_cast_or_null<ir::ListMakeOp>(list)) {
      auto count = rewriter.getI64IntegerAttr(static_cast<int64_t>(made.getElements().size()));
      rewriter.replaceOpWithNewOp<arith::ConstantOp>(len, count);
      return success();
    }
    Value same;
    if (auto map = dyn_cast_or_null<ir::MapOp>(list))
      same = map.getList();
    else if (auto scan = dyn_cast_or_null<ir::ScanOp>(list))
      same = scan.getList();
    else if (auto reverse = dyn_cast_or_null<ir::ReverseOp>(list))
      same = reverse.getList();
    if (!same)
      return failure();
    rewriter.replaceOpWithNewOp<ir::LenOp>(len, len.getType(), same);
    return success();
  }
};

struct FoldListGet : OpRewritePattern<ir::ListGetOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ir::ListGetOp get, PatternRewriter &rewriter) const override {
    auto made = get.getList().getDefiningOp<ir::ListMakeOp>();
    std::optional<int64_t> index = intConstant(get.getIndex());
    if (!made || !index || *index < 0 || *index >= static_cast<int64_t>(made.getElements().size()))
      return failure();
    Value element = made.getElements()[*index];
    if (element.getType() != get.getType())
      return failure();
    rewriter.replaceOp(get, element);
    return success();
  }
};

/// A list with so many elements at most, one of them a parameter, that a loop over it is written
/// out.
constexpr size_t kMostTurns = 64;
/// Operations that one loop may become: loops in loops become the product of theirs.
constexpr size_t kMostWritten = 1024;
bool holdsParams(ir::ListMakeOp list) {
  return list && list.getElements().size() <= kMostTurns &&
         llvm::any_of(list.getElements(), [](Value element) {
           return castSource(element).getDefiningOp<ir::ParamRefOp>() != nullptr;
         });
}

/// Writes a loop over a list of parameters out, turn by turn.
template <typename LoopOp> struct WriteOut : OpRewritePattern<LoopOp> {
  using OpRewritePattern<LoopOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(LoopOp loop, PatternRewriter &rewriter) const override {
    auto list = loop.getList().template getDefiningOp<ir::ListMakeOp>();
    if (!holdsParams(list))
      return failure();
    constexpr bool carries = std::is_same_v<LoopOp, ir::FoldOp>;
    Block &body = loop.getBody().front();
    size_t size = 0;
    body.walk([&](Operation *) { ++size; });
    if (size * list.getElements().size() > kMostWritten)
      return failure();
    Operation *yield = body.getTerminator();
    size_t element = carries ? 1 : 0;
    Type elementType = body.getArgument(element).getType();
    if (!llvm::all_of(list.getElements(), [&](Value each) { return canBecome(each, elementType); }))
      return failure();
    SmallVector<Value> carried, results;
    if constexpr (carries) {
      carried.push_back(loop.getInit());
      if (!canBecome(carried, body.getArgument(0).getType()) ||
          !canBecome(yield->getOperands(), body.getArgument(0).getType()) ||
          !canBecome(carried, loop.getResult().getType()))
        return failure();
    } else if (yield->getOperandTypes() !=
               TypeRange(cast<ir::ListType>(loop.getResult().getType()).getElement())) {
      return failure();
    }
    Location loc = loop.getLoc();
    for (auto [number, value] : llvm::enumerate(list.getElements())) {
      IRMapping map;
      if (carries)
        map.map(body.getArgument(0),
                makeCast(rewriter, loc, carried[0], body.getArgument(0).getType()));
      map.map(body.getArgument(element), makeCast(rewriter, loc, value, elementType));
      if (body.getNumArguments() > element + 1)
        map.map(body.getArgument(element + 1),
                arith::ConstantOp::create(
                    rewriter, loc, rewriter.getI64IntegerAttr(static_cast<int64_t>(number))));
      for (Operation &op : body.without_terminator())
        rewriter.clone(op, map);
      Value result = map.lookupOrDefault(yield->getOperand(0));
      if (carries)
        carried[0] = result;
      else
        results.push_back(result);
    }
    if (carries)
      rewriter.replaceOp(loop, makeCast(rewriter, loc, carried[0], loop.getResult().getType()));
    else
      rewriter.replaceOpWithNewOp<ir::ListMakeOp>(loop, loop.getResult().getType(), results);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Tuples and data
//===----------------------------------------------------------------------===//

/// A tuple taken apart and put together again.
struct FoldTupleOfFields : OpRewritePattern<ir::TupleOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ir::TupleOp op, PatternRewriter &rewriter) const override {
    Value whole;
    for (auto [i, field] : llvm::enumerate(op.getFields())) {
      auto get = field.getDefiningOp<ir::GetOp>();
      if (!get || get.getIndex() != i || (whole && get.getTuple() != whole))
        return failure();
      whole = get.getTuple();
    }
    if (!whole || whole.getType() != op.getType())
      return failure();
    rewriter.replaceOp(op, whole);
    return success();
  }
};

/// A match on a value that was made here takes one arm.
struct FoldKnownMatch : OpRewritePattern<ir::MatchOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ir::MatchOp match, PatternRewriter &rewriter) const override {
    auto made = match.getScrutinee().getDefiningOp<ir::ConstructOp>();
    if (!made)
      return failure();
    auto it = llvm::find(match.getCases(), static_cast<int64_t>(made.getCtor()));
    bool named = it != match.getCases().end();
    Block &arm = match.getArms()[it - match.getCases().begin()].front();
    Operation *yield = arm.getTerminator();
    SmallVector<Value> fields;
    if (named)
      llvm::append_range(fields, made.getFields());
    if ((named && !canBecome(fields, arm.getArgumentTypes())) ||
        !canBecome(yield->getOperands(), match.getResultTypes()))
      return failure();
    rewriter.setInsertionPoint(match);
    become(fields, arm.getArgumentTypes(), match.getLoc(), rewriter);
    SmallVector<Value> results(yield->getOperands());
    for (Value &result : results)
      if (auto argument = dyn_cast<BlockArgument>(result); argument && argument.getOwner() == &arm)
        result = fields[argument.getArgNumber()];
    rewriter.eraseOp(yield);
    rewriter.inlineBlockBefore(&arm, match, fields);
    rewriter.setInsertionPoint(match);
    become(results, match.getResultTypes(), match.getLoc(), rewriter);
    rewriter.replaceOp(match, results);
    return success();
  }
};

} // namespace

void populateKnownValuePatterns(RewritePatternSet &patterns) {
  patterns.add<FoldLen, FoldListGet, FoldTupleOfFields, FoldKnownMatch, WriteOut<ir::FoldOp>,
               WriteOut<ir::MapOp>>(patterns.getContext());
}

} // namespace sheaf::passes
