//===- WeightsRight.cpp - Products have their weight on the right ---------===//
//
// Rows that meet one matrix of weights are what kernels are made for: the weights are packed, and
// products over the same rows are one. So `w @ x`, which is the same with sides changed, becomes
// `x @ transpose(w)`, and what that leaves transposed is turned back as late as possible. Of
// products without weights transpose(v) @ transpose(p) and transpose(k @ transpose(q)) are turned,
// too: they are p @ v and q @ transpose(k), the form that goes by blocks of rows. A batch
// of matrices is one matrix or one after the other, and of matrices that an index picks it is the
// parameter that is transposed.
//
//===----------------------------------------------------------------------===//

#include "compiler/ops/Make.h"
#include "compiler/passes/Pass.h"
#include "compiler/passes/Products.h"
#include "compiler/passes/SharedTensors.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <numeric>

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Of the widest vectors; the way that a product takes is the same on all processors.
constexpr int64_t kLanes = 16;
/// More matrices than this are not taken one after the other.
constexpr int64_t kMostMatrices = 16;
/// Elements of a parameter that is kept a second time, transposed.
constexpr int64_t kMostPickedFrom = int64_t(4) << 20;

/// An extent of the matrices that a tensor is a batch of: of rows (2) or columns (1).
int64_t fromEnd(Value tensor, int64_t axis) {
  return tensorTypeOf(tensor).getDimSize(tensorTypeOf(tensor).getRank() - axis);
}

/// Matrices of a batch that an index picks: `row` by a number of the host, else `take` by a tensor.
bool isPick(Value value) {
  Operation *def = value.getDefiningOp();
  return isPickByHost(value) ||
         (moves(def, ops::Movement::Gather) && ops::rankOf(def->getOperand(0)) == 3);
}

Value transposeAxes(ops::ExpandBuilder &b, Value value) {
  int64_t rank = ops::rankOf(value);
  return ops::makeTransposed(b, value, rank - 2, rank - 1);
}

Value reshape(ops::ExpandBuilder &b, Value value, std::vector<ops::Extent> dims) {
  return ops::makeReshaped(b, value, std::move(dims));
}

/// The matrix of this number of a batch.
Value matrixAt(ops::ExpandBuilder &b, Value batch, int64_t number) {
  std::vector<ops::Extent> dims = ops::extentsOf(b, batch);
  if (tensorTypeOf(batch).getDimSize(0) == 1)
    number = 0;
  Value one = ops::makePart(b, batch, number, 1, 0);
  return reshape(b, one, {dims.begin() + 1, dims.end()});
}

/// Parts of a tensor along an axis.
bool isPartOf(ir::ApplyOp apply) {
  auto *movement = batchRule<ops::Movement>(apply);
  return movement &&
         (movement->kind == ops::Movement::Split || movement->kind == ops::Movement::Slice);
}

class WeightsRight {
public:
  WeightsRight(ModuleOp module, PassContext &context)
      : module_(module), context_(context), bf16_(module->hasAttr(ops::kBf16Attr)),
        folds_(!module->hasAttr(ops::kTrainingAttr) && !context.isOff("fold-weights")),
        shared_(!module->hasAttr(ops::kTrainingAttr) || !context.isOff("fold-weights")) {}

  void run() {
    for (ir::ApplyOp product : productsIn(module_)) {
      for (unsigned side : {0U, 1U}) {
        takeKnown(product, side);
        product = takeOutNothing(product, side);
      }
      rewrite(product);
    }
    // In program order, so that what a transposition has been moved after is met again.
    SmallVector<ir::ApplyOp> readers;
    module_.walk([&](ir::ApplyOp apply) {
      if ((batchRule<ops::Elementwise>(apply) && !operatorOf(apply)->draws()) || isPartOf(apply))
        readers.push_back(apply);
    });
    for (ir::ApplyOp apply : readers)
      if (llvm::any_of(apply.getOperands(),
                       [&](Value operand) { return turned_.contains(operand.getDefiningOp()); }))
        sink(apply);
  }

private:
  //===--- One product -------------------------------------------------------===//

  void rewrite(ir::ApplyOp product) {
    Value left = product.getOperand(0), right = product.getOperand(1);
    int64_t leftRank = ops::rankOf(left), rightRank = ops::rankOf(right);
    bool leftIsWeight = shared_.isOfWeights(left), rightIsWeight = shared_.isOfWeights(right);
    if ((leftIsWeight && shared_.contains(right)) || (rightIsWeight && shared_.contains(left)))
      return; // fold-weights
    if (leftIsWeight && leftRank == 2) {
      if (!fillsVectors(right))
        return turn(product, "the weight goes to the right");
      context_.remark(product.getLoc(), "the weight stays on the left: columns fill vectors");
      return;
    }
    if (leftIsWeight && leftRank > 2)
      return rightRank <= 2 ? turnBatch(product) : takeApart(product);
    if (rightIsWeight && rightRank > 2)
      return takeApart(product);
    if (leftIsWeight || rightIsWeight)
      return;

    Value ofLeft = transposedBy(left), ofRight = transposedBy(right);
    if (leftRank >= 2 && (isPick(left) || (ofLeft && isPick(ofLeft)))) {
      if (ofLeft || isTransposedWhole(left))
        turn(product, "the picked weight goes to the right");
      else if (rightRank >= 2 && fromEnd(right, 1) == 1)
        reduce(product, left, right, /*turn=*/false);
    } else if (ofRight && isPick(ofRight) && isTransposedWhole(ofRight)) {
      ops::ExpandBuilder b(product.getLoc(), product);
      product.setOperand(1, pickTransposed(b, ofRight));
      context_.remark(product.getLoc(), "of the picked weight the parameter is transposed");
    } else if (ofRight && leftRank == 1 && rightRank == 2) {
      turn(product, "a row reduction takes the matrix as it lies");
    } else if (ofRight && isPick(ofRight) && leftRank >= 2 && fromEnd(left, 2) == 1) {
      reduce(product, ofRight, left, /*turn=*/true);
    } else if (ofRight && leftRank >= 2 && !batchRule<ops::Product>(product)->leavesOutZeros &&
               (ofLeft || isTakenTransposed(product.getResult(0)))) {
      // What follows scores, as in transpose(k @ transpose(q)), goes along rows then.
      turn(product, "what is transposed around it goes");
    }
  }

  /// Whether nothing but a transposition takes it, if only after what scales it.
  static bool isTakenTransposed(Value value) {
    while (value.hasOneUse()) {
      auto user = dyn_cast<ir::ApplyOp>(*value.user_begin());
      if (!user || user->getNumResults() != 1)
        return false;
      Value result = user.getResult(0);
      if (transposedBy(result) == value)
        return true;
      bool scales = batchRule<ops::Elementwise>(user) && !operatorOf(user)->draws() &&
                    llvm::all_of(user.getOperands(), [&](Value operand) {
                      auto tensor = dyn_cast<RankedTensorType>(operand.getType());
                      return operand == value || !tensor || tensor.getRank() == 0;
                    });
      if (!scales)
        return false;
      value = result;
    }
    return false;
  }

  /// Whether the columns of a matrix of the record are known and leave few lanes over. Then it
  /// needs no transposition to meet a weight on the left: its rows are read in vectors, and the
  /// weight's elements are what is the same for all lanes. In bf16 weights are on the right.
  bool fillsVectors(Value right) const {
    if (bf16_ || ops::rankOf(right) < 2 || ShapedType::isDynamic(fromEnd(right, 1)))
      return false;
    int64_t columns = fromEnd(right, 1);
    int64_t lanes = (columns + kLanes - 1) / kLanes * kLanes;
    return 8 * (lanes - columns) <= columns;
  }

  /// Whether fold-weights keeps the batch transposed that matrices are picked from.
  bool isTransposedWhole(Value pick) {
    Value batch = pick.getDefiningOp()->getOperand(0);
    return folds_ && shared_.isOfWeights(batch) && tensorTypeOf(batch).hasStaticShape() &&
           tensorTypeOf(batch).getNumElements() <= kMostPickedFrom;
  }

  Value transpose(ops::ExpandBuilder &b, Value value) {
    if (Value source = transposedBy(value))
      return source;
    if (isPick(value) && isTransposedWhole(value))
      return pickTransposed(b, value);
    return transposeAxes(b, value);
  }

  Value pickTransposed(ops::ExpandBuilder &b, Value value) {
    auto pick = value.getDefiningOp<ir::ApplyOp>();
    SmallVector<Value> operands(pick.getOperands());
    operands[0] = transpose(b, operands[0]);
    return ops::applyOne(b, pick.getOp(), operands);
  }

  /// a @ b is transpose(transpose(b) @ transpose(a)); a vector stays what it is.
  Value turned(ops::ExpandBuilder &b, StringRef op, Value left, Value right) {
    bool isMatrix = ops::rankOf(left) > 1 && ops::rankOf(right) > 1;
    auto across = [&](Value operand) {
      return ops::rankOf(operand) == 1 ? operand : transpose(b, operand);
    };
    Value rows = across(right), columns = across(left);
    Value result = ops::applyOne(b, op, {rows, columns});
    return isMatrix ? turnBack(b, result) : result;
  }

  Value turnBack(ops::ExpandBuilder &b, Value value) {
    Value result = transposeAxes(b, value);
    turned_.insert(result.getDefiningOp());
    return result;
  }

  void turn(ir::ApplyOp product, StringRef why) {
    ops::ExpandBuilder b(product.getLoc(), product);
    context_.remark(product.getLoc(), why);
    replace(product, {turned(b, product.getOp(), product.getOperand(0), product.getOperand(1))});
  }

  /// A batch of matrices that all meet the same rows is one, of all their rows.
  void turnBatch(ir::ApplyOp product) {
    Value left = product.getOperand(0), right = product.getOperand(1);
    if (!tensorTypeOf(left).hasStaticShape())
      return;
    ops::ExpandBuilder b(product.getLoc(), product);
    context_.remark(product.getLoc(), "the weights go to the right, as one matrix");
    std::vector<ops::Extent> dims = ops::extentsOf(b, left);
    ArrayRef<int64_t> rows = tensorTypeOf(left).getShape().drop_back();
    int64_t all = std::accumulate(rows.begin(), rows.end(), int64_t(1), std::multiplies<>());
    left = reshape(b, left, {b.getI64IntegerAttr(all), dims.back()});
    Value result = turned(b, product.getOp(), left, right);
    dims.pop_back();
    if (ops::rankOf(right) == 2)
      dims.push_back(ops::extentOf(b, right, 1));
    replace(product, {reshape(b, result, dims)});
  }

  /// Each matrix of a batch of weights has a product of its own.
  void takeApart(ir::ApplyOp product) {
    Value left = product.getOperand(0), right = product.getOperand(1);
    bool isLeft = shared_.isOfWeights(left);
    Value weight = isLeft ? left : right, other = isLeft ? right : left;
    int64_t count = tensorTypeOf(weight).getDimSize(0), rank = ops::rankOf(other);
    if (ops::rankOf(weight) != 3 || rank > 3 || !tensorTypeOf(weight).hasStaticShape() ||
        count < 1 || count > kMostMatrices ||
        (rank == 3 && tensorTypeOf(other).getDimSize(0) != count &&
         tensorTypeOf(other).getDimSize(0) != 1)) {
      if (!isLeft && folds_ && rank <= 2 && tensorTypeOf(weight).hasStaticShape())
        return joinColumns(product);
      context_.remark(product.getLoc(), "a batch of weights that is not taken apart");
      return;
    }
    ops::ExpandBuilder b(product.getLoc(), product);
    context_.remark(product.getLoc(), "a product for each matrix of the weights");
    SmallVector<Value> pieces;
    for (int64_t i = 0; i < count; ++i) {
      Value ofWeight = matrixAt(b, weight, i), ofOther = rank == 3 ? matrixAt(b, other, i) : other;
      Value piece = !isLeft                 ? ops::applyOne(b, product.getOp(), {ofOther, ofWeight})
                    : fillsVectors(ofOther) ? ops::applyOne(b, product.getOp(), {ofWeight, ofOther})
                                            : turned(b, product.getOp(), ofWeight, ofOther);
      pieces.push_back(ops::insertAxis(b, piece, 0));
    }
    replace(product, {ops::makeJoined(b, pieces, 0)});
  }

  /// Many matrices that all meet the same rows are one, of all their columns: fold-weights makes
  /// it.
  void joinColumns(ir::ApplyOp product) {
    ops::ExpandBuilder b(product.getLoc(), product);
    context_.remark(product.getLoc(), "the weights are one matrix of all their columns");
    Value left = product.getOperand(0), right = product.getOperand(1);
    std::vector<ops::Extent> dims = ops::extentsOf(b, right);
    ops::Extent rows = dims[dims.size() - 2], columns = dims.back();
    dims.resize(dims.size() - 2);
    ArrayRef<int64_t> batch = tensorTypeOf(right).getShape().drop_back(2);
    int64_t all = std::accumulate(batch.begin(), batch.end(), int64_t(1), std::multiplies<>());
    auto number = [&](int64_t n) { return ops::Extent(b.getI64IntegerAttr(n)); };
    auto swapFirst = [&](Value x) { return ops::makeTransposed(b, x, 0, 1); };
    right = swapFirst(reshape(b, right, {number(all), rows, columns}));
    right = reshape(b, right, {rows, number(all * fromEnd(right, 1))});
    Value result = ops::applyOne(b, product.getOp(), {left, right});
    if (ops::rankOf(left) == 2) {
      ops::Extent many = ops::extentOf(b, left, 0);
      result = swapFirst(reshape(b, result, {many, number(all), columns}));
      dims.push_back(many);
    }
    dims.push_back(columns);
    replace(product, {reshape(b, result, dims)});
  }

  /// Matrices by a column, or by rows of one when `turn`, as row reductions: what lies scattered is
  /// read as it lies.
  void reduce(ir::ApplyOp product, Value matrix, Value vector, bool turn) {
    ops::ExpandBuilder b(product.getLoc(), product);
    Value row = turn ? vector : transpose(b, vector);
    context_.remark(product.getLoc(), "picked matrices by one vector each are row reductions");
    Value result = ops::makeElementwiseProduct(b, matrix, row);
    int64_t last = ops::rankOf(result) - 1;
    result = ops::makeSumAlong(b, result, last, /*keepdims=*/false);
    replace(product, {ops::insertAxis(b, result, turn ? last - 1 : last)});
  }

  static void replace(ir::ApplyOp apply, std::vector<Value> values) {
    ops::ExpandBuilder b(apply.getLoc(), apply);
    ops::matchTypes(b, apply->getResults(), values);
    apply->replaceAllUsesWith(values);
    apply.erase();
  }

  //===--- Indices -----------------------------------------------------------===//

  /// A matrix that a known number picks from a batch of weights is a weight, and no row.
  void takeKnown(ir::ApplyOp product, unsigned side) {
    Value operand = product.getOperand(side), source = transposedBy(operand);
    auto pick = (source ? source : operand).getDefiningOp<ir::ApplyOp>();
    if (!pick || !isPickByHost(pick.getResult(0)))
      return;
    Value batch = pick.getOperand(0);
    std::optional<int64_t> number = getConstantIntValue(pick.getOperand(1));
    if (!number || *number < 0 || *number >= tensorTypeOf(batch).getDimSize(0) ||
        !shared_.isOfWeights(batch) || !tensorTypeOf(batch).hasStaticShape())
      return;
    ops::ExpandBuilder b(product.getLoc(), product);
    Value matrix = matrixAt(b, batch, *number);
    product.setOperand(side, source ? transposeAxes(b, matrix) : matrix);
    context_.remark(product.getLoc(), "the matrix that a known number picks is a weight");
  }

  /// m[k] is `take(m, k)`, and NaN where k is out of range: the product is NaN there as well. What
  /// is picked is so read where it lies.
  ir::ApplyOp takeOutNothing(ir::ApplyOp product, unsigned side) {
    Value operand = product.getOperand(side), source = transposedBy(operand);
    auto where = (source ? source : operand).getDefiningOp<ir::ApplyOp>();
    auto *rule = batchRule<ops::Elementwise>(where);
    if (!rule || !rule->selects || !isPick(where.getOperand(1)) ||
        ops::rankOf(where.getOperand(2)) != 0 || fromEnd(where.getOperand(1), 1) < 1 ||
        fromEnd(where.getOperand(1), 2) < 1)
      return product;
    auto isInside = where.getOperand(0).getDefiningOp<ir::ApplyOp>();
    Value index = where.getOperand(1).getDefiningOp()->getOperand(1);
    if (!moves(isInside, ops::Movement::Reshape) ||
        ops::rankOf(isInside.getOperand(0)) != ops::rankOf(index))
      return product;
    ops::ExpandBuilder b(product.getLoc(), product);
    SmallVector<Value> operands(product.getOperands());
    operands[side] = source ? transposeAxes(b, where.getOperand(1)) : where.getOperand(1);
    // A vector on the other side leaves one axis of the matrices.
    std::vector<ops::Extent> dims = ops::extentsOf(b, index);
    dims.resize(dims.size() + (ops::rankOf(operands[1 - side]) == 1 ? 1 : 2),
                ops::Extent(b.getI64IntegerAttr(1)));
    Value condition = reshape(b, isInside.getOperand(0), dims);
    auto apart = ops::applyOne(b, product.getOp(), operands).getDefiningOp<ir::ApplyOp>();
    Value all = ops::makeChoice(b, condition, apart.getResult(0), where.getOperand(2));
    replace(product, {all});
    return apart;
  }

  //===--- What is transposed ------------------------------------------------===//

  /// Operators that stand between a transposition that was made and what takes them run before it,
  /// in registers after the product, and the next product may take their rows as they are.
  void sink(ir::ApplyOp apply) {
    ops::ExpandBuilder b(apply.getLoc(), apply);
    SmallVector<Value> operands;
    NamedAttrList attrs(apply.getAttrs());
    if (isPartOf(apply)) {
      int64_t rank = ops::rankOf(apply.getResult(0)), axis = ops::axisOf(apply, "axis", 0, rank);
      operands = llvm::to_vector(apply.getOperands());
      operands[0] = transpose(b, operands[0]);
      if (axis >= rank - 2)
        attrs.set("axis", b.getI64IntegerAttr(2 * rank - 3 - axis));
    } else {
      bool isColumn = fromEnd(apply.getResult(0), 1) == 1;
      for (Value operand : apply.getOperands())
        operands.push_back(across(b, operand, isColumn));
    }
    SmallVector<Type> types;
    for (Value result : apply.getResults()) {
      SmallVector<int64_t> shape(tensorTypeOf(result).getShape());
      std::swap(shape[shape.size() - 2], shape.back());
      types.push_back(RankedTensorType::get(shape, tensorTypeOf(result).getElementType(),
                                            tensorTypeOf(result).getEncoding()));
    }
    auto before =
        ir::ApplyOp::create(b, types, apply.getOp(), operands, attrs.getDictionary(b.getContext()));
    for (auto [now, old] : llvm::zip(before.getResults(), apply.getResults()))
      for (Operation *user : llvm::make_early_inc_range(old.getUsers()))
        if (user->getNumResults() == 1 && transposedBy(user->getResult(0)) == old &&
            user->getResultTypes().front() == now.getType()) {
          turned_.erase(user);
          user->getResult(0).replaceAllUsesWith(now);
          user->erase();
        }
    std::vector<Value> results;
    for (Value result : before.getResults())
      results.push_back(turnBack(b, result));
    replace(apply, results);
  }

  /// An operand of an operator that runs on transposed tensors. If the result `isColumn`, no other
  /// operand gives it the axis that a row lacks.
  Value across(ops::ExpandBuilder &b, Value operand, bool isColumn) {
    if (!isa<RankedTensorType>(operand.getType()) || ops::rankOf(operand) == 0)
      return operand;
    if (ops::rankOf(operand) == 1)
      return ops::insertAxis(b, operand, 1);
    if (isColumn || ops::rankOf(operand) != 2 || fromEnd(operand, 1) != 1)
      return transpose(b, operand);
    // A column is a row.
    auto column = operand.getDefiningOp<ir::ApplyOp>();
    if (moves(column, ops::Movement::Reshape) && ops::rankOf(column.getOperand(0)) == 1)
      return column.getOperand(0);
    return reshape(b, operand, {ops::extentOf(b, operand, 0)});
  }

  ModuleOp module_;
  PassContext &context_;
  bool bf16_, folds_;
  SharedTensors shared_;
  llvm::DenseSet<Operation *> turned_; ///< transpositions that were made
};

LogicalResult weightsRight(ModuleOp module, PassContext &context) {
  WeightsRight(module, context).run();
  return success();
}

} // namespace

PassRecord weightsRightPass() {
  return {.name = "weights-right",
          .description =
              "Products with a weight on the left (w @ x) get it on the right "
              "(x @ transpose(w)), where it is packed and merged with others; batches of matrices "
              "are one or stand apart, and where an index picks them it is the parameter that is "
              "transposed. Results that this leaves transposed are turned back behind what follows "
              "them element by element.",
          .run = weightsRight,
          .after = Level::Plain};
}

} // namespace sheaf::passes
