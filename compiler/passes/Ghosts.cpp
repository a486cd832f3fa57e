//===- Ghosts.cpp - Branches of unequal length keep in step ---------------===//
//
// Inside of a recursion, an instance that takes a branch with more records than another falls
// behind by as many depths, and what follows the branch runs for both apart, from then on. A ghost
// makes up for the difference: the tensors that leave a shorter branch count as ready as late as
// those of the longest one. Nothing runs for it.
//
// It pays when something follows that the branches have not: that part of the recursion keeps in
// step. Where only the branches record, as in a step that is skipped for some words, the instances
// may as well pass each other: their records meet at whatever depth they come to. So the weights
// that a launch of what follows reads stand against those of what stands in branches and after
// them, and against the room that depths take where nobody records.
//
// Outside of recursions there is nothing to do: phases wait for the longest branch there.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/CallGraph.h"
#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/RecordFlow.h"
#include "compiler/passes/Pass.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/SetVector.h"

#include <optional>

using namespace mlir;

namespace sheaf::passes {
namespace {

using Kernel = std::pair<Attribute, Attribute>; ///< block and weights
using Kernels = llvm::SetVector<Kernel>;

/// Of a launch beside its weights: about what the start of a kernel costs in bytes read.
constexpr int64_t kLaunchBytes = 4096;
/// Of a depth at which a kernel might record (rt::BucketTable).
constexpr int64_t kBucketBytes = 32;

constexpr unsigned kUnbounded = ~0u;

/// How many records, at most, stand one after the other between what comes into an operation and
/// the values inside of it. Records that are made without what comes in have run before.
class Levels {
public:
  Levels(const SymbolTable &symbols, const llvm::DenseSet<Operation *> &recording,
         const llvm::DenseSet<Operation *> &before)
      : symbols_(symbols), recording_(recording), before_(before) {}

  unsigned of(Value value) const {
    auto it = levels_.find(value);
    return it == levels_.end() ? 0 : it->second;
  }

  void enter(Block &block) {
    for (Operation &op : block.without_terminator())
      visit(op);
  }

private:
  static unsigned more(unsigned level, unsigned by) {
    return level == kUnbounded ? kUnbounded : level + by;
  }
  unsigned most(ValueRange values) const {
    unsigned level = 0;
    for (Value value : values)
      level = std::max(level, of(value));
    return level;
  }
  void setAll(ValueRange values, unsigned level) {
    for (Value value : values)
      levels_[value] = level;
  }

  bool records(Operation &root) const {
    return root
        .walk([&](Operation *op) {
          auto call = dyn_cast<func::CallOp>(op);
          bool found = isa<ir::RecordOp>(op) || copiesRows(op) ||
                       (call && recording_.contains(symbols_.lookup(call.getCallee())));
          return found ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  void visit(Operation &op) {
    unsigned level = most(op.getOperands());
    if (isa<ir::RecordOp>(op) || copiesRows(&op)) {
      if (!before_.contains(&op))
        level = more(level, 1 + op.hasAttr("sheaf.arrange"));
    } else if (auto ghost = dyn_cast<ir::GhostOp>(op)) {
      level = more(level, ghost.getDepths());
    } else if (isa<scf::IfOp, ir::MatchOp, ir::MapOp>(op)) {
      for (Region &region : op.getRegions()) {
        if (region.empty())
          continue;
        setAll(region.getArguments(), most(op.getOperands()));
        enter(region.front());
        level = std::max(level, most(region.front().getTerminator()->getOperands()));
      }
    } else if (op.getNumRegions() > 0 || isa<func::CallOp>(op)) {
      if (records(op))
        level = kUnbounded;
      // What a body takes from outside of it comes in, too.
      op.walk([&](Operation *inner) { level = std::max(level, most(inner->getOperands())); });
    }
    setAll(op.getResults(), level);
  }

  const SymbolTable &symbols_;
  const llvm::DenseSet<Operation *> &recording_;
  const llvm::DenseSet<Operation *> &before_;
  llvm::DenseMap<Value, unsigned> levels_;
};

class BranchAligner {
public:
  BranchAligner(ModuleOp module, PassContext &context)
      : module_(module), symbols_(module), context_(context), flow_(module),
        needs_(flow_.closure()) {
    for (const RecordSite &site : flow_.sites())
      recording_.insert(site.op->getParentOfType<func::FuncOp>());
    CallGraph(module).addCallers(recording_);
  }

  void run() {
    for (auto func : module_.getOps<func::FuncOp>())
      func.walk([&](Operation *op) { // inner ones first
        if (isa<scf::IfOp, ir::MatchOp>(op) && op->getNumRegions() > 1)
          visit(op);
      });
  }

private:
  Kernel kernel(unsigned site) const {
    return {flow_.sites()[site].block, flow_.sites()[site].weights};
  }

  /// The recursion that branches are part of.
  struct Recursion {
    Kernels inside, outside; ///< what is recorded in the branches, and what elsewhere
    /// What the branches record that needs nothing of the recursion.
    llvm::DenseSet<Operation *> before;
  };

  /// None when the branches are part of no recursion.
  std::optional<Recursion> recursionOf(Operation *op) const {
    Recursion recursion;
    unsigned count = flow_.sites().size();
    llvm::BitVector part(count), within(count);
    for (unsigned i = 0; i < count; ++i)
      if (op->isAncestor(flow_.sites()[i].op)) {
        within.set(i);
        recursion.inside.insert(kernel(i));
        if (needs_[i][i])
          for (unsigned j : needs_[i].set_bits())
            if (needs_[j][i])
              part.set(j);
      }
    if (part.none())
      return std::nullopt;
    for (unsigned i : part.set_bits())
      if (!within[i])
        recursion.outside.insert(kernel(i));
    for (unsigned i : within.set_bits())
      recursion.before.insert(flow_.sites()[i].op);
    for (unsigned i : within.set_bits()) // an operation may have several
      if (part[i] || needs_[i].anyCommon(part))
        recursion.before.erase(flow_.sites()[i].op);
    return recursion;
  }

  int64_t cost(const Kernel &kernel) const {
    int64_t bytes = kLaunchBytes;
    for (auto weight : cast<ArrayAttr>(kernel.second).getAsRange<FlatSymbolRefAttr>()) {
      auto type = cast<RankedTensorType>(symbols_.lookup<ir::ParamOp>(weight.getValue()).getType());
      bytes += type.getNumElements() * 4;
    }
    return bytes;
  }

  /// The call that gives all that a branch yields, if that is what it ends with.
  static func::CallOp lastCall(Block &arm) {
    Operation *terminator = arm.getTerminator();
    auto call = terminator->getNumOperands() == 0
                    ? func::CallOp()
                    : terminator->getOperand(0).getDefiningOp<func::CallOp>();
    return call && call->getBlock() == &arm && call.getResults() == terminator->getOperands()
               ? call
               : func::CallOp();
  }

  void visit(Operation *op) {
    std::optional<Recursion> recursion = recursionOf(op);
    if (!recursion)
      return;
    Levels levels(symbols_, recording_, recursion->before);
    SmallVector<Operation *> ends;
    llvm::MapVector<StringRef, SmallVector<Operation *>> calls;
    for (Region &region : op->getRegions()) {
      if (region.empty())
        return;
      levels.enter(region.front());
      ends.push_back(region.front().getTerminator());
      // Branches that go on in one function meet at its begin.
      if (func::CallOp call = lastCall(region.front()))
        calls[call.getCallee()].push_back(call);
    }
    unsigned raised = align(ends, levels, op, *recursion);
    for (auto &[callee, users] : calls)
      raised = std::max(raised, align(users, levels, op, *recursion));
    if (raised > 0)
      context_.remark(op->getLoc(), "what leaves the shorter branch counts as ready " +
                                        Twine(raised) + (raised == 1 ? " depth" : " depths") +
                                        " later, so that " + names(recursion->outside) +
                                        " keeps in step");
  }

  /// Raises what these operations take where it is ready earlier than in the others. Returns by how
  /// much at most.
  unsigned align(ArrayRef<Operation *> users, const Levels &levels, Operation *op,
                 const Recursion &recursion) {
    unsigned raised = 0;
    if (users.size() < 2)
      return raised;
    for (unsigned i = 0; i < users.front()->getNumOperands(); ++i) {
      if (!isa<RankedTensorType>(users.front()->getOperand(i).getType()))
        continue;
      unsigned least = kUnbounded, most = 0;
      for (Operation *user : users) {
        least = std::min(least, levels.of(user->getOperand(i)));
        most = std::max(most, levels.of(user->getOperand(i)));
      }
      if (most == kUnbounded || least == most)
        continue;
      if (!pays(most - least, recursion)) {
        context_.remark(op->getLoc(), "branches of " + Twine(least) + " and " + Twine(most) +
                                          " records are not brought into step: what follows them "
                                          "in the recursion gains less than it costs");
        continue;
      }
      for (Operation *user : users)
        if (unsigned missing = most - levels.of(user->getOperand(i))) {
          OpBuilder builder(user);
          user->setOperand(i, ir::GhostOp::create(builder, user->getLoc(), user->getOperand(i),
                                                  builder.getI64IntegerAttr(missing)));
        }
      raised = std::max(raised, most - least);
    }
    return raised;
  }

  bool pays(unsigned depths, const Recursion &recursion) const {
    int64_t gain = 0, loss = 0;
    for (const Kernel &kernel : recursion.outside)
      (recursion.inside.contains(kernel) ? loss : gain) += cost(kernel);
    loss += int64_t(depths) * kBucketBytes *
            int64_t(recursion.inside.size() + recursion.outside.size());
    return gain > loss;
  }

  static std::string names(const Kernels &kernels) {
    llvm::SetVector<StringRef> blocks;
    for (const Kernel &kernel : kernels)
      blocks.insert(cast<FlatSymbolRefAttr>(kernel.first).getValue());
    return llvm::join(blocks, ", ");
  }

  ModuleOp module_;
  SymbolTable symbols_;
  PassContext &context_;
  RecordFlow flow_;
  std::vector<llvm::BitVector> needs_;
  llvm::DenseSet<Operation *> recording_;
};

LogicalResult alignBranches(ModuleOp module, PassContext &context) {
  BranchAligner(module, context).run();
  return success();
}

} // namespace

PassRecord ghostsPass() {
  return {.name = "ghosts",
          .description = "What leaves the shorter branch of an if or match inside of a recursion "
                         "counts as ready as late as what leaves the longest, where what follows "
                         "gains from it.",
          .run = alignBranches,
          .after = Level::Blocks};
}

} // namespace sheaf::passes
