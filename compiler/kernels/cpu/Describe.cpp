//===- Describe.cpp - What a plan does, in numbers and in words -----------===//

#include "compiler/kernels/cpu/LayoutPlanner.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace sheaf::kernels::cpu {
namespace {

std::string describeShape(const std::vector<Dim> &dims) {
  std::string out;
  for (const Dim &d : dims)
    out += (out.empty() ? "" : ", ") + (d.isConstant() ? d.str() : "?");
  return "[" + out + "]";
}

} // namespace

/// Loads for each multiply-add of a tile's vectors: a step loads a vector of weights for each of
/// its columns, and a number of each of its rows.
static double loadsOf(const Stage &stage, int64_t columns) {
  if (stage.sums == Sums::Tiles || stage.sums == Sums::Foreign)
    return 0;
  int64_t vectors = std::min(stage.tileVectors, (columns + stage.lanes - 1) / stage.lanes) *
                    stage.accumulatorsAtOnce();
  return static_cast<double>(stage.tileRows + vectors) /
         static_cast<double>(stage.tileRows * vectors);
}

/// Of stages of products; nothing without them.
static std::optional<ProductForm> productForm(const std::vector<Stage> &stages) {
  // Only how parts of a kernel compare depends on what an unknown extent is taken for.
  constexpr int64_t unknown = 16;
  auto extentOf = [](const Dim &extent) {
    return extent.isConstant() ? extent.constant() : unknown;
  };
  double elements = 0, lanes = 0, multiplyAdds = 0, unpacked = 0, loads = 0, rows = 0;
  bool sumsKnown = true;
  for (const Stage &stage : stages) {
    if (stage.kind != Stage::Products)
      continue;
    double each = 1;
    for (const Dim &extent : stage.shape)
      each *= static_cast<double>(extentOf(extent));
    // An unknown row may be as long as vectors are full.
    int64_t columns = stage.shape.back().isConstant() ? stage.shape.back().constant()
                                                      : stage.lanes * stage.tileVectors;
    double filled = static_cast<double>(columns) /
                    static_cast<double>((columns + stage.lanes - 1) / stage.lanes * stage.lanes);
    for (const ProductGroup &group : stage.groups) {
      double made = each * static_cast<double>(group.accumulators.size()), sums = 0;
      for (const ProductSegment &segment : group.lead->segments) {
        sumsKnown &= segment.extent.isConstant();
        sums += made * static_cast<double>(extentOf(segment.extent));
      }
      elements += made;
      multiplyAdds += sums;
      lanes += sums / filled;
      loads += sums * loadsOf(stage, columns);
      unpacked += group.weightUse < 0 ? sums : 0;
      rows += stage.rowsAreRecords ? sums * static_cast<double>(stage.tileRows) : 0;
    }
  }
  if (multiplyAdds == 0)
    return std::nullopt;
  ProductForm form;
  if (sumsKnown)
    form.sumLength = multiplyAdds / elements;
  form.lanes = multiplyAdds / lanes;
  form.loads = loads / multiplyAdds;
  form.unpacked = unpacked / multiplyAdds;
  form.tileRows = rows / multiplyAdds;
  return form;
}

void LayoutPlanner::describe(Kernel &kernel) const {
  kernel.productForm = productForm(layout_->stages);
  if (kernel.alongRowsWork > 0) {
    if (!kernel.productForm)
      kernel.productForm.emplace();
    kernel.productForm->alongRows = kernel.alongRowsWork / kernel.productWork;
  }
  auto tell = [&](const std::string &text) {
    kernel.tiling += (kernel.tiling.empty() ? "" : ", ") + text;
  };
  for (const Stage &stage : layout_->stages)
    if (stage.kind == Stage::Products && stage.library)
      tell(stage.library->name);
    else if (stage.kind == Stage::Products)
      tell(std::to_string(stage.tileRows) + " x " +
           std::to_string(stage.tileVectors * stage.accumulatorsAtOnce()));
  for (const Stage &stage : layout_->stages)
    if (stage.rowsOfAllRecords)
      tell(std::to_string(stage.passRows) + " rows");
  if (layout_->chunkRecords != INT64_MAX)
    tell(std::to_string(layout_->chunkRecords) + " records");
  for (auto [number, stage] : llvm::enumerate(layout_->stages)) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "stage " << number << ", level " << stage.level << ": ";
    switch (stage.kind) {
    case Stage::Loop:
      os << "elementwise over " << describeShape(stage.shape);
      break;
    case Stage::Reduce:
      os << "row reduction into " << describeShape(stage.shape);
      break;
    case Stage::Products:
      os << (stage.rowsAreRecords || stage.rowsOfAllRecords
                 ? "products over the rows of all records, "
                 : "products inside each record, ")
         << stage.accumulators.size() << " accumulator(s) over " << describeShape(stage.shape);
      if (stage.library)
        os << ", by " << stage.library->name << ", rows gathered, then in vectors of "
           << stage.lanes << " lanes";
      else
        os << ", tile " << stage.tileRows << " rows x "
           << stage.accumulatorsAtOnce() * stage.tileVectors << " vectors of " << stage.lanes
           << " lanes";
      if (stage.restVectors)
        os << ", the last columns in " << stage.restVectors;
      if (stage.takesTurns)
        os << ", in turn, " << stage.tilesAtOnce << " tiles at once";
      if (stage.fewRows)
        os << ", up to " << stage.fewRows << " rows in two panels at once, one in four";
      for (const ProductGroup &group : stage.groups) {
        os << "; k =";
        for (const ProductSegment &segment : group.lead->segments)
          os << ' ' << (segment.extent.isConstant() ? segment.extent.str() : "?");
        os << (group.weightUse >= 0 ? ", weights packed"
               : stage.blocking     ? ", right operand packed where it is large"
                                    : ", right operand not packed");
        if (stage.sums == Sums::Pairs || stage.sums == Sums::Tiles)
          os << ", factors in bf16" << (stage.sums == Sums::Tiles ? " by tiles" : " by pairs");
        if (group.accumulators.size() > 1)
          os << ", " << group.accumulators.size() << " merged";
      }
      if (const auto &blocking = stage.blocking)
        os << "; with " << layout_->packedFrom / 1024 << " KB of it"
           << (blocking->packsLeft() ? ", or of the left, which is then packed as well," : "")
           << " and " << Blocking::kLeastTiles * stage.tileRows << " rows or more, by blocks of "
           << blocking->columns << " columns, " << blocking->rows << " rows and " << blocking->steps
           << " k";
      if (stage.serpentine)
        os << "; panels there and back";
      break;
    }
    os << "; writes " << stage.roots.size() << " tensor(s)";
    if (const std::string &why = plan_.stages[number].whole; !why.empty())
      os << "; what it leaves is kept whole: " << why;
    if (stage.laysOutFor >= 0)
      os << "; not for one row of stage " << stage.laysOutFor << ", which reads it as it lies";
    if (stage.seenAxis >= 0)
      os << "; as far as rows of stage " << plan_.rowBlocks[static_cast<size_t>(stage.seenBy)].begin
         << " see columns";
    if (stage.rowBlock >= 0) {
      const RowBlock &block = plan_.rowBlocks[static_cast<size_t>(stage.rowBlock)];
      os << "; " << layout_->blockRows << " rows at a time, with stages " << block.begin << " to "
         << block.end - 1;
      if (stage.sumsRows)
        os << ", adding what these rows give";
      if (!block.seesLess() && number == block.begin)
        os << ", all columns: none is known to add nothing to its rows";
      else if (stage.seen != Seen::Nothing)
        os << ", as far as rows see columns" << (block.masks.empty() ? "" : ", in ranges");
    }
    kernel.remarks.push_back(text);
  }
}

void LayoutPlanner::describeDispatch(Kernel &kernel) const {
  auto shape = [&](Value value) { return describeShape(plan_.shapes->of(value)); };
  for (Operation &op : kernel.block.getBody().front().without_terminator()) {
    auto apply = dyn_cast<ir::ApplyOp>(op);
    if (!apply || roleOf(apply->getResult(0)) != Role::Product)
      continue;
    std::string what = apply.getOp().str() + " of " + shape(apply.getOperand(0)) + " and " +
                       shape(apply.getOperand(1));
    kernel.dispatch.push_back(
        {op.getLoc(), std::move(what), verdicts_.lookup(apply->getResult(0))});
  }
}

} // namespace sheaf::kernels::cpu
