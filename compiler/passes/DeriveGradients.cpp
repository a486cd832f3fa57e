//===- DeriveGradients.cpp - For every block one that goes back -----------===//

#include "compiler/analysis/Extents.h"
#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/RecordFlow.h"
#include "compiler/ir/GradientBlock.h"
#include "compiler/ops/Gradient.h"
#include "compiler/ops/Make.h"
#include "compiler/passes/BlockTable.h"
#include "compiler/passes/KeepOrRecompute.h"
#include "compiler/passes/Pass.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/CSE.h"

#include <array>

using namespace mlir;

namespace sheaf::passes {
namespace {

using Source = GradientBlock::Source;
using OfWeight = GradientBlock::OfWeight;

bool isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

/// Makes the backward block of one forward block, which may get more results: values that the
/// backward block reads.
class Derivation {
public:
  /// `dependent`: the arguments that a gradient may be needed of, see RecordFlow::onParameters().
  /// `keepsFactors`: what only products in bf16 take is kept as they round it (keep-factors).
  Derivation(ir::BlockOp forward, const llvm::BitVector &dependent, bool keepsFactors)
      : forward_(forward), dependent_(dependent), keepsFactors_(keepsFactors),
        body_(forward.getBody().front()), builder_(forward.getLoc(), forward) {}

  /// Null when no gradient goes through the block.
  ir::BlockOp run() {
    copyForward();
    findActive();
    if (!sweep()) {
      backward_.erase();
      return {};
    }
    // Common subexpressions first: the sweep computes what the copy has computed.
    IRRewriter rewriter(forward_.getContext());
    DominanceInfo dominance(backward_);
    eliminateCommonSubExpressions(rewriter, dominance, backward_);
    eraseUnused(backward_);
    followExtents();
    keepForward();
    narrowProducts();
    turnReductions();
    turnProducts();
    cancelTransposes();
    eraseUnused(backward_);
    finish();
    return backward_;
  }

  /// Values of the forward block that became results of it, as many as were added.
  ArrayRef<Value> added() const { return added_; }

private:
  /// A value that the block must give or name, by its place in the yield while the block is made.
  using Slot = unsigned;
  struct Factor {
    OfWeight description;
    std::optional<Slot> left;
    Slot right;
  };

  //===--- The copy ----------------------------------------------------------===//

  void copyForward() {
    backward_ = ir::BlockOp::create(builder_, "backward", 0);
    Block &body = backward_.getBody().emplaceBlock();
    unsigned numArgs = forward_.getNumArgs();
    for (BlockArgument arg : body_.getArguments().take_front(numArgs)) {
      map_.map(arg, body.addArgument(arg.getType(), arg.getLoc()));
      sources_.push_back({Source::Argument, arg.getArgNumber()});
    }
    yielded_ = llvm::to_vector(body_.getTerminator()->getOperands());
    for (auto [i, result] : llvm::enumerate(yielded_)) {
      gradients_.push_back({});
      if (!isFloatTensor(result.getType()))
        continue;
      gradients_.back() = body.addArgument(result.getType(), result.getLoc());
      sources_.push_back({Source::Gradient, static_cast<int64_t>(i)});
    }
    for (BlockArgument arg : body_.getArguments().drop_front(numArgs)) {
      Value weight = body.addArgument(arg.getType(), arg.getLoc());
      map_.map(arg, weight);
      weights_.push_back(weight);
    }
    backward_.setNumArgs(static_cast<int64_t>(sources_.size()));
    builder_.setInsertionPointToEnd(&body);
    for (Operation &op : body_.without_terminator()) {
      Operation *copy = builder_.clone(op, map_);
      copied_.push_back(copy);
      for (auto [original, value] : llvm::zip(op.getResults(), copy->getResults()))
        original_[value] = original;
    }
    yield_ = ir::YieldOp::create(builder_, ValueRange());
    builder_.setInsertionPoint(yield_);
  }

  /// What depends on a parameter, or an input that is to have a gradient, in a way that has a
  /// gradient.
  void findActive() {
    unsigned numArgs = forward_.getNumArgs();
    for (BlockArgument arg : body_.getArguments())
      if (isFloatTensor(arg.getType()) &&
          (arg.getArgNumber() >= numArgs || dependent_[arg.getArgNumber()]))
        active_.insert(map_.lookup(arg));
    for (Operation *op : copied_) {
      const ops::Op *record = operatorOf(op);
      if (!record || record->gradient.kind != ops::Gradient::Rule ||
          llvm::none_of(op->getOperands(), [&](Value v) { return active_.contains(v); }))
        continue;
      for (Value result : op->getResults())
        if (isFloatTensor(result.getType()))
          active_.insert(result);
    }
  }

  //===--- The sweep ---------------------------------------------------------===//

  bool sweep() {
    for (auto [result, gradient] : llvm::zip(yielded_, gradients_))
      if (gradient)
        add(map_.lookup(result), gradient);
    for (Operation *op : llvm::reverse(copied_)) {
      auto apply = dyn_cast<ir::ApplyOp>(op);
      if (!apply)
        continue;
      ops::GradientCall call{apply, {}, {}};
      bool any = false;
      for (Value result : apply.getResults()) {
        call.gradients.push_back(active_.contains(result) ? adjoint_.lookup(result) : Value());
        any |= bool(call.gradients.back());
      }
      if (!any)
        continue;
      for (Value operand : apply.getOperands())
        call.wanted.push_back(active_.contains(operand));
      builder_.setLoc(apply.getLoc());
      takeWeightProducts(call);
      if (llvm::none_of(call.wanted, [](bool wanted) { return wanted; }))
        continue;
      std::vector<Value> gradients = operatorOf(op)->gradient.rule(builder_, call);
      for (auto [i, gradient] : llvm::enumerate(gradients))
        if (gradient && call.wanted[i])
          add(apply.getOperand(i), gradient);
    }
    for (auto [i, weight] : llvm::enumerate(weights_))
      if (Value gradient = adjoint_.lookup(weight))
        factors_.push_back(
            {{OfWeight::Whole, static_cast<int64_t>(i), {}, {}}, {}, slot(gradient)});
    for (unsigned i = 0; i < forward_.getNumArgs(); ++i)
      if (Value gradient = adjoint_.lookup(backward_.getBody().getArgument(i)))
        ofArguments_.push_back({i, slot(gradient)});
    return !factors_.empty() || !ofArguments_.empty();
  }

  void add(Value value, Value gradient) {
    if (!active_.contains(value))
      return;
    Value &sum = adjoint_[value];
    sum = sum ? ops::makeSum(builder_, sum, gradient) : gradient;
  }

  Slot slot(Value value) {
    yield_->insertOperands(yield_->getNumOperands(), value);
    return yield_->getNumOperands() - 1;
  }

  /// A weight that is a matrix (or a batch of them, one below the other), or a part of it that
  /// begins at `begin`, as it is or transposed.
  struct Matrix {
    int64_t weight = -1;
    bool transposed = false;
    std::array<int64_t, 2> begin = {0, 0}; ///< row and column of the weight
  };
  Matrix matrixOf(Value value) const {
    Matrix matrix;
    auto steps = [](Value v) { return v.getDefiningOp<ir::ApplyOp>(); };
    for (auto apply = steps(value); apply; apply = steps(value)) {
      int64_t rank = ops::rankOf(value);
      if (rank != 2 || apply.getNumOperands() != 1)
        return matrix;
      auto part = cast<OpResult>(value);
      value = apply.getOperand(0);
      if (moves(apply, ops::Movement::Transpose)) {
        if (ops::axisOf(apply, "axis1", -2, rank) != ops::axisOf(apply, "axis2", -1, rank)) {
          matrix.transposed = !matrix.transposed;
          std::swap(matrix.begin[0], matrix.begin[1]);
        }
      } else if (moves(apply, ops::Movement::Slice)) {
        matrix.begin[static_cast<size_t>(ops::intAttr(apply, "axis"))] +=
            ops::intAttr(apply, "start");
      } else if (moves(apply, ops::Movement::Split)) {
        auto axis = static_cast<unsigned>(ops::axisOf(apply, "axis", 0, rank));
        matrix.begin[axis] +=
            part.getResultNumber() * cast<RankedTensorType>(part.getType()).getShape()[axis];
      } else if (moves(apply, ops::Movement::Reshape)) {
        if (Value batch = batchOf(apply, matrix.begin[0]))
          matrix.weight = numberOf(batch);
        return matrix;
      } else {
        return matrix;
      }
    }
    if (ops::rankOf(value) == 2)
      matrix.weight = numberOf(value);
    return matrix;
  }

  /// The number of a weight, else -1.
  int64_t numberOf(Value value) const {
    auto it = llvm::find(weights_, value);
    bool isKnown =
        it != weights_.end() && cast<RankedTensorType>(value.getType()).getElementType().isF32();
    return isKnown ? it - weights_.begin() : -1;
  }

  /// The batch of matrices of which a reshape takes all rows for those of one matrix, or those of
  /// one; they lie one after the other. Else null.
  static Value batchOf(ir::ApplyOp reshape, int64_t &row) {
    auto shapeOf = [](Value v) { return cast<RankedTensorType>(v.getType()).getShape(); };
    Value source = reshape.getOperand(0);
    ArrayRef<int64_t> from = shapeOf(source), to = shapeOf(reshape.getResult(0));
    if (from.size() < 3 || from.back() != to.back())
      return {};
    auto window = source.getDefiningOp<ir::ApplyOp>();
    if (!window)
      return source;
    if (!moves(window, ops::Movement::Slice) || window.getNumOperands() != 1 || from.size() != 3 ||
        from[0] != 1 || ops::intAttr(window, "axis") != 0)
      return {};
    row += ops::intAttr(window, "start") * from[1];
    return window.getOperand(0);
  }

  /// The gradients of weights in products and gathers leave the recursion: only the rows that they
  /// are made of are given.
  void takeWeightProducts(ops::GradientCall &call) {
    if (batchRule<ops::Product>(call.apply)) {
      Value left = call.x(0), right = call.x(1);
      if (Matrix matrix = matrixOf(right); call.wanted[1] && matrix.weight >= 0 && isRow(left)) {
        addProduct(matrix, left, call.dy());
        call.wanted[1] = false;
      } else if (Matrix matrix = matrixOf(left);
                 call.wanted[0] && matrix.weight >= 0 && isRow(right) && ops::rankOf(right) == 1) {
        // w @ x is x @ transpose(w).
        matrix.transposed = !matrix.transposed;
        addProduct(matrix, right, call.dy());
        call.wanted[0] = false;
      }
      return;
    }
    auto *movement = batchRule<ops::Movement>(call.apply);
    if (!movement || movement->kind != ops::Movement::Gather || !call.wanted[0])
      return;
    auto it = llvm::find(weights_, call.x(0));
    if (it == weights_.end() || ops::rankOf(*it) < 2)
      return;
    // Indices are read one after the other, as the rows of what they name stand.
    Value index = ops::rankOf(call.x(1)) > 1 ? ops::makeFlat(builder_, call.x(1)) : call.x(1);
    factors_.push_back(
        {{OfWeight::Scatter, it - weights_.begin(), {}, {}}, slot(index), slot(call.dy())});
    call.wanted[0] = false;
  }

  /// Whether a value is something that records have rows of.
  bool isRow(Value value) const {
    return !llvm::is_contained(weights_, value) &&
           cast<RankedTensorType>(value.getType()).getElementType().isF32() &&
           !ShapedType::isDynamic(cast<RankedTensorType>(value.getType()).getShape().back());
  }

  /// x @ w gives transpose(x) @ dy to w, or transpose(dy) @ x when w is transposed. What x joins
  /// is taken by itself: it need not be joined in memory.
  void addProduct(Matrix matrix, Value x, Value dy) {
    SmallVector<Value> pieces{x};
    if (auto apply = x.getDefiningOp<ir::ApplyOp>();
        moves(apply, ops::Movement::Concat) && ops::intAttr(apply, "axis") == ops::rankOf(x) - 1 &&
        llvm::all_of(apply.getOperands(), [&](Value piece) { return isRow(piece); }))
      pieces = llvm::to_vector(apply.getOperands());
    auto width = [](Value v) { return cast<RankedTensorType>(v.getType()).getShape().back(); };
    Slot gradient = slot(dy);
    int64_t begin = 0;
    for (Value piece : pieces) {
      OfWeight product{OfWeight::Product, matrix.weight, {}, {}};
      product.rowBegin = begin, product.rowCount = width(piece);
      product.columnCount = width(dy);
      Slot input = slot(piece);
      if (piece.getDefiningOp())
        inputs_.insert(piece);
      if (matrix.transposed) {
        std::swap(product.rowBegin, product.columnBegin);
        std::swap(product.rowCount, product.columnCount);
      }
      product.rowBegin += matrix.begin[0];
      product.columnBegin += matrix.begin[1];
      factors_.push_back(
          {product, matrix.transposed ? gradient : input, matrix.transposed ? input : gradient});
      begin += width(piece);
    }
  }

  /// When only some of the columns of a product are used, as where x joins what has a gradient with
  /// what has none, only these are computed. Each is the same sum as before.
  void narrowProducts() {
    SmallVector<ir::ApplyOp> products;
    for (Operation &op : backward_.getBody().front())
      if (batchRule<ops::Product>(&op))
        products.push_back(cast<ir::ApplyOp>(&op));
    for (ir::ApplyOp product : products) {
      Value left = product.getOperand(0), right = product.getOperand(1);
      auto type = cast<RankedTensorType>(product.getResult(0).getType());
      auto asColumns = [&](Operation *user) {
        auto window = dyn_cast<ir::ApplyOp>(user);
        bool fixed = moves(window, ops::Movement::Slice) && window->getNumOperands() == 1;
        return fixed && ops::intAttr(window, "axis") == type.getRank() - 1 ? window : ir::ApplyOp();
      };
      auto windows = llvm::map_to_vector(product->getUsers(), asColumns);
      if (windows.empty() || llvm::is_contained(windows, ir::ApplyOp()) || ops::rankOf(right) < 2)
        continue;
      int64_t used = 0;
      for (ir::ApplyOp window : windows)
        used += ops::intAttr(window, "size");
      if (used >= type.getShape().back())
        continue; // a dynamic extent is below zero
      for (ir::ApplyOp window : windows) {
        builder_.setInsertionPoint(window);
        builder_.setLoc(window.getLoc());
        Value columns = ops::makePart(builder_, right, ops::intAttr(window, "start"),
                                      ops::intAttr(window, "size"), ops::rankOf(right) - 1);
        window.getResult(0).replaceAllUsesWith(
            ops::applyOne(builder_, product.getOp(), {left, columns}));
        window->erase();
      }
      product->erase();
    }
    builder_.setInsertionPoint(yield_);
  }

  /// A vector by a transposed matrix of the record is a row reduction, which reads it as it lies.
  /// (In bf16 there is none.)
  void turnReductions() {
    SmallVector<ir::ApplyOp> products;
    for (Operation &op : backward_.getBody().front())
      if (auto *rule = batchRule<ops::Product>(&op); rule && !rule->bf16)
        products.push_back(cast<ir::ApplyOp>(&op));
    for (ir::ApplyOp product : products) {
      Value right = product.getOperand(1);
      auto transpose = right.getDefiningOp<ir::ApplyOp>();
      if (ops::rankOf(product.getOperand(0)) != 1 || ops::rankOf(right) != 2 ||
          !moves(transpose, ops::Movement::Transpose) ||
          ops::axisOf(transpose, "axis1", -2, 2) == ops::axisOf(transpose, "axis2", -1, 2) ||
          isOfWeights(right))
        continue;
      builder_.setInsertionPoint(product);
      builder_.setLoc(product.getLoc());
      product.getResult(0).replaceAllUsesWith(ops::applyOne(
          builder_, product.getOp(), {transpose.getOperand(0), product.getOperand(0)}));
      product->erase();
    }
    builder_.setInsertionPoint(yield_);
  }

  /// A product that is needed transposed, such as the gradient of keys in `q @ transpose(k)`, is
  /// made so: its columns lie as they are read, and it contracts rows of its left operand.
  void turnProducts() {
    SmallVector<ir::ApplyOp> transposes;
    for (Operation &op : backward_.getBody().front())
      if (auto apply = dyn_cast<ir::ApplyOp>(&op); moves(apply, ops::Movement::Transpose))
        transposes.push_back(apply);
    for (ir::ApplyOp transpose : transposes) {
      auto product = transpose.getOperand(0).getDefiningOp<ir::ApplyOp>();
      int64_t rank = ops::rankOf(transpose.getResult(0));
      if (!product || !batchRule<ops::Product>(product) || !product->hasOneUse() || rank < 2 ||
          turnedAxes(transpose) != std::pair(rank - 2, rank - 1))
        continue;
      Value left = product.getOperand(0), right = product.getOperand(1);
      if (ops::rankOf(left) < 2 || ops::rankOf(right) < 2 || isOfWeights(left) ||
          isOfWeights(right))
        continue;
      builder_.setInsertionPoint(transpose);
      builder_.setLoc(product.getLoc());
      auto turned = [&](Value value) {
        return ops::makeTransposed(builder_, value, ops::rankOf(value) - 2, ops::rankOf(value) - 1);
      };
      transpose.getResult(0).replaceAllUsesWith(
          ops::applyOne(builder_, product.getOp(), {turned(right), turned(left)}));
      transpose->erase();
      product->erase();
    }
    builder_.setInsertionPoint(yield_);
  }

  /// The axes that a transpose exchanges, the lower one first.
  static std::pair<int64_t, int64_t> turnedAxes(ir::ApplyOp transpose) {
    int64_t rank = ops::rankOf(transpose.getResult(0));
    return std::minmax<int64_t>({static_cast<int64_t>(ops::axisOf(transpose, "axis1", -2, rank)),
                                 static_cast<int64_t>(ops::axisOf(transpose, "axis2", -1, rank))});
  }

  /// What is transposed twice is there: it is read as it lies.
  void cancelTransposes() {
    for (Operation &op : backward_.getBody().front()) {
      auto second = dyn_cast<ir::ApplyOp>(&op);
      if (!moves(second, ops::Movement::Transpose))
        continue;
      auto first = second.getOperand(0).getDefiningOp<ir::ApplyOp>();
      if (first && moves(first, ops::Movement::Transpose) &&
          turnedAxes(first) == turnedAxes(second) &&
          first.getOperand(0).getType() == second.getResult(0).getType())
        second.getResult(0).replaceAllUsesWith(first.getOperand(0));
    }
  }

  /// Whether a tensor is parts of weights.
  bool isOfWeights(Value value) const {
    SmallVector<Value> work{value};
    while (!work.empty()) {
      Value next = work.pop_back_val();
      if (batchRule<ops::Movement>(next.getDefiningOp()))
        llvm::append_range(work, next.getDefiningOp()->getOperands());
      else if (!next.getDefiningOp() && isa<RankedTensorType>(next.getType()) &&
               !llvm::is_contained(weights_, next))
        return false;
      else if (next.getDefiningOp())
        return false;
    }
    return true;
  }

  //===--- What is kept ------------------------------------------------------===//

  /// An extent of a tensor follows from those of the block's arguments: for it alone no tensor is
  /// kept.
  void followExtents() {
    ExtentChains chains;
    llvm::DenseMap<std::pair<Value, int64_t>, Value> made; // of extents that are no dim
    for (ir::DimOp dim : llvm::to_vector(backward_.getBody().front().getOps<ir::DimOp>())) {
      SmallVector<ir::DimOp> work{dim};
      while (!work.empty())
        llvm::append_range(work, llvm::reverse(followExtent(work.pop_back_val(), chains, made)));
    }
    builder_.setInsertionPoint(yield_);
  }

  /// The dims that it follows from, in order, if it could be replaced by what is made of them.
  SmallVector<ir::DimOp> followExtent(ir::DimOp of, ExtentChains &chains,
                                      llvm::DenseMap<std::pair<Value, int64_t>, Value> &made) {
    Operation *before = of->getPrevNode();
    auto dim = chains.shorten(of).getDefiningOp<ir::DimOp>();
    auto apply = dim ? dim.getTensor().getDefiningOp<ir::ApplyOp>() : ir::ApplyOp();
    // It may be a dim that the program took before, which is done.
    if (!apply || dim->getPrevNode() != before)
      return {};
    auto replace = [&](Value extent) {
      dim.getResult().replaceAllUsesWith(extent);
      dim.erase();
    };
    std::pair key(dim.getTensor(), static_cast<int64_t>(dim.getAxis()));
    if (Value known = made.lookup(key)) {
      replace(known);
      return {};
    }
    builder_.setInsertionPoint(dim);
    Value extent =
        materialiseExtent(builder_, apply, cast<OpResult>(dim.getTensor()).getResultNumber(),
                          static_cast<unsigned>(dim.getAxis()));
    SmallVector<ir::DimOp> inner;
    SmallVector<Operation *> added;
    Operation *first = before ? before->getNextNode() : &backward_.getBody().front().front();
    for (Operation *op = first; op != dim; op = op->getNextNode()) {
      added.push_back(op);
      if (auto each = dyn_cast<ir::DimOp>(op))
        inner.push_back(each);
    }
    // Host code alone divides.
    if (!extent || llvm::any_of(added, [](Operation *op) { return isa<ir::DivOp>(op); })) {
      for (Operation *op : llvm::reverse(added))
        op->erase();
      return {};
    }
    if (!extent.getDefiningOp<ir::DimOp>())
      made[key] = extent;
    replace(extent);
    return inner;
  }

  void keepForward() {
    // Inputs of products have to be in memory for the weights' gradients anyway.
    auto isThere = [&](Value copy) {
      return inputs_.contains(copy) || llvm::is_contained(yielded_, original_.lookup(copy));
    };
    SmallVector<Operation *> copies;
    llvm::SmallPtrSet<Operation *, 32> forward(copied_.begin(), copied_.end());
    for (Operation &op : backward_.getBody().front())
      if (forward.contains(&op))
        copies.push_back(&op);
    auto isFactor = [&](Value copy) { return keepsFactors_ && isTakenAsFactor(copy); };
    for (Value copy : chooseKept(copies, isThere, isFactor)) {
      Value original = original_.lookup(copy);
      auto it = llvm::find(yielded_, original);
      int64_t number = it - yielded_.begin();
      if (it == yielded_.end()) {
        yielded_.push_back(original);
        added_.push_back(original);
      }
      unsigned at = static_cast<unsigned>(sources_.size());
      Value arg = backward_.getBody().front().insertArgument(at, copy.getType(), copy.getLoc());
      sources_.push_back({Source::Result, number});
      copy.replaceAllUsesWith(arg);
    }
    backward_.setNumArgs(static_cast<int64_t>(sources_.size()));
    body_.getTerminator()->setOperands(yielded_);
  }

  /// Whether nothing takes a value but products that round it, as it is or moved.
  bool isTakenAsFactor(Value value) const {
    if (!cast<RankedTensorType>(value.getType()).getElementType().isF32())
      return false;
    SmallVector<Value> work{value};
    llvm::SmallPtrSet<Operation *, 8> seen;
    while (!work.empty())
      for (Operation *user : work.pop_back_val().getUsers()) {
        if (isa<ir::DimOp>(user) || !seen.insert(user).second)
          continue;
        auto *product = batchRule<ops::Product>(user);
        if (product && product->bf16 && !operatorOf(user)->ofFactors.empty() &&
            llvm::none_of(user->getOperands(), [&](Value v) { return isOfWeights(v); }))
          continue;
        if (!batchRule<ops::Movement>(user))
          return false;
        llvm::append_range(work, user->getResults());
      }
    return true;
  }

  //===--- The result --------------------------------------------------------===//

  void finish() {
    GradientBlock description;
    SmallVector<Value> outputs;
    SmallVector<Value> given = llvm::to_vector(yield_->getOperands());
    auto sourceOf = [&](Slot slot) -> Source {
      Value value = given[slot];
      if (auto arg = dyn_cast<BlockArgument>(value); arg && arg.getArgNumber() < sources_.size())
        return sources_[arg.getArgNumber()];
      auto it = llvm::find(outputs, value);
      int64_t number = it - outputs.begin();
      if (it == outputs.end())
        outputs.push_back(value);
      return {Source::Output, number};
    };
    for (Factor &factor : factors_) {
      if (factor.left)
        factor.description.left = sourceOf(*factor.left);
      factor.description.right = sourceOf(factor.right);
      description.ofWeights.push_back(factor.description);
    }
    for (auto [argument, slot] : ofArguments_)
      description.ofArguments.push_back({argument, sourceOf(slot)});
    yield_->setOperands(outputs);
    Block &body = backward_.getBody().front();
    for (unsigned i = static_cast<unsigned>(sources_.size()); i-- > 0;)
      if (body.getArgument(i).use_empty()) {
        body.eraseArgument(i);
        sources_.erase(sources_.begin() + i);
      }
    backward_.setNumArgs(static_cast<int64_t>(sources_.size()));
    description.arguments = sources_;
    backward_->setAttr(kBackwardAttr, description.toAttribute(forward_.getContext()));
  }

  ir::BlockOp forward_, backward_;
  const llvm::BitVector &dependent_;
  bool keepsFactors_;
  Block &body_;
  ImplicitLocOpBuilder builder_;
  ir::YieldOp yield_;
  IRMapping map_;
  std::vector<Source> sources_;  ///< of the arguments of the backward block
  SmallVector<Value> gradients_; ///< of the results; null for ints
  SmallVector<Value> weights_;   ///< of the backward block
  SmallVector<Value> yielded_;   ///< of the forward block, with what is added
  SmallVector<Value> added_;
  SmallVector<Operation *> copied_;
  llvm::DenseMap<Value, Value> original_; ///< of values of the copy
  llvm::DenseSet<Value> active_, inputs_;
  llvm::DenseMap<Value, Value> adjoint_;
  SmallVector<Factor> factors_;
  SmallVector<std::pair<int64_t, Slot>> ofArguments_;
};

/// Records of a block that has more results now.
void widenRecords(ArrayRef<ir::RecordOp> records, ArrayRef<Value> added) {
  for (ir::RecordOp record : records) {
    OpBuilder builder(record);
    SmallVector<Type> types(record->getResultTypes());
    for (Value value : added)
      types.push_back(value.getType());
    OperationState state(record.getLoc(), record->getName().getStringRef(), record->getOperands(),
                         types, record->getAttrs());
    Operation *wider = builder.create(state);
    for (auto [before, after] : llvm::zip(record->getResults(), wider->getResults()))
      before.replaceAllUsesWith(after);
    record.erase();
  }
}

LogicalResult deriveGradients(ModuleOp module, PassContext &context) {
  if (!module->hasAttr(ops::kTrainingAttr))
    return success();
  SymbolTable symbols(module);
  llvm::StringMap<llvm::BitVector> dependent =
      RecordFlow(module, /*withFolded=*/true)
          .onParameters(module->hasAttr(ops::kInputGradientsAttr));
  bool keepsFactors = module->hasAttr(ops::kBf16Attr) && !context.isOff("keep-factors") &&
                      !context.isOff("round-factors");
  for (auto block : llvm::to_vector(module.getOps<ir::BlockOp>())) {
    auto ofBlock = dependent.find(block.getSymName());
    if (ofBlock == dependent.end()) // not recorded where a gradient goes
      continue;
    Derivation derivation(block, ofBlock->second, keepsFactors);
    ir::BlockOp backward = derivation.run();
    if (!backward)
      continue;
    SmallVector<ir::RecordOp> records;
    module.walk([&](ir::RecordOp record) {
      if (record.getBlock() == block.getSymName())
        records.push_back(record);
    });
    widenRecords(records, derivation.added());
    backward->remove();
    backward.setSymName((block.getSymName() + ".back").str());
    symbols.insert(backward, std::next(block->getIterator()));
    block->setAttr(kGradientAttr, FlatSymbolRefAttr::get(backward.getSymNameAttr()));
    context.remark(block.getLoc(),
                   "block " + block.getSymName() + " keeps " + Twine(derivation.added().size()) +
                       " more tensors for the backward pass; " + backward.getSymName() + " has " +
                       Twine(std::distance(backward.getBody().front().begin(),
                                           backward.getBody().front().end()) -
                             1) +
                       " operators");
  }
  return success();
}

} // namespace

PassRecord deriveGradientsPass() {
  return {.name = "derive-gradients",
          .description =
              "In training, makes for every block the block that goes back: it computes the "
              "gradients of the block's arguments from those of its results, and the rows that the "
              "gradients of its weights are made of. What does not depend on a "
              "parameter, such as inputs, gets none, unless gradients of inputs are asked for. "
              "Decides which values the block keeps for it "
              "and which are computed again.",
          .run = deriveGradients,
          .required = true,
          .after = Level::Blocks};
}

} // namespace sheaf::passes
