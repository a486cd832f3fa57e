//===- Simplify.cpp - Canonical forms, common values, dead code -----------===//

#include "compiler/analysis/Casts.h"
#include "compiler/analysis/Extents.h"
#include "compiler/analysis/KnownValues.h"
#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Make.h"
#include "compiler/ops/Verify.h"
#include "compiler/passes/Pass.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

using namespace mlir;

namespace sheaf::passes {
namespace {

Value makeInt(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
}

//===----------------------------------------------------------------------===//
// Extents
//===----------------------------------------------------------------------===//

/// An extent is a constant, or follows from the extents of the operands.
struct FoldDim : OpRewritePattern<ir::DimOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ir::DimOp dim, PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(dim.getTensor().getType());
    if (!type.isDynamicDim(dim.getAxis())) {
      rewriter.replaceOp(dim, makeInt(rewriter, dim.getLoc(), type.getDimSize(dim.getAxis())));
      return success();
    }
    if (Value source = castSource(dim.getTensor()); source != dim.getTensor()) {
      rewriter.replaceOpWithNewOp<ir::DimOp>(dim, dim.getType(), source, dim.getAxisAttr());
      return success();
    }
    auto apply = dim.getTensor().getDefiningOp<ir::ApplyOp>();
    if (!apply)
      return failure();
    Value extent = materialiseExtent(
        rewriter, apply, cast<OpResult>(dim.getTensor()).getResultNumber(), dim.getAxis());
    if (!extent)
      return failure();
    rewriter.replaceOp(dim, extent);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// What types say of extents
//===----------------------------------------------------------------------===//

/// The type that says all that two types of one tensor say.
RankedTensorType meet(RankedTensorType a, RankedTensorType b) {
  SmallVector<int64_t> shape(a.getShape());
  for (auto [mine, other] : llvm::zip(shape, b.getShape()))
    if (ShapedType::isDynamic(mine))
      mine = other;
  return RankedTensorType::get(shape, a.getElementType(), a.getEncoding());
}

/// Operators take tensors whose types say more than they must; a change of type must not come
/// between two operators of one block.
struct FoldCast : OpRewritePattern<ir::GetOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ir::GetOp get, PatternRewriter &rewriter) const override {
    Value source = castSource(get);
    if (source == get)
      return failure();
    if (source.getType() == get.getType()) {
      rewriter.replaceOp(get, source);
      return success();
    }
    auto isOperator = [](Operation *user) { return isa<ir::ApplyOp>(user); };
    if (llvm::none_of(get->getUsers(), isOperator))
      return failure();
    auto type = cast<RankedTensorType>(source.getType());
    RankedTensorType both = meet(type, cast<RankedTensorType>(get.getType()));
    if (both != type) {
      // The operators need to know what only the new type says.
      if (!isTensorCode(source.getDefiningOp()) || llvm::none_of(get->getUsers(), isTensorCode))
        return failure();
      SmallVector<Value> dims;
      for (int64_t axis = 0; axis < both.getRank(); ++axis)
        if (both.isDynamicDim(axis))
          dims.push_back(ir::DimOp::create(rewriter, get.getLoc(), rewriter.getI64Type(), source,
                                           rewriter.getI64IntegerAttr(axis)));
      ImplicitLocOpBuilder builder(get.getLoc(), rewriter);
      source = ops::makeReshaped(builder, source, both, dims);
    }
    rewriter.replaceUsesWithIf(get, source,
                               [&](OpOperand &use) { return isOperator(use.getOwner()); });
    return success();
  }
};

/// An operator's results have constant extents where its operands do: kernels over constants are
/// faster.
struct RefineResults : OpRewritePattern<ir::ApplyOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ir::ApplyOp apply, PatternRewriter &rewriter) const override {
    const ops::Op *record = operatorOf(apply);
    if (!record || takesList(apply))
      return failure();
    auto taken =
        ops::takeApart(*record, apply.getOperandTypes(), apply.getAttrs(), apply.getResultTypes());
    auto *parts = std::get_if<ops::ApplyParts>(&taken);
    if (!parts)
      return failure();

    // Extents that come as operands but are constants.
    BitVector drop(apply.getNumOperands());
    NamedAttrList attrs(apply.getAttrs());
    for (const auto &given : parts->extents) {
      std::optional<int64_t> value = intConstant(apply.getOperand(given.operand));
      if (!value || *value < 0)
        continue;
      drop.set(given.operand);
      ops::Attr &attr = parts->attrs[given.param];
      if (given.position) {
        std::get<std::vector<Dim>>(attr)[*given.position] = Dim(*value);
      } else {
        attr = Dim(*value);
        attrs.set(given.param, rewriter.getI64IntegerAttr(*value));
      }
    }
    ops::ShapeResult shape = record->shape(parts->operands, parts->attrs, ops::LenientOracle());
    if (!shape.error.empty() || shape.types.size() != apply.getNumResults())
      return failure();

    SmallVector<Type> types;
    for (auto [result, inferred] : llvm::zip(apply.getResultTypes(), shape.types)) {
      auto type = cast<RankedTensorType>(result);
      SmallVector<int64_t> extents(type.getShape());
      for (auto [extent, dim] : llvm::zip(extents, inferred.dims))
        if (ShapedType::isDynamic(extent) && dim.isConstant())
          extent = dim.constant();
      types.push_back(RankedTensorType::get(extents, type.getElementType(), type.getEncoding()));
    }
    if (drop.none() && TypeRange(types) == apply.getResultTypes())
      return failure();
    // Each `?` of a result with listed extents goes with one operand.
    for (const auto &given : parts->extents)
      if (given.position &&
          cast<RankedTensorType>(types[0]).isDynamicDim(*given.position) == drop[given.operand])
        return failure();

    SmallVector<Value> operands;
    for (auto [i, operand] : llvm::enumerate(apply.getOperands()))
      if (!drop[i])
        operands.push_back(operand);
    auto refined = ir::ApplyOp::create(rewriter, apply.getLoc(), types, apply.getOp(), operands,
                                       attrs.getDictionary(getContext()));
    SmallVector<Value> results;
    for (auto [now, before] : llvm::zip(refined.getResults(), apply.getResultTypes()))
      results.push_back(makeCast(rewriter, apply.getLoc(), now, before));
    rewriter.replaceOp(apply, results);
    return success();
  }
};

/// A reshape to the same constant extents.
struct FoldReshape : OpRewritePattern<ir::ApplyOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ir::ApplyOp apply, PatternRewriter &rewriter) const override {
    auto *rule = batchRule<ops::Movement>(apply);
    if (!rule || rule->kind != ops::Movement::Reshape || apply.getNumOperands() != 1 ||
        apply.getOperand(0).getType() != apply.getResult(0).getType())
      return failure();
    rewriter.replaceOp(apply, apply.getOperand(0));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

struct FoldConvert : OpRewritePattern<ir::ConvertOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ir::ConvertOp convert, PatternRewriter &rewriter) const override {
    Type from = convert.getValue().getType(), to = convert.getType();
    if (from == to) {
      rewriter.replaceOp(convert, convert.getValue());
      return success();
    }
    std::optional<int64_t> value = intConstant(convert.getValue());
    if (!value)
      return failure();
    if (from.isInteger(1))
      value = *value != 0;
    if (to.isF64())
      rewriter.replaceOpWithNewOp<arith::ConstantOp>(
          convert, rewriter.getF64FloatAttr(static_cast<double>(*value)));
    else if (to.isInteger(64))
      rewriter.replaceOp(convert, makeInt(rewriter, convert.getLoc(), *value));
    else
      return failure();
    return success();
  }
};

template <typename OpTy> struct FoldDivision : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    constexpr bool isDiv = std::is_same_v<OpTy, ir::DivOp>;
    std::optional<int64_t> lhs = intConstant(op.getLhs()), rhs = intConstant(op.getRhs());
    if (rhs == 1) {
      rewriter.replaceOp(op, isDiv ? op.getLhs() : makeInt(rewriter, op.getLoc(), 0));
      return success();
    }
    // A zero divisor must fail at run time; -1 overflows for one dividend and is left alone.
    if (!lhs || !rhs || *rhs == 0 || *rhs == -1)
      return failure();
    rewriter.replaceOp(op, makeInt(rewriter, op.getLoc(), isDiv ? *lhs / *rhs : *lhs % *rhs));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

/// The stack of a list whose elements are known is tensor code.
struct FoldStackOfList : OpRewritePattern<ir::ApplyOp> {
  using OpRewritePattern::OpRewritePattern;

  /// A kernel that reads more tensors than this gains nothing over one copy an element.
  static constexpr size_t kMostElements = 64;

  LogicalResult matchAndRewrite(ir::ApplyOp apply, PatternRewriter &rewriter) const override {
    if (!takesList(apply) || apply.getNumOperands() != 1)
      return failure();
    auto made = apply.getOperand(0).getDefiningOp<ir::ListMakeOp>();
    auto axis = apply.getAttrs().getAs<IntegerAttr>("axis");
    if (!made || !axis || made.getElements().empty() || made.getElements().size() > kMostElements ||
        llvm::any_of(made.getElements().getTypes(),
                     [&](Type type) { return type != made.getType().getElement(); }))
      return failure();
    ImplicitLocOpBuilder builder(apply.getLoc(), rewriter);
    SmallVector<Value> pieces;
    for (Value element : made.getElements()) {
      auto extents = ops::extentsOf(builder, element);
      extents.insert(extents.begin() + axis.getInt(), rewriter.getI64IntegerAttr(1));
      pieces.push_back(ops::makeReshaped(builder, element, extents));
    }
    Value joined = ops::makeJoined(builder, pieces, axis.getInt());
    // The result's type does not tell the number of elements.
    rewriter.replaceOp(apply,
                       makeCast(rewriter, apply.getLoc(), joined, apply.getResult(0).getType()));
    return success();
  }
};

/// A stack along another axis is one along the first, transposed by whoever reads it.
struct FoldStackAxis : OpRewritePattern<ir::ApplyOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ir::ApplyOp apply, PatternRewriter &rewriter) const override {
    auto axis = apply.getAttrs().getAs<IntegerAttr>("axis");
    if (!takesList(apply) || !axis || axis.getInt() == 0)
      return failure();
    ImplicitLocOpBuilder builder(apply.getLoc(), rewriter);
    Value stacked = ops::makeStack(builder, apply.getOperand(0));
    for (int64_t i = 0; i < axis.getInt(); ++i)
      stacked = ops::makeTransposed(builder, stacked, i, i + 1);
    rewriter.replaceOp(apply,
                       makeCast(rewriter, apply.getLoc(), stacked, apply.getResult(0).getType()));
    return success();
  }
};

struct FoldDoubleReverse : OpRewritePattern<ir::ReverseOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ir::ReverseOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getList().getDefiningOp<ir::ReverseOp>();
    if (!inner)
      return failure();
    rewriter.replaceOp(op, inner.getList());
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

/// How the results of a branch change: each is kept, dropped or taken apart into tuple fields.
struct NewResults {
  enum Action { Keep, Drop, Split };
  SmallVector<Action> actions;
  SmallVector<Type> types;
  bool changed = false;

  explicit NewResults(Operation *branch) {
    for (OpResult result : branch->getResults()) {
      auto tuple = dyn_cast<TupleType>(result.getType());
      bool onlyGets = tuple && llvm::all_of(result.getUsers(), llvm::IsaPred<ir::GetOp>);
      Action action = result.use_empty() ? Drop : onlyGets ? Split : Keep;
      actions.push_back(action);
      changed |= action != Keep;
      if (action == Keep)
        types.push_back(result.getType());
      else if (action == Split)
        llvm::append_range(types, tuple.getTypes());
    }
  }

  /// Rewrites the terminator of one arm.
  void rewriteYield(Operation *branch, Operation *yield, PatternRewriter &rewriter) const {
    rewriter.setInsertionPoint(yield);
    SmallVector<Value> values;
    for (auto [action, value, result] :
         llvm::zip(actions, yield->getOperands(), branch->getResults())) {
      if (action == Keep)
        values.push_back(value);
      if (action != Split)
        continue;
      for (auto [i, type] : llvm::enumerate(cast<TupleType>(result.getType()).getTypes()))
        values.push_back(ir::GetOp::create(rewriter, yield->getLoc(), type, value,
                                           rewriter.getI64IntegerAttr(i)));
    }
    rewriter.modifyOpInPlace(yield, [&] { yield->setOperands(values); });
  }

  void replace(Operation *branch, Operation *fresh, PatternRewriter &rewriter) const {
    unsigned next = 0;
    for (auto [action, result] : llvm::zip(actions, branch->getResults())) {
      if (action == Keep)
        rewriter.replaceAllUsesWith(result, fresh->getResult(next++));
      if (action != Split)
        continue;
      for (Operation *user : llvm::make_early_inc_range(result.getUsers())) {
        auto get = cast<ir::GetOp>(user);
        rewriter.replaceOp(get, fresh->getResult(next + get.getIndex()));
      }
      next += cast<TupleType>(result.getType()).size();
    }
    rewriter.eraseOp(branch);
  }
};

/// Unused results go; a tuple that is only taken apart is yielded field by field. (One that is
/// handed on whole stays whole: calls in tail position stay there.)
template <typename BranchOp> struct NarrowResults : OpRewritePattern<BranchOp> {
  using OpRewritePattern<BranchOp>::OpRewritePattern;

  static BranchOp create(ir::MatchOp op, TypeRange types, PatternRewriter &rewriter) {
    return ir::MatchOp::create(rewriter, op.getLoc(), types, op.getScrutinee(), op.getCasesAttr(),
                               op.getArms().size());
  }
  static BranchOp create(scf::IfOp op, TypeRange types, PatternRewriter &rewriter) {
    return scf::IfOp::create(rewriter, op.getLoc(), types, op.getCondition(), false, false);
  }

  LogicalResult matchAndRewrite(BranchOp op, PatternRewriter &rewriter) const override {
    NewResults results(op);
    if (!results.changed)
      return failure();
    BranchOp fresh = create(op, results.types, rewriter);
    for (auto [from, to] : llvm::zip(op->getRegions(), fresh->getRegions())) {
      if (!from.empty())
        results.rewriteYield(op, from.front().getTerminator(), rewriter);
      to.takeBody(from);
    }
    results.replace(op, fresh, rewriter);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

FrozenRewritePatternSet makePatterns(MLIRContext *context) {
  RewritePatternSet patterns(context);
  for (RegisteredOperationName name : context->getRegisteredOperations()) {
    StringRef dialect = name.getDialectNamespace();
    if (dialect == "arith" || dialect == "scf" || dialect == "func" || dialect == "sheaf")
      name.getCanonicalizationPatterns(patterns, context);
  }
  patterns.add<FoldDim, FoldCast, RefineResults, FoldReshape, FoldConvert, FoldDivision<ir::DivOp>,
               FoldDivision<ir::RemOp>, FoldStackOfList, FoldStackAxis, FoldDoubleReverse,
               NarrowResults<ir::MatchOp>, NarrowResults<scf::IfOp>>(context);
  populateKnownValuePatterns(patterns);
  return patterns;
}

int64_t countOps(ModuleOp module) {
  int64_t count = 0;
  module.walk([&](Operation *) { ++count; });
  return count;
}

LogicalResult simplify(ModuleOp module, PassContext &context) {
  int64_t before = countOps(module);
  FrozenRewritePatternSet patterns = makePatterns(module.getContext());
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  IRRewriter rewriter(module.getContext());
  for (auto func : module.getOps<func::FuncOp>()) {
    ExtentChains chains;
    func.walk([&](ir::DimOp dim) { chains.shorten(dim); });
    // Common values found late may open folds; a second round catches nearly all of them. Not
    // converging is no error: every intermediate form is right.
    for (int round = 0; round < 2; ++round) {
      (void)applyPatternsGreedily(func, patterns, config);
      DominanceInfo dominance(func);
      bool changed = false;
      eliminateCommonSubExpressions(rewriter, dominance, func, &changed);
      if (!changed)
        break;
    }
  }
  context.remark(module.getLoc(),
                 "from " + Twine(before) + " to " + Twine(countOps(module)) + " operations");
  return success();
}

} // namespace

PassRecord simplifyPass() {
  return {.name = "simplify",
          .description =
              "Brings operations into canonical form, computes equal values once, takes apart "
              "tuples, known matches and extents, and drops what nothing uses.",
          .run = simplify};
}

} // namespace sheaf::passes
