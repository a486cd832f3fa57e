//===- PackWeights.cpp - How the weights of products are packed -----------===//

#include "compiler/kernels/cpu/LayoutPlanner.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sheaf::kernels::cpu {

/// Where the factors of each group lie in a row of the stage.
void LayoutPlanner::placeFactors(Stage &stage) {
  for (ProductGroup &group : stage.groups) {
    if (group.weightUse < 0)
      continue;
    for (const ProductSegment &segment : group.lead->segments)
      group.depth +=
          static_cast<int64_t>(llvm::alignTo(segment.extent.constant(), depthMultiple(stage.sums)));
    if (stage.sums == Sums::Chain)
      continue;
    group.rowOffset = stage.factorRow;
    stage.factorRow += group.depth * factorBytes(stage.sums);
    if (stage.sums == Sums::Foreign) {
      group.columnOffset = stage.sumsRow;
      stage.sumsRow += static_cast<int64_t>(group.accumulators.size()) *
                       stage.shape.back().constant() * bytesOf(ops::DType::F32);
    }
  }
  // Whole vectors are written; rows that lie a multiple of a page apart would meet in the caches.
  for (int64_t *row : {&stage.factorRow, &stage.sumsRow}) {
    *row = static_cast<int64_t>(llvm::alignTo(*row, rt::kGranuleBytes));
    if (*row && *row % 1024 == 0)
      *row += rt::kGranuleBytes;
  }
}

void LayoutPlanner::packWeights(Stage &stage) {
  placeFactors(stage);

  auto addUse = [&](std::vector<rt::PackView> views, Sums sums) {
    rt::WeightUse use;
    use.kind = rt::WeightUse::Panels;
    use.views = std::move(views);
    use.width = stage.shape.back().constant();
    use.lanes = stage.lanes;
    use.vectors = stage.tileVectors;
    if (sums == Sums::Pairs || sums == Sums::Tiles)
      use.form = rt::WeightForm::Bf16;
    use.depthMultiple = depthMultiple(sums);
    layout_->code.weights.push_back(std::move(use));
    return static_cast<int>(layout_->code.weights.size()) - 1;
  };
  for (ProductGroup &group : stage.groups) {
    if (group.weightUse < 0)
      continue;
    std::vector<rt::PackView> views;
    for (unsigned i : group.accumulators) {
      const Accumulator &a = stage.accumulators[i];
      rt::PackView view;
      for (const WeightRun &run : a.product->weights)
        view.segments.push_back({run.weight, run.begin, run.end, run.transposed});
      view.column = a.product->weights.front().column + a.column;
      views.push_back(std::move(view));
    }
    group.weightUse = addUse(std::move(views), stage.sums);
    if (stage.takesTurns)
      layout_->code.weights.back().kind = rt::WeightUse::PanelsByView;
    if (stage.sums == Sums::Foreign) {
      rt::WeightUse &use = layout_->code.weights.back();
      use.kind = rt::WeightUse::Foreign;
      use.library = stage.library;
      use.lanes = use.width;
      use.aStride = stage.factorRow / bytesOf(ops::DType::F32);
      use.cStride = stage.sumsRow / bytesOf(ops::DType::F32);
    }
  }
  std::vector<rt::PackView> starts;
  for (const Accumulator &a : stage.accumulators) {
    bool isWeight = a.product->start && !a.startRow();
    stage.startViews.push_back(isWeight ? static_cast<int>(starts.size()) : -1);
    if (!isWeight)
      continue;
    starts.push_back({{{plan_.weightNumber(a.product->start), 0, 1, false}}, a.column});
  }
  if (!starts.empty())
    stage.startUse = addUse(std::move(starts), Sums::Chain);
}

/// Weights that are read as they lie in the row space.
void LayoutPlanner::takeRawWeights() {
  ir::BlockOp block = plan_.block;
  layout_->rawUses.assign(block.getBody().getNumArguments() - block.getNumArgs(), Layout::kNoUse);
  for (const Buffer &buffer : plan_.buffers)
    if (buffer.kind == Buffer::Weight && buffer.readAsIs) {
      rt::WeightUse use;
      use.kind = rt::WeightUse::Raw;
      use.param = buffer.index;
      layout_->rawUses[buffer.index] = static_cast<int>(layout_->code.weights.size());
      layout_->code.weights.push_back(use);
    }
}

} // namespace sheaf::kernels::cpu
