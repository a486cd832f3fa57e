//===- Stages.cpp - Buffers and stages of a plan --------------------------===//

#include "compiler/kernels/plan/Planner.h"

#include <numeric>

using namespace mlir;

namespace sheaf::kernels {

void Planner::makeBuffers() {
  Block &body = block_.getBody().front();
  auto add = [&](Buffer::Kind kind, Value value, size_t index) {
    plan_->buffers.push_back(
        {kind, value, dtypeOf(value), shape(value), static_cast<unsigned>(index)});
    return &plan_->buffers.back();
  };
  auto reserve = [&](Value value) {
    plan_->records.results.push_back({dtypeOf(value), shape(value)});
    return add(Buffer::Result, value, plan_->records.results.size() - 1);
  };

  for (BlockArgument arg : body.getArguments())
    if (isa<RankedTensorType>(arg.getType())) {
      bool isWeight = roleOf(arg) == Role::Weight;
      plan_->bufferOf[arg] =
          add(isWeight ? Buffer::Weight : Buffer::Argument, arg,
              isWeight ? plan_->weightNumber(arg) : plan_->argumentWords[arg.getArgNumber()]);
    }
  for (BlockArgument arg : body.getArguments())
    if (isa<ir::ListType>(arg.getType()))
      plan_->bufferOf[arg] = add(Buffer::List, arg, plan_->argumentWords[arg.getArgNumber()]);
  for (Value result : body.getTerminator()->getOperands()) {
    resultBuffers_.push_back(reserve(result));
    // A copy does not stand for its value.
    plan_->bufferOf.try_emplace(result, resultBuffers_.back());
  }
  llvm::SmallVector<Value> parts;
  for (Value value : kept_) {
    if (plan_->bufferOf.contains(value))
      continue;
    if (regroupedPart(value)) {
      parts.push_back(value);
      continue;
    }
    bool isKnown = llvm::all_of(shape(value), [](const Dim &d) { return d.isConstant(); });
    plan_->bufferOf[value] = add(isKnown ? Buffer::Scratch : Buffer::Temporary, value, 0);
    if (options_.wideFactors && isOfFactors(value))
      plan_->buffers.back().dtype = ops::DType::F32;
    // It takes no more room without padding, not even where the last row is written in whole
    // vectors.
    plan_->buffers.back().dense = isRegroupedAcrossRows(value);
  }
  // One may lie in another, which the program makes before it.
  llvm::sort(parts, [](Value a, Value b) {
    return a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp());
  });
  for (Value value : parts) {
    Part part = *regroupedPart(value);
    const Buffer *whole = plan_->bufferOf.lookup(part.of);
    Buffer &buffer = plan_->regrouped.emplace_back(*whole);
    buffer.value = value;
    buffer.shape = shape(value);
    buffer.dense = false;
    buffer.regroups = whole;
    buffer.part = part.shape;
    for (const AxisMap &map : part.view)
      buffer.partBegin.push_back(map.offset);
    plan_->bufferOf[value] = &buffer;
  }
}

/// The accumulators of a stage: products and columns that its roots read, through what the stage
/// itself computes on the way.
void Planner::findAccumulators(Stage &stage, llvm::ArrayRef<RootSpec> roots) {
  for (const RootSpec &root : roots)
    readAlong(root, stage.level, [&](const Reads &reads) {
      for (auto &[product, view] : reads.products) {
        int64_t column = view.back().offset.constant();
        if (llvm::none_of(stage.accumulators, [&](const Accumulator &a) {
              return a.product == product && a.column == column;
            }))
          stage.accumulators.push_back({product, column});
      }
      for (auto &[kept, view] : reads.kept) {
        const Buffer *buffer = plan_->bufferOf.lookup(kept);
        if (buffer->kind == Buffer::Argument && view.size() == 1 && view[0].axis == 0 &&
            !llvm::is_contained(stage.argumentRows, buffer))
          stage.argumentRows.push_back(buffer);
      }
    });
  int axis = static_cast<int>(stage.shape.size()) - 2;
  bool shared = llvm::all_of(stage.accumulators, [&](const Accumulator &a) {
    return llvm::all_of(a.product->segments, [&](const ProductSegment &segment) {
      return !dependsOn(segment.rhsView, axis);
    });
  });
  if (!stage.rowsAreRecords && axis >= 0 && shared)
    stage.rowAxis = axis;
}

/// Products of the same rows are computed in one run over k.
void Planner::groupProducts(Stage &stage) {
  for (unsigned i = 0; i < stage.accumulators.size(); ++i) {
    const Product &product = *stage.accumulators[i].product;
    auto sameRows = [&](const ProductGroup &group) {
      const Product &lead = *group.lead;
      if (lead.ofWeights != product.ofWeights || lead.leavesOutZeros != product.leavesOutZeros ||
          lead.segments.size() != product.segments.size())
        return false;
      for (auto [a, b] : llvm::zip(lead.segments, product.segments))
        if (a.lhs != b.lhs || a.lhsView != b.lhsView || a.extent != b.extent)
          return false;
      return true;
    };
    auto group = llvm::find_if(stage.groups, sameRows);
    if (group == stage.groups.end()) {
      stage.groups.push_back({&product, {}});
      group = std::prev(stage.groups.end());
    }
    group->accumulators.push_back(i);
  }
}

/// Those that something else than a product of weights reads.
llvm::SmallPtrSet<Value, 8> Planner::weightsReadAsTheyAre() {
  llvm::SmallPtrSet<Value, 8> weights;
  llvm::SmallPtrSet<Value, 32> seen;
  llvm::SmallVector<Value> work(block_.getBody().front().getTerminator()->getOperands());
  // Without `simplify` and `fuse` there are stages of what nothing follows from.
  for (const auto &[key, roots] : stageRoots_)
    for (const RootSpec &root : roots)
      work.push_back(root.value);
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (roleOf(value) == Role::Weight)
      weights.insert(value);
    const Product *product = plan_->productOf.lookup(value);
    if (product && product->ofWeights) {
      for (const ProductSegment &segment : product->segments)
        work.push_back(segment.lhs);
      if (product->start && roleOf(product->start) != Role::Weight)
        work.push_back(product->start);
    } else if (Operation *op = value.getDefiningOp()) {
      for (Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          work.push_back(operand);
    }
  }
  return weights;
}

/// What the stage of these roots reads from memory.
void Planner::findReads(Stage &stage, ArrayRef<RootSpec> roots) {
  auto visit = [&](Value value, std::optional<View> view) {
    if (const Buffer *buffer = plan_->bufferOf.lookup(value))
      stage.reads.push_back({buffer, std::move(view), false});
  };
  auto visitIndices = [&](const View &view) {
    for (const AxisMap &map : view)
      if (map.index)
        visit(map.index, std::nullopt);
  };
  auto visitAt = [&](Value value, const View &view) {
    visit(value, view);
    visitIndices(view);
  };
  for (const RootSpec &root : roots) {
    // A piece of a tensor that another stage has made, and this one copies.
    if (!root.computed() && isKept(root.value) && levelOf(root.value) != stage.level)
      visit(root.value, identityView(shape(root.value).size()));
    readAlong(root, stage.level, [&](const Reads &reads) {
      for (auto &[kept, view] : reads.kept)
        if (!isKept(kept) || levelOf(kept) != stage.level)
          visitAt(kept, view);
      for (Value whole : reads.whole)
        visit(whole, std::nullopt);
      for (auto &[reshape, view] : reads.reshapes)
        if (const Buffer *buffer = plan_->bufferOf.lookup(reshape.getDefiningOp()->getOperand(0))) {
          bool byStrides = buffer->dense || liesEvenly(buffer->shape, shape(reshape));
          stage.reads.push_back({buffer, byStrides ? std::optional(view) : std::nullopt, true});
          visitIndices(view);
        }
      for (auto &[product, view] : reads.products) {
        if (product->start)
          visit(product->start, std::nullopt);
        for (const ProductSegment &segment : product->segments) {
          visitAt(segment.lhs, segment.lhsView);
          visitAt(segment.rhs, segment.rhsView);
        }
      }
    });
  }
}

void Planner::makeStages() {
  std::vector<size_t> order(stageRoots_.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::pair(stageRoots_[a].first.level, a) < std::pair(stageRoots_[b].first.level, b);
  });
  std::vector<ArrayRef<RootSpec>> rootsOfStages;
  for (size_t number : order) {
    auto &[key, roots] = stageRoots_[number];
    Stage stage;
    stage.kind = key.reduction ? Stage::Reduce : key.mode.products ? Stage::Products : Stage::Loop;
    stage.level = key.level;
    stage.shape = key.shape;
    stage.method = key.mode.method;
    stage.rowsAreRecords = key.mode.rowsAreRecords;
    stage.masks = key.masked && stage.kind == Stage::Loop;
    if (stage.kind == Stage::Products) {
      findAccumulators(stage, roots);
      groupProducts(stage);
    }
    for (const RootSpec &root : roots) {
      const Buffer *buffer = root.kind == RootSpec::Copy
                                 ? resultBuffers_[root.result]
                                 : plan_->bufferOf.lookup(root.target ? root.target : root.value);
      stage.roots.push_back({root.value, buffer, root.view, root.computed()});
    }
    plan_->stages.push_back(std::move(stage));
    rootsOfStages.push_back(roots);
  }
  llvm::SmallPtrSet<Value, 8> asTheyAre = weightsReadAsTheyAre();
  for (Buffer &buffer : plan_->buffers)
    if (buffer.kind == Buffer::Weight)
      buffer.readAsIs = asTheyAre.contains(buffer.value);
  plan_->levels = levels_;
  for (auto [stage, roots] : llvm::zip_equal(plan_->stages, rootsOfStages))
    findReads(stage, roots);
  findRowBlocks();
  shareTemporaries();
}

} // namespace sheaf::kernels
