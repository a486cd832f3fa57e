//===- Layout.cpp - The stages of a plan, laid out for a processor --------===//

#include "compiler/kernels/cpu/LayoutPlanner.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sheaf::kernels::cpu {
namespace {

/// The way in which products are computed, as PlanOptions::method.
enum Method : unsigned { Chains, PairsInPlace, PackedPairs, HardwareTiles, ByLibrary };

Sums sumsOf(unsigned method) {
  switch (method) {
  case PairsInPlace:
  case PackedPairs:
    return Sums::Pairs;
  case HardwareTiles:
    return Sums::Tiles;
  case ByLibrary:
    return Sums::Foreign;
  default:
    return Sums::Chain;
  }
}

/// Whether the last whole vector of a row would be written over something else: the next piece of a
/// concatenation, or the next row. Padding may be written, and so may a row that comes later.
bool overruns(const Stage &stage, const Root &root) {
  if (stage.shape.empty())
    return false;
  if (root.isScattered(stage)) // lane by lane
    return !stage.shape.back().isConstant() || stage.shape.back().constant() % stage.lanes != 0;
  const Dim &begin = root.view.back().offset, &extent = stage.shape.back(),
            &row = root.buffer->shape.back();
  if (root.buffer->dense && !(stage.kind == Stage::Loop && root.computed))
    return !extent.isConstant() || extent.constant() % stage.lanes != 0;
  bool isLast = begin + extent == row;
  int64_t granule = rt::kGranuleBytes / bytesOf(root.buffer->dtype);
  if (!begin.isConstant() || !extent.isConstant())
    return !isLast || !begin.isConstant() || begin.constant() % stage.lanes != 0 ||
           granule % stage.lanes != 0;
  int64_t end = begin.constant() + llvm::alignTo(extent.constant(), stage.lanes);
  return end > (isLast ? static_cast<int64_t>(llvm::alignTo(row.constant(), granule))
                       : begin.constant() + extent.constant());
}

/// Whether a pass over many rows goes along several panels of packed weights.
bool walksPanels(const Stage &stage) {
  return (stage.rowsAreRecords || stage.rowsOfAllRecords) && !stage.library &&
         stage.shape.back().isConstant() &&
         stage.shape.back().constant() > stage.lanes * stage.tileVectors &&
         llvm::any_of(stage.groups, [](const ProductGroup &g) { return g.weightUse >= 0; });
}

} // namespace

LayoutPlanner::LayoutPlanner(ir::BlockOp block, const rt::Target &target,
                             const std::set<std::string> &without, const Tuning &tuning,
                             NumericClass numericClass)
    : target_(target), tuning_(tuning), dispatch_(numericClass, without, tuning.implementation),
      serpentine_(!without.contains(kSerpentineSwitch)), flatRows_(!without.contains("flat-rows")),
      readsLying_(!without.contains("lying-operands")),
      packMatrices_(!without.contains("pack-matrices")), layout_(std::make_shared<Layout>()),
      plan_(makePlan(block, without)) {}

const Plan &LayoutPlanner::makePlan(ir::BlockOp block, const std::set<std::string> &without) {
  PlanOptions options;
  options.method = [this](const Product &product, const BlockShapes &shapes) {
    return methodOf(product, shapes);
  };
  options.fuse = !without.contains("fuse");
  options.merge = !without.contains("merge");
  options.knowWeights = !without.contains("panels");
  // Multiply-adds take them as they lie.
  options.wideFactors = addsPairsFlushing(target_);
  options.shareTemporaries = !without.contains("share-temporaries");
  options.blockRows = without.contains("row-blocks") ? 0 : kBlockRows;
  layout_->blockRows = options.blockRows;
  options.skipUnseen = !without.contains("skip-unseen");
  layout_->plan = planBlock(block, options);
  return *layout_->plan;
}

/// Asks for a product by itself who computes it.
unsigned LayoutPlanner::methodOf(const Product &product, const BlockShapes &shapes) {
  ProductQuestion question;
  question.bf16 = product.bf16;
  if (product.ofWeights) {
    int64_t k = 0, n = shapes.of(product.value).back().constant();
    for (const ProductSegment &segment : product.segments)
      k += segment.extent.constant();
    question.shape = rt::ProductShape{k, n, k, n};
  }
  ProductAnswer answer = dispatch_.ask(question);
  verdicts_[product.value] = std::move(answer.verdicts);
  if (answer.library) {
    library_ = answer.library;
    return ByLibrary;
  }
  if (!product.bf16)
    return Chains;
  return !product.ofWeights ? PairsInPlace : target_.tiles ? HardwareTiles : PackedPairs;
}

void LayoutPlanner::layOutProducts(const kernels::Stage &of, Stage &stage) {
  stage.sums = sumsOf(of.method);
  if (stage.sums == Sums::Foreign)
    stage.library = library_;
  for (const kernels::ProductGroup &group : of.groups)
    stage.groups.push_back({group, group.lead->ofWeights ? 0 : -1});
  chooseTurns(stage);
  stage.groupsInTurn = computesGroupsInTurn(stage);
  bool byFactors = stage.sums != Sums::Chain && of.method != PairsInPlace;
  stage.rowsOfAllRecords = (byFactors && !stage.rowsAreRecords) ||
                           (flatRows_ && stage.rowAxis >= 0 && stage.allPacked());
  chooseTile(stage);
  packWeights(stage);
  stage.serpentine = serpentine_ && walksPanels(stage);
  layout_->code.serpentine |= stage.serpentine;
  int64_t rows = stage.tilesAtOnce * stage.tileRows;
  if (stage.fewRows)
    rows = std::max({rows, stage.fewRows * stage.panelsAtOnce(), Stage::kPanelsOfOneRow});
  int64_t floats = llvm::divideCeil(rows, stage.tileRows) * stage.sumsOfTile();
  stage.transposedBegin = llvm::alignTo(4 * floats, rt::kGranuleBytes);
  if (stage.rowsOfAllRecords) {
    stage.passOfOneRecord = !flatRows_;
    stage.passRows = std::min(nearRows(stage), kMostPassRows);
    layout_->rowTableBytes = std::max(layout_->rowTableBytes, stage.passRows * kRowEntryBytes);
  }
}

void LayoutPlanner::layOutStages() {
  for (const kernels::Stage &of : plan_.stages) {
    Stage stage(of);
    if (areRowsOfBlock(stage) && !stage.sumsRows) {
      const Dim &rows = stage.shape[static_cast<size_t>(stage.rowAxis)];
      stage.hasAllRows = rows.isConstant() && rows.constant() <= layout_->blockRows;
    }
    if (stage.kind == Stage::Products)
      layOutProducts(of, stage);
    int64_t transposedBytes = 0;
    for (const kernels::Root &from : of.roots) {
      Root &root = stage.roots.emplace_back(Root{from});
      root.masked = overruns(stage, root);
      if (stage.kind == Stage::Products && root.isTransposed(stage)) {
        root.transposedBegin = transposedBytes;
        transposedBytes +=
            llvm::alignTo(4 * stage.passRows * stage.tileVectors * stage.lanes, rt::kGranuleBytes);
      }
    }
    stage.turnedAxis = turnedAxis(of, stage);
    layout_->accumulatorBytes =
        std::max(layout_->accumulatorBytes, stage.transposedBegin + transposedBytes);
    layout_->stages.push_back(std::move(stage));
  }
}

int LayoutPlanner::turnedAxis(const kernels::Stage &of, const Stage &stage) {
  if (stage.kind != Stage::Loop || stage.rowBlock >= 0 || stage.shape.size() < 2)
    return -1;
  int last = static_cast<int>(stage.shape.size()) - 1, turned = -1;
  for (const Access &read : of.reads) {
    if (!read.view || read.buffer->kind == Buffer::List ||
        llvm::any_of(*read.view, [](const AxisMap &map) { return map.index != nullptr; }))
      return -1;
    if (!dependsOn(*read.view, last))
      continue;
    int innermost = read.view->back().axis;
    if (innermost < 0 || innermost == last || (turned >= 0 && innermost != turned))
      return -1;
    turned = innermost;
  }
  if (turned < 0)
    return -1;
  // What does not move along the last axis must not be read row by row instead.
  bool readsAcross = llvm::any_of(of.reads, [&](const Access &read) {
    return dependsOn(*read.view, turned) && read.view->back().axis != turned;
  });
  bool writesAlong = llvm::all_of(stage.roots, [&](const Root &root) {
    return !root.isScattered(stage) && ops::isFloat(root.buffer->dtype);
  });
  if (readsAcross || !writesAlong)
    return -1;
  const Dim &width = stage.shape[static_cast<size_t>(turned)];
  return width.isConstant() && width.constant() < kLoopLanes ? -1 : turned;
}

Kernel LayoutPlanner::run() {
  layOutStages();
  findLyingOperands();
  chooseBlocks();
  takeRawWeights();
  groupStages();
  chooseChunk();
  if (layout_->stages.size() == 1 && layout_->stages[0].rowsAreRecords &&
      layout_->stages[0].sums != Sums::Foreign) {
    const Stage &stage = layout_->stages[0];
    layout_->code.panels = static_cast<uint32_t>(llvm::divideCeil(
        stage.shape.back().constant(), stage.lanes * stage.tileVectors * stage.panelsAtOnce()));
  }

  Kernel kernel;
  static_cast<RecordPlan &>(kernel) = plan_.records;
  llvm::append_range(kernel.temporaries, layout_->packing);
  kernel.block = plan_.block;
  kernel.symbol = "kernel_" + kernel.block.getSymName().str();
  kernel.tuning = tuning_;
  kernel.plan = layout_;
  describeDispatch(kernel);
  describe(kernel);
  return kernel;
}

Kernel planKernel(ir::BlockOp block, const rt::Target &target, const std::set<std::string> &without,
                  const Tuning &tuning, NumericClass numericClass) {
  return LayoutPlanner(block, target, without, tuning, numericClass).run();
}

const KernelCode &codeOf(const Kernel &kernel) { return layoutOf(kernel).code; }

} // namespace sheaf::kernels::cpu
