//===- SeenColumns.cpp - Columns of a row that nothing depends on ---------===//
//
// Causal attention compares the numbers of rows and columns, and puts minus infinity where a row
// does not see a column. From there on it is known what stands in these columns: minus infinity is
// no row's greatest, its exponential is 0, which changes no sum, and a product that leaves out
// zeros takes no step there. So the columns before the first and after the last one that a row sees
// need not be computed.
//
// It follows from what is computed, whichever operators say so: each comparison of a column's
// number with something of its row is a bound, and beyond a bound constants are folded. So they are
// where a tensor of bools is false: that is a mask, and of it each block of rows has to look which
// runs of columns it hides.
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/plan/SeenColumns.h"
#include "compiler/ops/Build.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace sheaf::kernels {
namespace {

constexpr size_t kMostBounds = 16, kMostMasks = 32;
/// Float operators that a mask is computed with: with more, to look takes too long.
constexpr size_t kMostFloatOperators = 4;
/// So many numbers that bound anything are too small for their sum to overflow (seenBy).
constexpr size_t kMostTerms = 4;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Singles final : ops::Arithmetic {
  double round(double x) const override { return static_cast<float>(x); }
};

/// A number of a row, with the column's number added, subtracted, or neither.
struct Linear {
  int column = 0;
  std::vector<std::pair<Value, bool>> terms; ///< and whether it is subtracted
};

Linear sum(Linear a, const Linear &b, bool subtract) {
  a.column += subtract ? -b.column : b.column;
  for (auto [value, subtracted] : b.terms)
    a.terms.push_back({value, subtracted != subtract});
  return a;
}

/// What is known of a tensor whose last axis runs along a row's columns, or that is the same for
/// all of them.
struct Known {
  std::optional<double> everywhere;
  std::vector<std::optional<double>> beyond; ///< a limit, by its number
  std::optional<Linear> linear;
  std::optional<Linear> magnitude; ///< it is this without its sign
  bool isConvex = false;           ///< it follows from bounds alone

  std::optional<double> at(size_t limit) const {
    return everywhere || limit >= beyond.size() ? everywhere : beyond[limit];
  }
};

class Finder {
public:
  Finder(Plan &plan, const RowsTogether &rows, RowBlock &block)
      : plan_(plan), rows_(rows), block_(block) {}

  void run() {
    Block &body = plan_.block.getBody().front();
    for (Value argument : body.getArguments())
      addMask(argument, known_[argument]);
    for (Operation &op : body.without_terminator())
      if (op.getNumResults() == 1 && isa<RankedTensorType>(op.getResult(0).getType()))
        learn(op.getResult(0));
    if (limits_.empty() || !llvm::all_of(rows_.stages, [&](unsigned n) { return check(n); }) ||
        needed_.empty())
      return;
    // Where all are constant, a bound may be of other columns.
    auto depends = [&](auto &need) { return !known_.lookup(need.first).everywhere; };
    if (llvm::none_of(needed_, depends))
      return;
    SmallVector<size_t> masks;
    for (size_t number = 0; number < limits_.size(); ++number) {
      if (!llvm::all_of(needed_, [&](auto &need) {
            return known_.lookup(need.first).at(number) == need.second;
          }))
        continue;
      const Limit &limit = limits_[number];
      if (limit.mask) {
        if (!known_.lookup(limit.mask).isConvex)
          masks.push_back(number);
        continue;
      }
      block_.bounds.push_back(limit.bound);
      llvm::append_range(block_.limitsRead, limit.reads);
    }
    for (size_t number : masks) {
      // Another hides as much, and more.
      bool isPart = llvm::any_of(masks, [&](size_t other) {
        return other > number && known_.lookup(limits_[other].mask).at(number) == 0;
      });
      if (isPart)
        continue;
      const Limit &limit = limits_[number];
      block_.masks.push_back({limit.mask, viewOf(limit.mask)});
      llvm::append_range(block_.limitsRead, limit.reads);
    }
    if (!block_.seesLess())
      return;
    for (auto [number, seen] : llvm::zip_equal(rows_.stages, seen_))
      plan_.stages[number].seen = seen;
  }

private:
  const std::vector<Dim> &shapeOf(Value value) const { return plan_.shapes->of(value); }

  bool runsAlong(const Buffer *tensor) const {
    return llvm::is_contained(rows_.tensors, tensor) &&
           tensor->shape.size() == rows_.axes.size() + 1 && tensor->shape.back() == block_.columns;
  }
  bool isSpaceOfScores(ArrayRef<Dim> shape) const {
    return shape.size() == rows_.axes.size() + 1 && shape.drop_back() == rows_.axes &&
           shape.back() == block_.columns;
  }
  bool isSameAlongRow(Value value) const {
    const std::vector<Dim> &shape = shapeOf(value);
    return shape.size() <= rows_.axes.size() + 1 && (shape.empty() || isUnit(shape.back()));
  }

  //===--------------------------------------------------------------------===//
  // What is known beyond bounds
  //===--------------------------------------------------------------------===//

  Known knownOf(Value value) const {
    Known known = known_.lookup(value);
    if (auto constant = value.getDefiningOp<arith::ConstantOp>()) {
      if (auto number = dyn_cast<FloatAttr>(constant.getValue()))
        known.everywhere = number.getValueAsDouble();
      else if (auto number = dyn_cast<IntegerAttr>(constant.getValue()))
        known.everywhere = static_cast<double>(number.getInt());
    }
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    if (tensor && !known.linear && isa<IntegerType>(tensor.getElementType()) &&
        dtypeOf(value) != ops::DType::Bool && isSameAlongRow(value))
      known.linear = Linear{0, {{value, false}}};
    return known;
  }

  void learn(Value value) {
    switch (roleOf(value)) {
    case Role::Elementwise:
      return learnElementwise(value);
    case Role::Fill:
      // Whatever it is called, the extent is that of the axis that it meets; one of 1 meets any.
      if (std::get<ops::Fill>(batchRuleOf(value)).kind == ops::Fill::Iota && !isSameAlongRow(value))
        known_[value].linear = Linear{1, {}};
      return;
    case Role::View:
      // Axes of 1 in front change nothing.
      if (movementOf(value) == ops::Movement::Reshape) {
        Value from = value.getDefiningOp()->getOperand(0);
        auto known = known_.find(from);
        if (known != known_.end() && withoutUnits(shapeOf(from)) == withoutUnits(shapeOf(value)))
          known_[value] = Known(known->second);
      }
      addMask(value, known_[value]);
      return;
    default:
      return;
    }
  }
  static ArrayRef<Dim> withoutUnits(ArrayRef<Dim> shape) { return shape.drop_while(isUnit); }

  void learnElementwise(Value value) {
    auto apply = value.getDefiningOp<ir::ApplyOp>();
    const auto &rule = std::get<ops::Elementwise>(batchRuleOf(value));
    std::vector<Known> operands;
    for (Value operand : apply.getOperands())
      operands.push_back(knownOf(operand));
    Known known;
    size_t before = limits_.size();
    if (operands.size() == 2 && operands[0].linear && operands[1].linear) {
      if (rule.comparison)
        compare(*rule.comparison, sum(*operands[0].linear, *operands[1].linear, true), known);
      else if (rule.addition || rule.subtraction)
        known.linear = sum(*operands[0].linear, *operands[1].linear, rule.subtraction);
      if (known.linear &&
          (std::abs(known.linear->column) > 1 || known.linear->terms.size() > kMostTerms))
        known.linear.reset();
    }
    if (operands.size() == 1 && rule.magnitude)
      known.magnitude = operands[0].linear;
    if (operands.size() == 2 && rule.comparison)
      compareMagnitude(*rule.comparison, operands[0], operands[1], known);
    known.isConvex = limits_.size() > before;
    auto valuesAt = [&](std::optional<size_t> limit) {
      std::vector<std::optional<double>> values;
      for (const Known &operand : operands)
        values.push_back(limit ? operand.at(*limit) : operand.everywhere);
      return values;
    };
    known.everywhere = fold(apply, rule, valuesAt(std::nullopt));
    known.beyond.resize(limits_.size());
    for (size_t limit = 0; limit < limits_.size(); ++limit)
      if (!known.beyond[limit])
        known.beyond[limit] = fold(apply, rule, valuesAt(limit));
    if (!known.isConvex)
      known.isConvex = isConvexOf(apply, rule, operands);
    addMask(value, known);
    known_[value] = std::move(known);
  }

  /// Whether a bool is false beyond the bounds of its operands alone: what two have in common, a
  /// choice between constants, and whether that was minus infinity.
  bool isConvexOf(ir::ApplyOp apply, const ops::Elementwise &rule, ArrayRef<Known> operands) const {
    auto isConvex = [](const Known &operand) { return operand.everywhere || operand.isConvex; };
    if (rule.selects)
      return operands[0].isConvex && ((operands[1].everywhere && operands[2].everywhere) ||
                                      operands[2].everywhere == -kInfinity);
    bool isChosen =
        rule.comparison && operands.size() == 2 && operands[0].isConvex && operands[1].everywhere;
    if (isChosen)
      return isChoiceOfConstants(apply.getOperand(0)) ||
             (rule.comparison == ops::Elementwise::Comparison::Unequal &&
              operands[1].everywhere == -kInfinity);
    return apply.getOp() == "and" && llvm::all_of(operands, isConvex);
  }
  bool isChoiceOfConstants(Value value) const {
    if (roleOf(value) != Role::Elementwise ||
        !std::get<ops::Elementwise>(batchRuleOf(value)).selects)
      return false;
    return llvm::all_of(value.getDefiningOp()->getOperands().drop_front(),
                        [&](Value arm) { return knownOf(arm).everywhere.has_value(); });
  }

  /// The result's element where these are the operands', as far as it follows.
  std::optional<double> fold(ir::ApplyOp apply, const ops::Elementwise &rule,
                             ArrayRef<std::optional<double>> values) {
    if (!apply.getAttrs().empty())
      return std::nullopt;
    if (rule.selects) {
      if (values[0])
        return *values[0] != 0 ? values[1] : values[2];
      return values[1] && values[1] == values[2] ? values[1] : std::nullopt;
    }
    // Whatever a row's greatest is, minus infinity less that is none, but where all of the row is
    // NaN: then the columns that are left say so.
    if (rule.subtraction && values[0] == -kInfinity &&
        isGreatestOf(apply.getOperand(1), apply.getOperand(0)))
      return -kInfinity;
    // Of bools that are not known both are tried.
    SmallVector<size_t> open;
    for (auto [i, value] : llvm::enumerate(values))
      if (!value) {
        Value operand = apply.getOperand(static_cast<unsigned>(i));
        if (!isa<RankedTensorType>(operand.getType()) || dtypeOf(operand) != ops::DType::Bool)
          return std::nullopt;
        open.push_back(i);
      }
    if (open.size() == values.size())
      return std::nullopt;
    std::optional<double> found;
    for (unsigned choice = 0; choice < 1u << open.size(); ++choice) {
      std::vector<double> all;
      for (const std::optional<double> &value : values)
        all.push_back(value.value_or(0));
      for (auto [bit, i] : llvm::enumerate(open))
        all[i] = choice >> bit & 1;
      double result = evaluate(apply, all);
      if (found && *found != result)
        return std::nullopt;
      found = result;
    }
    return found;
  }

  double evaluate(ir::ApplyOp apply, ArrayRef<double> values) const {
    std::vector<ops::RefTensor> operands;
    for (auto [operand, value] : llvm::zip_equal(apply.getOperands(), values)) {
      ops::RefTensor &tensor = operands.emplace_back();
      tensor.host = !isa<RankedTensorType>(operand.getType());
      tensor.dtype = !tensor.host                        ? dtypeOf(operand)
                     : isa<FloatType>(operand.getType()) ? ops::DType::F32
                                                         : ops::DType::I64;
      tensor.data = {value};
      if (tensor.dtype == ops::DType::I64 && std::abs(value) < 0x1p62)
        tensor.key = static_cast<int64_t>(value);
    }
    ops::RefTensor result;
    result.dtype = dtypeOf(apply.getResult(0));
    result.data = {0};
    ops::OpTable::get().find(apply.getOp())->reference(operands, {}, Singles(), {&result, 1});
    return result.data.front();
  }

  /// Whether this is the greatest element of each row, or another number where that is no help.
  bool isGreatestOf(Value value, Value rows) const {
    if (roleOf(value) == Role::Elementwise &&
        std::get<ops::Elementwise>(batchRuleOf(value)).identity)
      return isGreatestOf(value.getDefiningOp()->getOperand(0), rows);
    if (roleOf(value) == Role::Elementwise &&
        std::get<ops::Elementwise>(batchRuleOf(value)).selects) {
      auto arms = value.getDefiningOp()->getOperands().drop_front();
      for (unsigned i : {0u, 1u})
        if (std::optional<double> other = knownOf(arms[i]).everywhere;
            other && std::isfinite(*other))
          return isGreatestOf(arms[1 - i], rows);
      return false;
    }
    if (roleOf(value) != Role::Reduction || reductionOf(value) != ops::Reduction::Max)
      return false;
    auto apply = value.getDefiningOp<ir::ApplyOp>();
    size_t rank = shapeOf(rows).size();
    return apply.getOperand(0) == rows && axisOf(apply, "axis", -1, rank) + 1 == rank;
  }

  //===--------------------------------------------------------------------===//
  // Bounds
  //===--------------------------------------------------------------------===//

  /// `difference` is what is compared with 0. `bothWays`: where it does not hold is a bound, too.
  void compare(ops::Elementwise::Comparison how, const Linear &difference, Known &known,
               bool bothWays = true) {
    using Comparison = ops::Elementwise::Comparison;
    if (std::abs(difference.column) != 1)
      return;
    bool rises = difference.column > 0;
    // column + rest <= 0: the last is -rest; column + rest >= 0: the first is -rest.
    auto holdsTo = [&](bool holds, bool isLast, int64_t offset) {
      if (!holds && !bothWays)
        return;
      bound(known, difference, holds ? 0 : 1, isLast == rises, rises ? offset : -offset);
    };
    switch (how) {
    case Comparison::AtMost:
    case Comparison::Greater: {
      bool holds = how == Comparison::AtMost;
      holdsTo(holds, true, 0);
      holdsTo(!holds, false, 1);
      return;
    }
    case Comparison::Less:
    case Comparison::AtLeast: {
      bool holds = how == Comparison::Less;
      holdsTo(holds, true, -1);
      holdsTo(!holds, false, 0);
      return;
    }
    case Comparison::Equal:
    case Comparison::Unequal:
      holdsTo(how == Comparison::Equal, true, 0);
      holdsTo(how == Comparison::Equal, false, 0);
      return;
    }
  }

  /// |a| <= b is two bounds.
  void compareMagnitude(ops::Elementwise::Comparison how, const Known &a, const Known &b,
                        Known &known) {
    using Comparison = ops::Elementwise::Comparison;
    if (how == Comparison::Greater || how == Comparison::AtLeast)
      return compareMagnitude(how == Comparison::Greater ? Comparison::Less : Comparison::AtMost, b,
                              a, known);
    if (!a.magnitude || !b.linear || (how != Comparison::Less && how != Comparison::AtMost))
      return;
    compare(how, sum(*a.magnitude, *b.linear, true), known, /*bothWays=*/false);
    compare(how, sum(sum({}, *a.magnitude, true), *b.linear, true), known, /*bothWays=*/false);
  }

  /// A bound beyond which the comparison is `beyond`.
  void bound(Known &known, const Linear &difference, double beyond, bool isLast, int64_t offset) {
    if (limits_.size() - masks_ >= kMostBounds)
      return;
    llvm::SmallSetVector<const Buffer *, 4> reads;
    ColumnBound bound;
    bound.isLast = isLast;
    bound.offset = offset;
    for (auto [value, subtracted] : difference.terms) {
      if (!canComeFirst(value, reads))
        return;
      // Column and rest are on one side of the comparison, or the rest is with minus the column.
      bound.terms.push_back({value, viewOf(value), subtracted != (difference.column > 0)});
    }
    limits_.push_back({std::move(bound), {}, reads.takeVector()});
    known.beyond.resize(limits_.size());
    known.beyond.back() = beyond;
  }

  /// A tensor of bools whose columns differ: where one is false is beyond a limit, too.
  void addMask(Value value, Known &known) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    if (!tensor || !plan_.shapes->contains(value) || dtypeOf(value) != ops::DType::Bool ||
        known.everywhere)
      return;
    const std::vector<Dim> &shape = shapeOf(value);
    if (shape.empty() || shape.size() > rows_.axes.size() + 1 || shape.back() != block_.columns ||
        isUnit(shape.back()) || masks_ >= kMostMasks)
      return;
    llvm::SmallSetVector<const Buffer *, 4> reads;
    size_t floats = 0;
    if (!canComeFirst(value, reads, &floats) || floats > kMostFloatOperators)
      return;
    ++masks_;
    limits_.push_back({{}, value, reads.takeVector()});
    known.beyond.resize(limits_.size());
    known.beyond.back() = 0;
  }

  View viewOf(Value value) const {
    const std::vector<Dim> &shape = shapeOf(value);
    View view(shape.size());
    size_t behind = rows_.axes.size() + 1 - shape.size();
    for (size_t i = 0; i < shape.size(); ++i)
      if (!isUnit(shape[i]))
        view[i].axis = static_cast<int>(behind + i);
    return view;
  }

  /// Whether it is there before the block's rows are computed; then what it follows from is added
  /// to `reads`.
  bool canComeFirst(Value value, llvm::SmallSetVector<const Buffer *, 4> &reads,
                    size_t *floatOperators = nullptr) const {
    llvm::SmallVector<Value> work{value};
    llvm::SmallPtrSet<Value, 8> visited;
    while (!work.empty()) {
      Value now = work.pop_back_val();
      if (!visited.insert(now).second)
        continue;
      if (const Buffer *buffer = plan_.bufferOf.lookup(now)) {
        // Of what another block has for its rows the last ones are left.
        if (isMadeInBlock(&buffer->whole()) || buffer->whole().rowBlock >= 0)
          return false;
        reads.insert(&buffer->whole());
        continue;
      }
      switch (roleOf(now)) {
      case Role::Elementwise:
        if (floatOperators && ops::isFloat(dtypeOf(now)) && !isSameAlongRow(now))
          ++*floatOperators;
        break;
      case Role::Fill:
        break;
      case Role::View:
        if (movementOf(now) == ops::Movement::Reshape && !isPlainReshape(now, *plan_.shapes))
          return false;
        break;
      default:
        return false;
      }
      for (Value operand : now.getDefiningOp()->getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          work.push_back(operand);
    }
    return true;
  }
  bool isMadeInBlock(const Buffer *buffer) const {
    return llvm::any_of(rows_.stages, [&](unsigned number) {
      return llvm::any_of(plan_.stages[number].roots,
                          [&](const Root &root) { return root.buffer == buffer; });
    });
  }

  //===--------------------------------------------------------------------===//
  // Stages
  //===--------------------------------------------------------------------===//

  /// Whether a stage makes do with the columns that are seen, if what it needs holds beyond them.
  bool check(unsigned number) {
    const Stage &stage = plan_.stages[number];
    auto &accesses = rows_.accesses[number];
    Seen &seen = seen_.emplace_back(Seen::Nothing);
    bool reads = llvm::any_of(accesses, [&](const Access &a) { return runsAlong(a.buffer); });
    bool writes =
        llvm::any_of(stage.roots, [&](const Root &root) { return runsAlong(root.buffer); });
    if (stage.sumsRows && reads)
      return checkSums(stage, accesses, seen);
    if (!reads && !writes)
      return true;
    if (stage.kind == Stage::Reduce)
      return !writes && checkReduction(stage, seen);
    if (writes) {
      seen = Seen::Columns;
      return isSpaceOfScores(stage.shape) &&
             llvm::all_of(stage.roots, [&](const Root &root) { return runsAlong(root.buffer); }) &&
             llvm::all_of(accesses, [&](const Access &a) {
               return !runsAlong(a.buffer) || isAt(*a.view, static_cast<int>(rows_.axes.size()));
             });
    }
    seen = Seen::Steps;
    return stage.kind == Stage::Products && checkSteps(stage, accesses);
  }

  static bool isAt(const View &view, int axis) {
    const AxisMap &map = view.back();
    return map.axis == axis && map.offset == Dim(0) && map.host.empty() && !map.index;
  }

  bool checkReduction(const Stage &stage, Seen &seen) {
    Value value = stage.roots.front().value;
    if (roleOf(value) == Role::Dot)
      return false;
    Value rows = value.getDefiningOp()->getOperand(0);
    if (!isSpaceOfScores(shapeOf(rows)))
      return false;
    seen = Seen::Columns;
    switch (reductionOf(value)) {
    case ops::Reduction::Sum:
      needed_.push_back({rows, 0});
      return true;
    case ops::Reduction::Max:
      needed_.push_back({rows, -kInfinity});
      return true;
    case ops::Reduction::Min:
      needed_.push_back({rows, kInfinity});
      return true;
    default:
      return false;
    }
  }

  /// Products that leave out zeros, with rows of the block on the left.
  bool checkSteps(const Stage &stage, ArrayRef<Access> accesses) {
    auto k = static_cast<int>(stage.shape.size());
    size_t left = 0;
    for (const Accumulator &accumulator : stage.accumulators) {
      const Product &product = *accumulator.product;
      if (!product.leavesOutZeros || product.start || product.segments.size() != 1)
        return false;
      const ProductSegment &segment = product.segments.front();
      const Buffer *lhs = plan_.bufferOf.lookup(segment.lhs);
      if (!runsAlong(lhs) || runsAlong(plan_.bufferOf.lookup(segment.rhs)) ||
          !isAt(segment.lhsView, k) || segment.extent != block_.columns)
        return false;
      needed_.push_back({segment.lhs, 0});
      ++left;
    }
    // What follows the products reads none of these tensors.
    size_t read = llvm::count_if(accesses, [&](const Access &a) { return runsAlong(a.buffer); });
    return read == left;
  }

  /// Products that leave out zeros and sum up rows of the block, whose columns are rows of theirs.
  bool checkSums(const Stage &stage, ArrayRef<Access> accesses, Seen &seen) {
    auto row = static_cast<int>(stage.shape.size()) - 2;
    if (stage.rowAxis != row || stage.shape[static_cast<size_t>(row)] != block_.columns)
      return false;
    seen = Seen::Rows;
    size_t left = 0;
    for (const Accumulator &accumulator : stage.accumulators) {
      const Product &product = *accumulator.product;
      const ProductSegment &segment = product.segments.front();
      if (!product.leavesOutZeros || !runsAlong(plan_.bufferOf.lookup(segment.lhs)) ||
          runsAlong(plan_.bufferOf.lookup(segment.rhs)) || !isAt(segment.lhsView, row))
        return false;
      needed_.push_back({segment.lhs, 0});
      ++left;
    }
    size_t read = llvm::count_if(accesses, [&](const Access &a) { return runsAlong(a.buffer); });
    return read == left;
  }

  Plan &plan_;
  const RowsTogether &rows_;
  RowBlock &block_;
  llvm::DenseMap<Value, Known> known_;
  /// A bound, or where a mask is false.
  struct Limit {
    ColumnBound bound;
    Value mask;
    SmallVector<const Buffer *> reads;
  };
  std::vector<Limit> limits_;
  size_t masks_ = 0;                             ///< among these
  std::vector<std::pair<Value, double>> needed_; ///< what must hold beyond a limit
  std::vector<Seen> seen_;                       ///< of the block's stages
};

} // namespace

void findSeenColumns(Plan &plan, const RowsTogether &rows, RowBlock &block) {
  for (const Buffer *tensor : rows.tensors)
    if (tensor->shape.size() == rows.axes.size() + 1 && !block.seesLess()) {
      block.columns = tensor->shape.back();
      Finder(plan, rows, block).run();
    }
}

} // namespace sheaf::kernels
