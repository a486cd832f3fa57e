//===- Planner.cpp - Which tensors are kept, and which stage computes them -===//

#include "compiler/kernels/Planner.h"
#include "runtime/error.h"

using namespace mlir;

namespace sheaf::kernels {

Planner::Planner(ir::BlockOp block, const Target &target, const std::set<std::string> &without)
    : block_(block), target_(target), fuse_(!without.contains("fuse")),
      merge_(!without.contains("merge")), panels_(!without.contains("panels")),
      plan_(std::make_shared<Plan>()) {
  plan_->block = block;
  plan_->shapes = std::make_unique<BlockShapes>(block);
}

bool Planner::keep(Value value) {
  Role role = roleOf(value);
  if (role == Role::Argument || role == Role::Weight)
    return false;
  return kept_.insert(value);
}

std::vector<Planner::RootSpec> Planner::rootsOf(Value kept) const {
  size_t rank = shape(kept).size();
  switch (roleOf(kept)) {
  case Role::Dot:
  case Role::Reduction:
    return {{kept, kept, identityView(rank), true, false}};
  case Role::Assemble: {
    auto apply = kept.getDefiningOp<ir::ApplyOp>();
    const auto &rule = std::get<ops::Movement>(ops::OpTable::get().find(apply.getOp())->batch);
    bool stack = rule.kind == ops::Movement::Stack;
    size_t axis = axisOf(apply, "axis", 0, rank);
    std::vector<RootSpec> roots;
    Dim begin = 0;
    for (Value piece : apply.getOperands()) {
      View view = identityView(shape(piece).size());
      if (stack) {
        view.insert(view.begin() + axis, AxisMap{-1, begin, {}, {}, {}});
        for (size_t a = axis + 1; a < view.size(); ++a)
          view[a].axis = static_cast<int>(a) - 1;
        begin = begin + Dim(1);
      } else {
        view[axis].offset = begin;
        begin = begin + shape(piece)[axis];
      }
      roots.push_back({piece, kept, view, false, true});
    }
    return roots;
  }
  default:
    return {{kept, kept, identityView(rank), false, false}};
  }
}

void Planner::read(Value value, const View &view, bool top, Reads &reads) {
  Role role = roleOf(value);
  if (role == Role::Argument || role == Role::Weight || (!top && isKept(value))) {
    reads.kept.push_back({value, view});
    return;
  }
  if (const Product *product = plan_->productOf.lookup(value)) {
    reads.products.push_back({product, view});
    return;
  }
  auto apply = value.getDefiningOp<ir::ApplyOp>();
  switch (role) {
  case Role::Elementwise:
    if (!llvm::is_contained(reads.elementwise, value))
      reads.elementwise.push_back(value);
    for (Value operand : apply.getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        read(operand, throughBroadcast(value, operand, view, *plan_->shapes), false, reads);
    return;
  case Role::View: {
    const auto &rule = std::get<ops::Movement>(ops::OpTable::get().find(apply.getOp())->batch);
    if (rule.kind == ops::Movement::Reshape && !isPlainReshape(value, *plan_->shapes)) {
      keep(apply.getOperand(0));
      reads.kept.push_back({apply.getOperand(0), view}); // addressed by row-major number
      return;
    }
    if (rule.kind == ops::Movement::Gather) {
      keep(apply.getOperand(0));
      keep(apply.getOperand(1));
      reads.kept.push_back({apply.getOperand(1), {}});
    }
    auto [source, through] = throughView(value, view, *plan_->shapes);
    read(source, through, false, reads);
    return;
  }
  case Role::Dot:
  case Role::Reduction:
  case Role::Assemble:
    if (!top) {
      keep(value);
      reads.kept.push_back({value, view});
      return;
    }
    for (Value operand : apply.getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        read(operand, identityView(shape(operand).size()), false, reads);
    return;
  default:
    return;
  }
}

bool Planner::isSoft(const RootSpec &root, Value kept, const View &view) const {
  if (!fuse_ || root.reduce || roleOf(kept) == Role::Assemble || roleOf(kept) == Role::Reduction ||
      roleOf(kept) == Role::Dot || roleOf(kept) == Role::Argument || roleOf(kept) == Role::Weight)
    return false;
  return view == identityView(shape(root.value).size()) && shape(kept) == shape(root.value);
}

int Planner::productLevel(const Product &product) const {
  int level = 0;
  for (const ProductSegment &segment : product.segments)
    for (Value operand : {segment.lhs, segment.rhs})
      if (isKept(operand))
        level = std::max(level, levelOf(operand) + 1);
  return level;
}

/// The first level at which an expression's buffers and products are all there.
int Planner::inlineLevel(Value value) {
  Reads reads;
  read(value, identityView(shape(value).size()), true, reads);
  int level = 0;
  for (auto &[kept, view] : reads.kept)
    if (isKept(kept))
      level = std::max(level, levelOf(kept) + 1);
  for (auto &[product, view] : reads.products)
    level = std::max(level, productLevel(*product));
  return level;
}

Planner::Mode Planner::modeOf(const RootSpec &root, int level, const Product **only,
                              bool &conflict) {
  Mode mode = Mode::None;
  llvm::SmallVector<Value> work{root.value};
  llvm::SmallPtrSet<Value, 8> seen;
  // A piece that is kept itself is computed along only by a stage of its own level.
  if (root.piece && isKept(root.value) && levelOf(root.value) != level)
    return mode;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    Reads reads;
    read(value, identityView(shape(value).size()), true, reads);
    for (auto &[product, view] : reads.products) {
      Mode m = product->rowsAreRecords ? Mode::Records : Mode::Inner;
      if ((mode != Mode::None && mode != m) || (!merge_ && *only && *only != product))
        conflict = true;
      mode = m;
      if (!merge_)
        *only = product;
    }
    for (auto &[kept, view] : reads.kept)
      if (isKept(kept) && isSoft(root, kept, view) && levelOf(kept) == level)
        work.push_back(kept);
  }
  return mode;
}

/// Levels of all kept tensors and the stages of their roots. True when something was newly kept.
bool Planner::settle() {
  size_t before = kept_.size();
  stageRoots_.clear();
  levels_.clear();
  // Program order is a topological order.
  for (Operation &op : block_.getBody().front().without_terminator())
    for (Value value : op.getResults()) {
      if (!isKept(value))
        continue;
      for (const RootSpec &root : rootsOf(value)) {
        Reads reads;
        read(root.value, identityView(shape(root.value).size()), !root.piece, reads);
        int level = 0;
        for (auto &[kept, view] : reads.kept)
          if (isKept(kept))
            level = std::max(level, levelOf(kept) + !isSoft(root, kept, view));
        for (auto &[product, view] : reads.products) {
          level = std::max(level, productLevel(*product));
          for (const ProductSegment &segment : product->segments) {
            keep(segment.lhs);
            keep(segment.rhs);
          }
          // A tile's accumulators are whole vectors of consecutive columns of its own rows.
          View plain = identityView(shape(root.value).size());
          bool simple = !root.reduce && view.size() == plain.size();
          if (simple) {
            View unshifted = view;
            simple = unshifted.back().offset.isConstant();
            unshifted.back().offset = 0;
            simple &= unshifted == plain;
          }
          if (!simple)
            keep(product->value);
        }
        const Product *only = nullptr;
        bool conflict = false;
        Mode mode = modeOf(root, level, &only, conflict);
        if (conflict) {
          // What is not compatible is read back from memory, one level later.
          for (auto &[product, view] : reads.products)
            if (!merge_ || !product->rowsAreRecords)
              keep(product->value);
          ++level;
          conflict = false;
          only = nullptr;
          mode = modeOf(root, level, &only, conflict);
        }
        levels_[value] = std::max(levels_.lookup(value), level);
        StageKey key{level, shape(root.value), mode, only, root.reduce ? value : Value()};
        if (root.reduce)
          key.shape = shape(value);
        auto it = llvm::find_if(stageRoots_, [&](auto &entry) { return entry.first == key; });
        if (it == stageRoots_.end()) {
          stageRoots_.push_back({key, {}});
          it = std::prev(stageRoots_.end());
        }
        it->second.push_back(root);
      }
    }
  return kept_.size() != before;
}

/// Keeps the largest parts of an expression that could have been computed at an earlier level
/// and need this product.
void Planner::keepBelow(Value value, const View &view, const Product *product, int level,
                        bool &changed) {
  if (plan_->productOf.lookup(value) == product) {
    changed |= keep(value);
    return;
  }
  if (roleOf(value) == Role::Argument || roleOf(value) == Role::Weight || isKept(value) ||
      plan_->productOf.lookup(value))
    return;
  auto apply = value.getDefiningOp<ir::ApplyOp>();
  if (roleOf(value) == Role::Elementwise) {
    Reads reads;
    read(value, view, true, reads);
    bool needs = llvm::any_of(reads.products, [&](auto &r) { return r.first == product; });
    if (needs && inlineLevel(value) < level) {
      changed |= keep(value);
      return;
    }
  }
  for (Value operand : apply.getOperands())
    if (isa<RankedTensorType>(operand.getType()))
      keepBelow(operand, identityView(shape(operand).size()), product, level, changed);
}

/// A product is computed by one stage.
bool Planner::settleProducts() {
  bool changed = false;
  for (const Product &product : plan_->products) {
    if (!product.value)
      continue;
    llvm::SmallVector<std::pair<const StageKey *, const RootSpec *>> users;
    for (auto &[key, roots] : stageRoots_)
      for (const RootSpec &root : roots) {
        Reads reads;
        read(root.value, identityView(shape(root.value).size()), !root.piece, reads);
        if (llvm::any_of(reads.products, [&](auto &r) { return r.first == &product; }))
          users.push_back({&key, &root});
      }
    int first = INT32_MAX;
    for (auto &[key, root] : users)
      first = std::min(first, key->level);
    const StageKey *home = nullptr;
    for (auto &[key, root] : users) {
      if (key->level > first)
        keepBelow(root->value, identityView(shape(root->value).size()), &product, key->level,
                  changed);
      else if (!home)
        home = key;
      else if (home != key)
        changed |= keep(product.value);
    }
  }
  return changed;
}

/// An expression of some length that two stages need is kept rather than computed twice.
bool Planner::settleShared() {
  llvm::MapVector<Value, llvm::SmallPtrSet<const void *, 4>> stagesOf;
  for (auto &[key, roots] : stageRoots_)
    for (const RootSpec &root : roots) {
      Reads reads;
      read(root.value, identityView(shape(root.value).size()), !root.piece, reads);
      for (Value value : reads.elementwise)
        if (value != root.value || root.piece)
          stagesOf[value].insert(&key);
    }
  bool changed = false;
  for (auto &[value, stages] : stagesOf) {
    if (stages.size() < 2 && !(stages.size() == 1 && isKept(value)))
      continue;
    Reads reads;
    read(value, identityView(shape(value).size()), true, reads);
    if (reads.elementwise.size() >= 2)
      changed |= keep(value);
  }
  return changed;
}

Kernel Planner::run() {
  for (Value result : block_.getBody().front().getTerminator()->getOperands())
    keep(result);
  if (!fuse_)
    for (Operation &op : block_.getBody().front().without_terminator())
      if (auto apply = dyn_cast<ir::ApplyOp>(op))
        for (Value result : apply->getResults())
          if (roleOf(result) != Role::View && roleOf(result) != Role::Fill)
            keep(result);
  // Each round keeps at least one tensor more, so it ends.
  do {
    findProducts();
  } while (settle() || settleProducts() || settleShared());

  Kernel kernel;
  kernel.block = block_;
  kernel.symbol = "kernel_" + block_.getSymName().str();
  kernel.plan = plan_;
  recordLayout(kernel);
  makeBuffers(kernel);
  makeStages(kernel);
  countFlop(kernel);
  describe(kernel);
  return kernel;
}

std::vector<Kernel> planKernels(ModuleOp module, const Target &target,
                                const std::set<std::string> &without) {
  std::vector<Kernel> kernels;
  for (auto block : module.getOps<ir::BlockOp>())
    kernels.push_back(Planner(block, target, without).run());
  return kernels;
}

} // namespace sheaf::kernels
