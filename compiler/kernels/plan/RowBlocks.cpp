//===- RowBlocks.cpp - Stages that go on together over blocks of rows -----===//
//
// What products of the record's own matrices leave, such as the scores of queries with keys, may
// be much larger than its operands and what is made of it. Where all that reads it does so row by
// row, or sums up its rows in their order, these need never be there together. So it is with the
// left operand of a product that leaves out zeros, if it follows from its rows which columns hold
// others.
//
//===----------------------------------------------------------------------===//

#include "compiler/ir/Place.h"
#include "compiler/kernels/plan/Planner.h"
#include "compiler/kernels/plan/SeenColumns.h"

using namespace mlir;

namespace sheaf::kernels {
namespace {

/// Whether a view finds place i along each of the first axes where the stage is at place i.
bool isAligned(const View &view, size_t axes) {
  if (view.size() < axes)
    return false;
  for (size_t i = 0; i < axes; ++i) {
    const AxisMap &map = view[i];
    if (map.axis != static_cast<int>(i) || map.offset != Dim(0) || !map.host.empty() || map.index)
      return false;
  }
  return true;
}

/// Whether a view finds, as the axis of the rows, the axis that a stage of this rank contracts, and
/// along those before them place i where the stage is at place i.
bool isContracted(const View &view, size_t axes, size_t rank) {
  if (view.size() < axes || !isAligned(view, axes - 1))
    return false;
  const AxisMap &map = view[axes - 1];
  return map.axis == static_cast<int>(rank) && map.offset == Dim(0) && map.host.empty() &&
         !map.index;
}

bool beginsWith(ArrayRef<Dim> shape, ArrayRef<Dim> axes) {
  return shape.size() >= axes.size() && shape.take_front(axes.size()) == axes;
}

} // namespace

/// Finds blocks of rows, and puts the stages of each one after the other.
class RowBlocks {
public:
  RowBlocks(Plan &plan, const PlanOptions &options)
      : plan_(plan), options_(options), blockOf_(plan.stages.size(), -1) {
    for (auto [number, stage] : llvm::enumerate(plan.stages)) {
      for (const Root &root : stage.roots)
        writers_[root.buffer].insert(static_cast<unsigned>(number));
      auto &reads = accesses_.emplace_back();
      for (const Access &read : stage.reads)
        readers_[reads.emplace_back(read.ofWhole()).buffer].insert(static_cast<unsigned>(number));
    }
  }

  void run() {
    // What a mask hides from some products, others that meet them may read.
    if (options_.skipUnseen)
      tryFromEach([](const Stage &stage) { return stage.masks; }, Worth::WithBounds);
    tryFromEach([](const Stage &stage) { return stage.kind == Stage::Products; }, Worth::Always);
    if (options_.skipUnseen) {
      tryFromEach([](const Stage &stage) { return stage.kind == Stage::Loop; }, Worth::WithBounds);
      for (Stage &stage : llvm::reverse(plan_.stages))
        findSeenOf(stage);
    }
    putTogether();
  }

private:
  struct Candidate {
    llvm::SmallSetVector<unsigned, 8> stages;
    llvm::SmallSetVector<const Buffer *, 8> local;
  };

  /// When it is worth to have a block.
  enum class Worth {
    Always,
    WithBounds,
    WithFirst ///< with the first column of a row, or a mask: the last one hides little of few rows
  };
  /// How a stage goes with blocks of rows.
  enum class Way {
    Rows, ///< each of its rows can be computed apart: of local tensors it reads the same row
    Sums, ///< its products contract the rows: sums go on from block to block
    None
  };
  Way wayOf(unsigned number, ArrayRef<Dim> axes) const {
    const Stage &stage = plan_.stages[number];
    if (blockOf_[number] >= 0)
      return Way::None;
    if (canSumRows(stage, axes))
      return Way::Sums;
    return canGoByRows(stage, axes) ? Way::Rows : Way::None;
  }

  /// Whether a stage going this way finds what it reads in the rows of a block.
  static bool finds(Way way, const Stage &stage, const std::optional<View> &view, size_t axes) {
    if (!view)
      return false;
    return way == Way::Sums ? isContracted(*view, axes, stage.shape.size())
                            : way == Way::Rows && isAligned(*view, axes);
  }

  /// Whether a stage is nothing but products that contract the rows.
  static bool canSumRows(const Stage &stage, ArrayRef<Dim> axes) {
    ArrayRef<Dim> outer = axes.drop_back();
    if (stage.kind != Stage::Products || stage.rowsAreRecords ||
        stage.shape.size() <= outer.size() || !beginsWith(stage.shape, outer))
      return false;
    auto contracts = [&](const Accumulator &accumulator) {
      const Product &product = *accumulator.product;
      return !product.ofWeights && !product.start && accumulator.column == 0 &&
             product.segments.size() == 1 && product.segments.front().extent == axes.back() &&
             isContracted(product.segments.front().lhsView, axes.size(), stage.shape.size());
    };
    auto storesSums = [&](const Root &root) {
      return root.buffer->dtype == ops::DType::F32 && !root.view.empty() &&
             root.view.back().axis == static_cast<int>(stage.shape.size()) - 1 &&
             llvm::any_of(stage.accumulators,
                          [&](const Accumulator &a) { return a.product->value == root.value; });
    };
    return llvm::all_of(stage.accumulators, contracts) && llvm::all_of(stage.roots, storesSums);
  }

  bool canGoByRows(const Stage &stage, ArrayRef<Dim> axes) const {
    if (stage.kind == Stage::Reduce) {
      Value value = stage.roots.front().value;
      auto apply = value.getDefiningOp<ir::ApplyOp>();
      const std::vector<Dim> &space = plan_.shapes->of(apply.getOperand(0));
      if (roleOf(value) == Role::Dot)
        return false; // its vector has no rows
      switch (reductionOf(value)) {
      case ops::Reduction::Top:
      case ops::Reduction::Sort:
      case ops::Reduction::Scan:
      case ops::Reduction::AddRows:
        return false;
      default:
        break;
      }
      return axisOf(apply, "axis", -1, space.size()) + 1 == space.size() &&
             space.size() > axes.size() && beginsWith(space, axes) && beginsWith(stage.shape, axes);
    }
    if (stage.kind == Stage::Products &&
        (stage.rowsAreRecords ||
         llvm::any_of(stage.groups, [](const ProductGroup &g) { return g.lead->ofWeights; })))
      return false;
    return stage.shape.size() > axes.size() && beginsWith(stage.shape, axes);
  }

  /// What a tensor cannot be made and used by rows for: itself, or a stage.
  struct Obstacle {
    enum Kind { IsResult, IsRegrouped, IsThere, IsTaken, IsWritten, IsRead } kind;
    unsigned stage = 0; ///< that writes or reads it otherwise
  };

  /// Whether nothing but stages of rows writes a tensor, each its own rows, and what reads it reads
  /// the same or sums up the rows.
  bool isLocal(const Buffer &buffer, ArrayRef<Dim> axes) const { return !obstacleOf(buffer, axes); }
  std::optional<Obstacle> obstacleOf(const Buffer &buffer, ArrayRef<Dim> axes) const {
    if (!buffer.isTemporary())
      return Obstacle{buffer.kind == Buffer::Result ? Obstacle::IsResult : Obstacle::IsThere};
    if (buffer.dense)
      return Obstacle{Obstacle::IsRegrouped};
    if (buffer.rowBlock >= 0 || llvm::any_of(plan_.rowBlocks, [&](const RowBlock &block) {
          return llvm::is_contained(block.limitsRead, &buffer);
        }))
      return Obstacle{Obstacle::IsTaken};
    auto writers = writers_.find(&buffer), readers = readers_.find(&buffer);
    if (!beginsWith(buffer.shape, axes) || writers == writers_.end())
      return Obstacle{Obstacle::IsThere};
    for (unsigned number : writers->second) {
      if (wayOf(number, axes) != Way::Rows)
        return Obstacle{Obstacle::IsWritten, number};
      for (const Root &root : plan_.stages[number].roots)
        if (root.buffer == &buffer && !isAligned(root.view, axes.size()))
          return Obstacle{Obstacle::IsWritten, number};
    }
    if (readers == readers_.end())
      return std::nullopt;
    for (unsigned number : readers->second) {
      Way way = wayOf(number, axes);
      for (const Access &access : accesses_[number])
        if (access.buffer == &buffer && !finds(way, plan_.stages[number], access.view, axes.size()))
          return Obstacle{Obstacle::IsRead, number};
    }
    return std::nullopt;
  }

  /// Why what a stage leaves is kept whole, for reports.
  std::string describe(const Obstacle &obstacle) const {
    auto place = [&] {
      auto *op = plan_.stages[obstacle.stage].roots.front().value.getDefiningOp();
      auto apply = dyn_cast_or_null<ir::ApplyOp>(op);
      return apply ? apply.getOp().str() + " (" + ir::placeOf(op->getLoc()) + ")"
                   : std::string("a copy");
    };
    switch (obstacle.kind) {
    case Obstacle::IsResult:
      return "it is a result of the block";
    case Obstacle::IsRegrouped:
      return "a reshape takes its elements across rows";
    case Obstacle::IsThere:
      return "it does not begin with these rows";
    case Obstacle::IsTaken:
      return "other rows than these need it";
    case Obstacle::IsWritten:
      return place() + " does not make it row by row";
    case Obstacle::IsRead:
      return place() + " does not read it row by row";
    }
    return {};
  }

  /// Whether products that leave out zeros have this on their left.
  bool isLeftOfSeen(const Buffer *buffer) const {
    auto readers = readers_.find(buffer);
    return readers != readers_.end() && llvm::any_of(readers->second, [&](unsigned number) {
             return llvm::any_of(plan_.stages[number].accumulators, [&](const Accumulator &each) {
               return each.product->leavesOutZeros &&
                      plan_.bufferOf.lookup(each.product->segments.front().lhs) == buffer;
             });
           });
  }

  /// The axis of a stage's space that runs along the columns of a row block, or -1.
  int columnAxis(const Stage &stage) const {
    switch (stage.seen) {
    case Seen::Nothing:
      return stage.seenAxis;
    case Seen::Columns: {
      size_t rank = stage.shape.size();
      if (stage.kind == Stage::Reduce)
        rank = plan_.shapes->of(stage.roots.front().value.getDefiningOp()->getOperand(0)).size();
      return static_cast<int>(rank) - 1;
    }
    case Seen::Steps:
      return static_cast<int>(stage.shape.size());
    case Seen::Rows:
      return stage.rowAxis;
    }
    return -1;
  }

  /// Whether nothing but what ends with the columns that rows of one block see reads what a stage
  /// outside of it writes, such as keys that are laid out: then it ends there, too.
  void findSeenOf(Stage &stage) {
    if (stage.kind != Stage::Loop ||
        blockOf_[static_cast<size_t>(&stage - plan_.stages.data())] >= 0)
      return;
    int axis = -1, by = -1;
    for (const Root &root : stage.roots) {
      const Buffer *buffer = root.buffer;
      auto readers = readers_.find(buffer);
      if (!buffer->isTemporary() || buffer->rowBlock >= 0 || writers_[buffer].size() != 1 ||
          readers == readers_.end())
        return;
      for (unsigned number : readers->second) {
        const Stage &reader = plan_.stages[number];
        int block = blockOf_[number] >= 0 ? blockOf_[number] : reader.seenBy;
        int column = columnAxis(reader);
        if (block < 0 || column < 0 || (by >= 0 && by != block))
          return;
        by = block;
        for (const Access &access : accesses_[number]) {
          if (access.buffer != buffer)
            continue;
          std::optional<int> own = access.view ? axisAlong(*access.view, column) : std::nullopt;
          if (!own || (axis >= 0 && axis != *own))
            return;
          axis = *own;
        }
      }
      // It is written at its own places.
      if (root.view.size() != stage.shape.size() || !isAligned(root.view, root.view.size()))
        return;
    }
    // Bounds follow from what is there before any stage runs.
    if (by < 0 || axis < 0 ||
        llvm::any_of(
            plan_.rowBlocks[static_cast<size_t>(by)].limitsRead,
            [&](const Buffer *buffer) { return !writers_.lookup(buffer).empty(); }))
      return;
    stage.seenAxis = axis;
    stage.seenBy = by;
  }

  /// The one axis of a tensor along which a view goes with an axis of a stage, place by place.
  static std::optional<int> axisAlong(const View &view, int axis) {
    std::optional<int> found;
    for (auto [i, map] : llvm::enumerate(view)) {
      if (map.axis != axis)
        continue;
      if (found || map.offset != Dim(0) || !map.host.empty() || map.index)
        return std::nullopt;
      found = static_cast<int>(i);
    }
    return found;
  }

  void tryFromEach(llvm::function_ref<bool(const Stage &)> isSeed, Worth worth) {
    for (unsigned stage = 0; stage < plan_.stages.size(); ++stage)
      if (blockOf_[stage] < 0 && isSeed(plan_.stages[stage]))
        tryFrom(stage, worth);
  }

  /// Tries the rows of what a stage leaves.
  void tryFrom(unsigned seed, Worth worth) {
    const Stage &stage = plan_.stages[seed];
    if (stage.shape.size() < 2)
      return;
    if (stage.kind == Stage::Loop &&
        llvm::none_of(stage.roots, [&](const Root &root) { return isLeftOfSeen(root.buffer); }))
      return;
    // As many rows as there are at a time need no block, unless they see few columns.
    std::optional<int64_t> rows = knownElements(ArrayRef(stage.shape).drop_back());
    if (rows && *rows <= options_.blockRows)
      worth = Worth::WithFirst;
    std::vector<Dim> axes(stage.shape.begin(), stage.shape.end() - 1);
    std::optional<Obstacle> first;
    bool anyLocal = false;
    for (const Root &root : stage.roots) {
      std::optional<Obstacle> obstacle = obstacleOf(*root.buffer, axes);
      anyLocal |= !obstacle;
      first = first ? first : obstacle;
    }
    // What is made for the product may be needed whole elsewhere, before the product can begin.
    for (bool operandsToo : {true, false})
      if (anyLocal && form(collect(seed, axes, operandsToo), axes, worth))
        return;
    if (worth == Worth::Always && leavesMore(stage))
      plan_.stages[seed].whole =
          first ? describe(*first) : "other stages need all of its rows at a time";
  }

  /// Whether products of a stage leave more than they read, as scores may be.
  static bool leavesMore(const Stage &stage) {
    auto unknown = [](ArrayRef<Dim> shape) {
      return llvm::count_if(shape, [](const Dim &dim) { return !dim.isConstant(); });
    };
    return stage.kind == Stage::Products && !stage.rowsAreRecords && unknown(stage.shape) >= 2 &&
           llvm::all_of(stage.accumulators, [&](const Accumulator &each) {
             return llvm::all_of(each.product->segments, [&](const ProductSegment &segment) {
               return segment.extent.isConstant();
             });
           });
  }

  /// The stages that share local tensors with this one, directly or not; without `operandsToo`
  /// those after it, with what else writes the same.
  Candidate collect(unsigned seed, ArrayRef<Dim> axes, bool operandsToo) {
    Candidate block;
    llvm::SmallVector<unsigned> work{seed};
    while (!work.empty()) {
      unsigned number = work.pop_back_val();
      if (!block.stages.insert(number))
        continue;
      auto take = [&](const Buffer *buffer) {
        if (!isLocal(*buffer, axes) || !block.local.insert(buffer))
          return;
        work.append(writers_[buffer].begin(), writers_[buffer].end());
        work.append(readers_[buffer].begin(), readers_[buffer].end());
      };
      if (wayOf(number, axes) == Way::Rows)
        for (const Root &root : plan_.stages[number].roots)
          take(root.buffer);
      if (operandsToo)
        for (auto &[buffer, view, reshaped] : accesses_[number])
          take(buffer);
    }
    return block;
  }

  /// Whether a stage reads what another makes at other rows than its own, which may not be there.
  bool readsItsOtherRows(const Candidate &block, ArrayRef<Dim> axes) const {
    // Whether the block makes it, and whether row by row.
    auto made = [&](const Buffer *buffer) {
      bool inside = false, byRows = true;
      for (unsigned member : block.stages)
        for (const Root &root : plan_.stages[member].roots)
          if (root.buffer == buffer) {
            inside = true;
            byRows &= wayOf(member, axes) == Way::Rows && isAligned(root.view, axes.size());
          }
      return std::pair(inside, byRows);
    };
    return llvm::any_of(block.stages, [&](unsigned number) {
      return llvm::any_of(accesses_[number], [&](const Access &access) {
        if (block.local.contains(access.buffer))
          return false;
        auto [inside, byRows] = made(access.buffer);
        return inside && !(byRows && finds(wayOf(number, axes), plan_.stages[number], access.view,
                                           axes.size()));
      });
    });
  }

  /// Makes these stages a block, if there is an order in which they can go together and it is
  /// worth it.
  bool form(const Candidate &block, ArrayRef<Dim> axes, Worth worth) {
    if (readsItsOtherRows(block, axes))
      return false;
    auto number = static_cast<int>(plan_.rowBlocks.size());
    for (unsigned member : block.stages)
      plan_.stages[member].sumsRows = wayOf(member, axes) == Way::Sums;
    for (unsigned member : block.stages)
      blockOf_[member] = number;
    plan_.rowBlocks.emplace_back().axes.assign(axes.begin(), axes.end());
    if (options_.skipUnseen)
      findSeenColumns(plan_,
                      {axes, block.stages.getArrayRef(), block.local.getArrayRef(), accesses_},
                      plan_.rowBlocks.back());
    const RowBlock &made = plan_.rowBlocks.back();
    bool isWorth =
        worth == Worth::WithFirst
            ? !made.masks.empty() ||
                  llvm::any_of(made.bounds, [](const ColumnBound &b) { return !b.isLast; })
            : worth == Worth::Always || made.seesLess();
    // Something between its stages may have to run before and after.
    if (!isWorth || inOrder().empty()) {
      for (unsigned member : block.stages) {
        plan_.stages[member].sumsRows = false;
        plan_.stages[member].seen = Seen::Nothing;
        blockOf_[member] = -1;
      }
      plan_.rowBlocks.pop_back();
      return false;
    }
    for (Buffer &buffer : plan_.buffers)
      if (block.local.contains(&buffer)) {
        buffer.kind = Buffer::Temporary;
        buffer.rowBlock = number;
        buffer.blockAxes = axes.size();
      }
    return true;
  }

  /// An order of the stages in which those of a block stand together, by what reads what; empty if
  /// there is none.
  std::vector<unsigned> inOrder() {
    auto count = static_cast<unsigned>(plan_.stages.size());
    auto nodeOf = [&](unsigned stage) {
      return blockOf_[stage] < 0 ? stage : count + static_cast<unsigned>(blockOf_[stage]);
    };
    llvm::DenseMap<unsigned, llvm::SmallSetVector<unsigned, 4>> before;
    std::map<unsigned, std::vector<unsigned>> members; // of a node
    for (unsigned stage = 0; stage < count; ++stage) {
      members[nodeOf(stage)].push_back(stage);
      for (auto &[buffer, view, reshaped] : accesses_[stage])
        for (unsigned writer : writers_[buffer])
          if (nodeOf(writer) != nodeOf(stage))
            before[nodeOf(stage)].insert(nodeOf(writer));
    }
    for (auto [number, block] : llvm::enumerate(plan_.rowBlocks))
      for (const Buffer *buffer : block.limitsRead)
        for (unsigned writer : writers_[buffer])
          before[count + static_cast<unsigned>(number)].insert(nodeOf(writer));
    // The node whose first stage comes first.
    std::map<unsigned, unsigned> waiting;
    for (auto &[node, stages] : members)
      waiting[stages.front()] = node;
    llvm::DenseSet<unsigned> done;
    std::vector<unsigned> order;
    while (!waiting.empty()) {
      auto next = llvm::find_if(waiting, [&](auto &entry) {
        return llvm::all_of(before[entry.second], [&](unsigned n) { return done.contains(n); });
      });
      if (next == waiting.end())
        return {};
      done.insert(next->second);
      llvm::append_range(order, members[next->second]);
      waiting.erase(next);
    }
    return order;
  }

  void putTogether() {
    if (plan_.rowBlocks.empty())
      return;
    std::vector<Stage> stages;
    for (unsigned number : inOrder()) {
      stages.push_back(std::move(plan_.stages[number]));
      if (int block = blockOf_[number]; block >= 0) {
        RowBlock &of = plan_.rowBlocks[static_cast<size_t>(block)];
        auto place = static_cast<unsigned>(stages.size() - 1);
        of.begin = of.end ? of.begin : place;
        of.end = place + 1;
        stages.back().rowBlock = block;
      }
    }
    plan_.stages = std::move(stages);
  }

  Plan &plan_;
  std::vector<std::vector<Access>> accesses_; ///< of each stage, to whole tensors
  const PlanOptions &options_;
  std::vector<int> blockOf_;
  llvm::DenseMap<const Buffer *, llvm::SmallSetVector<unsigned, 4>> writers_, readers_;
};

void Planner::findRowBlocks() {
  if (options_.blockRows != 0)
    RowBlocks(*plan_, options_).run();
}

} // namespace sheaf::kernels
