//===- Planner.cpp - Which tensors are kept, and which stage computes them -===//

#include "compiler/kernels/plan/Planner.h"

using namespace mlir;

namespace sheaf::kernels {

Planner::Planner(ir::BlockOp block, const PlanOptions &options)
    : block_(block), options_(options), plan_(std::make_unique<Plan>()) {
  plan_->block = block;
  plan_->shapes = std::make_unique<BlockShapes>(block);
}

bool Planner::keep(Value value) {
  Role role = roleOf(value);
  if (role == Role::Argument || role == Role::Weight)
    return false;
  bool isNew = kept_.insert(value);
  if (auto part = regroupedPart(value))
    isNew |= keep(part->of);
  return isNew;
}

bool Planner::isRegrouping(Value value) const {
  return roleOf(value) == Role::View && movementOf(value) == ops::Movement::Reshape &&
         !isPlainReshape(value, *plan_->shapes);
}

bool Planner::isRegroupedAcrossRows(Value value) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    auto apply = dyn_cast<ir::ApplyOp>(user);
    return apply && isRegrouping(apply->getResult(0)) &&
           !liesEvenly(shape(value), shape(apply->getResult(0)));
  });
}

std::optional<Planner::Part> Planner::regroupedPart(Value value) const {
  if (!isRegrouping(value))
    return std::nullopt;
  Value source = value.getDefiningOp()->getOperand(0);
  // Results have rows of their own.
  if (!liesEvenly(shape(source), shape(value)) || isRegroupedAcrossRows(value) ||
      !llvm::all_of(value.getUsers(), [](Operation *user) { return isa<ir::ApplyOp>(user); }))
    return std::nullopt;
  const Part whole{source, identityView(shape(source).size()), shape(source)};
  Part part = whole;
  while (roleOf(part.of) == Role::View) {
    ops::Movement::Kind kind = movementOf(part.of);
    if (kind != ops::Movement::Split && kind != ops::Movement::Slice)
      break;
    auto [of, view] = throughView(part.of, part.view, *plan_->shapes);
    if (llvm::any_of(view, [](const AxisMap &map) { return map.axis < 0 || !map.host.empty(); }))
      break;
    part.of = of;
    part.view = std::move(view);
  }
  Role role = roleOf(part.of);
  if (role == Role::Weight)
    return std::nullopt;
  if (role == Role::Argument || role == Role::Assemble)
    return part;
  // Of what is computed here the part alone is made.
  return whole;
}

/// A view of what a stage of products computes is written by that stage, through the view turned
/// round: else the products would be kept first, and read again in an order that vectors are not
/// in.
std::optional<Planner::RootSpec> Planner::behindViews(Value value, Value target, View view) {
  auto isView = [&](Value v) {
    if (roleOf(v) != Role::View || (v != target && isKept(v)))
      return false;
    ops::Movement::Kind kind = movementOf(v);
    return kind == ops::Movement::Transpose ||
           (kind == ops::Movement::Reshape && isPlainReshape(v, *plan_->shapes));
  };
  if (!options_.fuse || !isView(value))
    return std::nullopt;
  while (isView(value)) {
    // Which axis of the source each axis of the value is.
    auto [source, through] = throughView(value, identityView(shape(value).size()), *plan_->shapes);
    for (AxisMap &map : view) {
      auto from = llvm::find_if(through, [&](const AxisMap &m) { return m.axis == map.axis; });
      map.axis =
          map.axis < 0 || from == through.end() ? -1 : static_cast<int>(from - through.begin());
    }
    value = source;
  }
  Role role = roleOf(value);
  if (isKept(value) || (role != Role::Product && role != Role::Elementwise))
    return std::nullopt;
  Reads reads = read(value, true);
  View plain = identityView(shape(value).size());
  bool isProducts = llvm::any_of(reads.products, [&](auto &each) { return each.second == plain; });
  if (!isProducts || shape(value).empty())
    return std::nullopt;
  return RootSpec{RootSpec::Piece, value, target, std::move(view)};
}

std::vector<Planner::RootSpec> Planner::rootsOf(Value kept) {
  size_t rank = shape(kept).size();
  Role role = roleOf(kept);
  if (role == Role::Dot || role == Role::Reduction)
    return {{RootSpec::Reduction, kept, {}, identityView(rank)}};
  if (role == Role::View)
    if (auto behind = behindViews(kept, kept, identityView(rank))) {
      turned_.insert(kept);
      return {std::move(*behind)};
    }
  if (role != Role::Assemble)
    return {{RootSpec::Whole, kept, {}, identityView(rank)}};
  auto concat = kept.getDefiningOp<ir::ApplyOp>();
  size_t axis = axisOf(concat, "axis", 0, rank);
  std::vector<RootSpec> roots;
  Dim begin = 0;
  for (Value piece : concat.getOperands()) {
    View view = identityView(rank);
    view[axis].offset = begin;
    begin = begin + shape(piece)[axis];
    if (auto behind = behindViews(piece, kept, view))
      roots.push_back(std::move(*behind));
    else
      roots.push_back({RootSpec::Piece, piece, kept, std::move(view)});
  }
  return roots;
}

/// Whether a product sums up rows of a tensor that may be much larger than the sums: such a stage
/// does nothing else, so that it may go with a block of these rows.
bool Planner::sumsLargeRows(const Product &product) const {
  auto unknown = [&](Value value) {
    return llvm::count_if(shape(value), [](const Dim &dim) { return !dim.isConstant(); });
  };
  return modeOf(product).contractsRows &&
         llvm::any_of(product.segments, [&](const ProductSegment &segment) {
           return std::max(unknown(segment.lhs), unknown(segment.rhs)) > unknown(product.value);
         });
}

/// Whether a stage may compute a kept tensor along with a root that reads it.
bool Planner::isSoft(const RootSpec &root, Value kept, const View &view) const {
  Role role = roleOf(kept);
  if (const Product *product = plan_->productOf.lookup(kept);
      product && (sumsLargeRows(*product) || maskedOperand(*product)))
    return false;
  if (!options_.fuse || root.kind == RootSpec::Reduction || role == Role::Assemble ||
      turned_.contains(kept) || regroupedPart(kept) || role == Role::Reduction ||
      role == Role::Dot || role == Role::Argument || role == Role::Weight)
    return false;
  return view == identityView(shape(root.value).size()) && shape(kept) == shape(root.value);
}

/// What a run of a product reads: its operands and the indices that pick parts of them.
static llvm::SmallVector<Value> operandsOf(const ProductSegment &segment) {
  llvm::SmallVector<Value> operands{segment.lhs, segment.rhs};
  for (const View *view : {&segment.lhsView, &segment.rhsView})
    for (const AxisMap &map : *view)
      if (map.index)
        operands.push_back(map.index);
  return operands;
}

int Planner::productLevel(const Product &product) const {
  int level = 0;
  for (const ProductSegment &segment : product.segments)
    for (Value operand : operandsOf(segment))
      if (isKept(operand))
        level = std::max(level, levelOf(operand) + 1);
  if (product.start && isKept(product.start))
    level = std::max(level, levelOf(product.start) + 1);
  return level;
}

/// The first level at which everything that is read is in memory.
int Planner::levelOf(const Reads &reads) const {
  int level = 0;
  auto follow = [&](Value read) {
    if (isKept(read))
      level = std::max(level, levelOf(read) + 1);
  };
  for (auto &[kept, view] : reads.kept)
    follow(kept);
  for (Value whole : reads.whole)
    follow(whole);
  for (auto &[reshape, view] : reads.reshapes)
    follow(reshape.getDefiningOp()->getOperand(0));
  for (auto &[product, view] : reads.products)
    level = std::max(level, productLevel(*product));
  return level;
}

Planner::Mode Planner::modeOf(const Product &product) {
  // Where rows of operands are contracted, and where they are rows of sums, blocks of rows differ.
  const View &lhs = product.segments.front().lhsView;
  auto k = static_cast<int>(cast<RankedTensorType>(product.value.getType()).getRank());
  bool contractsRows = !product.ofWeights && lhs.size() >= 2 && lhs[lhs.size() - 2].axis == k;
  return {true, product.method, product.rowsAreRecords, contractsRows};
}

void Planner::readAlong(const RootSpec &root, int level,
                        llvm::function_ref<void(const Reads &)> visit) {
  // A piece that is kept itself is computed along only by a stage of its own level.
  if (!root.computed() && isKept(root.value) && levelOf(root.value) != level)
    return;
  llvm::SmallVector<Value> work{root.value};
  llvm::SmallPtrSet<Value, 8> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    Reads reads = read(value, true);
    visit(reads);
    for (auto &[kept, view] : reads.kept)
      if (isKept(kept) && isSoft(root, kept, view) && levelOf(kept) == level)
        work.push_back(kept);
  }
}

Planner::Mode Planner::modeOf(const RootSpec &root, int level, const Product **only,
                              bool &conflict) {
  Mode mode;
  readAlong(root, level, [&](const Reads &reads) {
    for (auto &[product, view] : reads.products) {
      Mode m = modeOf(*product);
      if ((mode.products && mode != m) || (!options_.merge && *only && *only != product))
        conflict = true;
      mode = m;
      if (!options_.merge)
        *only = product;
    }
  });
  return mode;
}

/// Whether it is something that is there, or zero where a mask is false, and nothing takes it but
/// products that leave out zeros, on their left.
bool Planner::isMaskedOperand(Value value) const {
  if (roleOf(value) != Role::Elementwise || !std::get<ops::Elementwise>(batchRuleOf(value)).selects)
    return false;
  auto isThere = [&](Value operand) {
    while (roleOf(operand) == Role::View && !isKept(operand))
      operand = operand.getDefiningOp()->getOperand(0);
    Role role = roleOf(operand);
    return role == Role::Argument || role == Role::Weight || role == Role::Fill ||
           isKept(operand) || shape(operand).empty();
  };
  return llvm::all_of(value.getDefiningOp()->getOperands().drop_front(), isThere) &&
         llvm::all_of(value.getUsers(), [&](Operation *user) {
           const Product *product =
               user->getNumResults() ? plan_->productOf.lookup(user->getResult(0)) : nullptr;
           return product && product->leavesOutZeros && product->segments.front().lhs == value;
         });
}

/// The left operand of a product that leaves out its zeros, if it is one; else null.
Value Planner::maskedOperand(const Product &product) const {
  Value left = product.segments.front().lhs;
  bool isBlock = options_.blockRows != 0 && options_.skipUnseen;
  return isBlock && product.leavesOutZeros && isMaskedOperand(left) ? left : Value();
}

/// What different masks hide goes into different stages, and so with blocks of rows of its own.
Value Planner::maskedOperand(const RootSpec &root, int level) {
  if (isMaskedOperand(root.value))
    return root.value;
  Value masked;
  bool isOne = true;
  readAlong(root, level, [&](const Reads &reads) {
    for (auto &[product, view] : reads.products) {
      Value left = maskedOperand(*product);
      isOne &= left && (!masked || masked == left);
      masked = left;
    }
  });
  return isOne ? masked : Value();
}

/// A reduction reads from memory what products are made into: all that follows them, if that is
/// element by element, and so what others make of the same is there as well.
void Planner::keepForReduction(Value reduction, const Reads &reads) {
  Value operand = reduction.getDefiningOp()->getOperand(0);
  View plain = identityView(shape(operand).size());
  bool follows = roleOf(reduction) == Role::Reduction && roleOf(operand) == Role::Elementwise &&
                 llvm::all_of(reads.products, [&](auto &r) { return r.second == plain; });
  if (follows && options_.fuse)
    keep(operand);
  else
    for (auto &[product, view] : reads.products)
      keep(product->value);
}

/// Finds the stage of a root, makes it if there is none, and gives its level.
int Planner::place(const RootSpec &root) {
  Reads reads = read(root.value, root.computed());
  Reads hard = reads;
  llvm::erase_if(hard.kept, [&](auto &r) { return isSoft(root, r.first, r.second); });
  int level = levelOf(hard);
  for (auto &[kept, view] : reads.kept)
    if (isKept(kept))
      level = std::max(level, levelOf(kept));
  llvm::SmallPtrSet<Value, 2> masked;
  for (auto &[product, view] : reads.products)
    if (Value left = maskedOperand(*product))
      masked.insert(left);
  for (auto &[product, view] : reads.products) {
    for (const ProductSegment &segment : product->segments)
      for (Value operand : operandsOf(segment))
        keep(operand);
    if (product->start)
      keep(product->start);
    // A stage sums up consecutive columns at its own places; of weights it takes as many columns
    // as the program says.
    View plain = identityView(shape(root.value).size()), unshifted = view;
    if (!unshifted.empty() && unshifted.back().offset.isConstant())
      unshifted.back().offset = 0;
    if (root.kind == RootSpec::Reduction)
      keepForReduction(root.value, reads);
    else if (unshifted != plain || (product->ofWeights && !shape(root.value).back().isConstant()) ||
             (product->value != root.value && (sumsLargeRows(*product) || masked.size() > 1)))
      keep(product->value);
  }
  const Product *only = nullptr;
  bool conflict = false;
  Mode mode = modeOf(root, level, &only, conflict);
  if (conflict) {
    // What is not compatible is read back from memory, one level later.
    Mode favoured{true, 0, true};
    for (auto &[product, view] : reads.products)
      if (Mode m = modeOf(*product); m.rowsAreRecords && m.method != 0)
        favoured = m;
    for (auto &[product, view] : reads.products)
      if (!options_.merge || modeOf(*product) != favoured)
        keep(product->value);
    ++level;
    only = nullptr;
    mode = modeOf(root, level, &only, conflict);
  }
  StageKey key{level, shape(root.value), mode, only, {}, maskedOperand(root, level)};
  if (root.kind == RootSpec::Reduction) {
    key.shape = shape(root.value);
    key.reduction = root.value;
  }
  auto it = llvm::find_if(stageRoots_, [&](auto &entry) { return entry.first == key; });
  if (it == stageRoots_.end()) {
    stageRoots_.push_back({key, {}});
    it = std::prev(stageRoots_.end());
  }
  it->second.push_back(root);
  return level;
}

/// Levels of all kept tensors and the stages of their roots. True when something was newly kept.
bool Planner::settle() {
  size_t before = kept_.size();
  stageRoots_.clear();
  levels_.clear();
  turned_.clear();
  // Program order is a topological order.
  for (Operation &op : block_.getBody().front().without_terminator())
    for (Value value : op.getResults())
      if (!isKept(value))
        continue;
      else if (auto part = regroupedPart(value))
        levels_[value] = isKept(part->of) ? levelOf(part->of) : -1; // arguments are there
      else
        for (const RootSpec &root : rootsOf(value)) {
          int level = place(root);
          levels_[value] = std::max(levels_.lookup(value), level);
        }
  for (const RootSpec &copy : copies_)
    place(copy);
  return kept_.size() != before;
}

/// Keeps the largest parts of an expression that could have been computed at an earlier level
/// and need this product.
bool Planner::keepBelow(Value root, const Product *product, int level) {
  bool changed = false;
  llvm::SmallVector<Value> work{root};
  llvm::SmallPtrSet<Value, 8> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (const Product *own = plan_->productOf.lookup(value)) {
      if (own == product)
        changed |= keep(value);
      continue;
    }
    Role role = roleOf(value);
    if (role == Role::Argument || role == Role::Weight || (value != root && isKept(value)))
      continue;
    if ((role == Role::Elementwise || role == Role::Fold) && value != root) {
      Reads reads = read(value, true);
      bool needs = llvm::any_of(reads.products, [&](auto &r) { return r.first == product; });
      if (needs && levelOf(reads) < level) {
        changed |= keep(value);
        continue;
      }
    }
    for (Value operand : value.getDefiningOp()->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        work.push_back(operand);
  }
  return changed;
}

/// A product is computed by one stage.
bool Planner::settleProducts() {
  struct Use {
    const StageKey *stage;
    Value root;
  };
  llvm::MapVector<const Product *, llvm::SmallVector<Use>> uses;
  for (auto &[key, roots] : stageRoots_)
    for (const RootSpec &root : roots)
      for (auto &[product, view] : read(root.value, root.computed()).products)
        uses[product].push_back({&key, root.value});
  bool changed = false;
  for (auto &[product, users] : uses) {
    int first = INT32_MAX;
    for (const Use &use : users)
      first = std::min(first, use.stage->level);
    const StageKey *home = nullptr;
    for (const Use &use : users) {
      if (use.stage->level > first)
        changed |= keepBelow(use.root, product, use.stage->level);
      else if (!home)
        home = use.stage;
      else if (home != use.stage)
        changed |= keep(product->value);
    }
  }
  return changed;
}

/// An expression of some length that two stages need is kept rather than computed twice.
bool Planner::settleShared() {
  llvm::MapVector<Value, llvm::SmallPtrSet<const void *, 4>> stagesOf;
  for (auto &[key, roots] : stageRoots_)
    for (const RootSpec &root : roots)
      for (Value value : read(root.value, root.computed()).elementwise)
        if (value != root.value || !root.computed())
          stagesOf[value].insert(&key);
  // What has one element a row is computed once a row, which costs next to nothing.
  auto isAlongRows = [&](Value value) {
    return !shape(value).empty() && shape(value).back() != Dim(1);
  };
  // To compute with numbers of rows and columns takes less than to read from memory what came of
  // it: masks, ints, and these as floats.
  auto isOfPlaces = [&](Value value, const Reads &reads) {
    return isOfFewerAxes(value) &&
           (dtypeOf(value) == ops::DType::Bool || llvm::all_of(reads.elementwise, [&](Value each) {
              return each == value || !ops::isFloat(dtypeOf(each));
            }));
  };
  bool changed = false;
  for (auto &[value, stages] : stagesOf) {
    if (stages.size() < 2)
      continue;
    Reads reads = read(value, true);
    if (!isOfPlaces(value, reads) &&
        (roleOf(value) == Role::Fold || llvm::count_if(reads.elementwise, isAlongRows) >= 2))
      changed |= keep(value);
  }
  return changed;
}

std::unique_ptr<Plan> Planner::run() {
  llvm::SmallPtrSet<Value, 4> results;
  for (auto [i, result] :
       llvm::enumerate(block_.getBody().front().getTerminator()->getOperands())) {
    bool isFirst = results.insert(result).second;
    keep(result);
    if (!isFirst || !isKept(result))
      copies_.push_back({RootSpec::Copy,
                         result,
                         {},
                         identityView(shape(result).size()),
                         static_cast<unsigned>(i)});
  }
  if (!options_.fuse)
    for (Operation &op : block_.getBody().front().without_terminator())
      if (auto apply = dyn_cast<ir::ApplyOp>(op))
        for (Value result : apply->getResults())
          if (roleOf(result) != Role::View && roleOf(result) != Role::Fill)
            keep(result);
  // Each round keeps at least one tensor more, so it ends.
  do {
    findProducts();
  } while (settle() || settleProducts() || settleShared());

  recordLayout();
  makeBuffers();
  makeStages();
  countWork();
  return std::move(plan_);
}

std::unique_ptr<Plan> planBlock(ir::BlockOp block, const PlanOptions &options) {
  return Planner(block, options).run();
}

} // namespace sheaf::kernels
