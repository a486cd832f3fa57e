//===- CodeMotion.cpp - Light tensor code into the blocks beside it -------===//
//
// A branch, or a loop, cuts tensor code: what stands before it, in its arms and after it becomes
// as many records, each of a kernel of its own. Elementwise code costs less than its record. And
// instances that have taken different branches stand at different kernels: the fewer there are that
// take turns, the more of them meet in one launch. So
//
// - light code after a branch is copied to the end of every arm, where it becomes part of the
//   arm's last block (BranchTails.cpp);
// - light code after a fold in a loop or recursion goes to the end of the fold's body, and what it
//   gives is carried (LoopTails.cpp);
// - light code at the beginning of an arm runs before the branch, whichever arm is taken
//   (BranchHeads.cpp).
//
// The first computes nothing in vain. The others do: how much is bounded by what would be saved,
// and by what runs anyway wherever they do. What is computed in vain never matters: nothing that
// can fail is moved, and nobody reads the result. Only gradients would: that of a result which
// nobody reads is zero, and zero times the derivative of what was not meant to run (a division by
// zero) is not. So in training only the first is done.
//
// Light code moves only where it becomes part of one group, and takes nothing but results of that
// group, constants, and what the group is made of already. So no record comes later than it did,
// records are memoised as often (memoise-records), and no kernel runs apart from its like.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/CodeMotion.h"

#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Expand.h"
#include "compiler/passes/Pass.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

#include "llvm/ADT/SetVector.h"

#include <algorithm>

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Copies of operators together may grow the program by this factor and this many.
constexpr int64_t kCopiesFactor = 2, kCopiesSlack = 256;
/// What moves once may move on, from branch to branch; so often.
constexpr unsigned kMostRounds = 4;
/// Readers of one value that are looked at.
constexpr unsigned kMostReaders = 64;
/// Operations that are looked at to tell what levels after others become: some seconds' worth in a
/// program of thousands of branches, which then keeps the rest of them.
constexpr int64_t kMostLookedAt = 1 << 21;

bool isMovable(Operation *op) {
  const ops::Op *record = operatorOf(op);
  if (!record || record->draws())
    return false;
  auto *movement = std::get_if<ops::Movement>(&record->batch);
  if (movement && !llvm::is_contained({ops::Movement::Concat, ops::Movement::Split,
                                       ops::Movement::Slice, ops::Movement::Transpose,
                                       ops::Movement::Reshape, ops::Movement::Broadcast},
                                      movement->kind))
    return false;
  if (!movement && !std::holds_alternative<ops::Elementwise>(record->batch))
    return false;
  // Ints may be divided by zero, and may be extents or where a slice begins.
  auto isPlain = [](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      return tensor.hasStaticShape() &&
             (isa<FloatType>(tensor.getElementType()) || tensor.getElementType().isInteger(1));
    return type.isF64() || type.isInteger(1);
  };
  return llvm::all_of(op->getOperandTypes(), isPlain) &&
         llvm::all_of(op->getResultTypes(), isPlain);
}

} // namespace

std::string namesOf(ArrayRef<Operation *> group) {
  std::string names;
  for (Operation *op : group)
    names += (names.empty() ? "" : ", ") + cast<ir::ApplyOp>(op).getOp().str();
  return names;
}

CodeMotion::CodeMotion(ModuleOp module, PassContext &context)
    : module_(module), context_(context), calls_(module), symbols_(module),
      training_(module->hasAttr(ops::kTrainingAttr)) {
  module.walk([&](ir::ApplyOp apply) {
    ++room_;
    if (batchRule<ops::Product>(apply))
      for (Value operand : apply.getOperands())
        if (auto ref = operand.getDefiningOp<ir::ParamRefOp>())
          products_[ref.getParamAttr()].push_back(apply);
  });
  room_ = room_ * (kCopiesFactor - 1) + kCopiesSlack;
}

//===----------------------------------------------------------------------===//
// What may move
//===----------------------------------------------------------------------===//

SmallVector<OpResult> CodeMotion::Moved::usedByOthers(ResultRange results) const {
  return llvm::filter_to_vector(results, [&](OpResult result) {
    return llvm::any_of(result.getUsers(), [&](Operation *user) { return !contains(user); });
  });
}

bool CodeMotion::mayMove(const Group &group) { return llvm::all_of(group, isMovable); }

SmallVector<Operation *> CodeMotion::makersOf(const Group &group, Block &block, Moved &moved) {
  moved.group = group;
  SmallVector<Operation *> makers;
  for (Operation *op : group)
    for (Value operand : op->getOperands()) {
      Operation *maker = operand.getDefiningOp();
      if (!maker || maker->getBlock() != &block || moved.contains(maker))
        continue;
      auto &list = isConstant(maker) ? moved.constants : makers;
      if (!llvm::is_contained(list, maker))
        list.push_back(maker);
    }
  return makers;
}

bool CodeMotion::mayBecomeResults(Moved &moved, ArrayRef<Operation *> makers, Operation *place) {
  Block *block = place->getBlock();
  for (Operation *op : moved.group)
    for (Operation *user : op->getUsers()) {
      Operation *above = block->findAncestorOpInBlock(*user);
      if (!moved.contains(user) && (!above || above == place || !place->isBeforeInBlock(above)))
        return false;
    }
  llvm::SetVector<Operation *> slice;
  for (Operation *op : makers)
    if (!op->isBeforeInBlock(place))
      slice.insert(op);
  for (size_t i = 0; i < slice.size(); ++i) {
    Operation *op = slice[i];
    if (op == place || moved.contains(op) ||
        !(isMovable(op) || isConstant(op) || isa<ir::GetOp, ir::TupleOp>(op)))
      return false;
    for (Value operand : op->getOperands())
      if (Operation *maker = operand.getDefiningOp();
          maker && maker->getBlock() == block && !maker->isBeforeInBlock(place))
        slice.insert(maker);
  }
  moved.before = slice.takeVector();
  llvm::sort(moved.before, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return true;
}

const char *CodeMotion::obstacle(ArrayRef<Operation *> ops, const IRMapping &map, Block &block,
                                 const Group &host) {
  constexpr const char *kNoPart = "it is no part of the block before it",
                       *kJoins = "it would make that one block with others that read the same";
  if (host.size() + ops.size() > kLongGroup)
    return "that block would be too long";
  Groups &groups = now_->groups;
  unsigned level = 0;
  for (Operation *op : host)
    level = std::max(level, groups.level(op->getResult(0), block));
  bool reads = false;
  llvm::SmallDenseMap<Operation *, unsigned> levels;
  for (Operation *op : ops) {
    unsigned own = 0;
    for (Value operand : op->getOperands()) {
      if (auto it = levels.find(operand.getDefiningOp()); it != levels.end()) {
        own = std::max(own, it->second);
        continue;
      }
      Value value = map.lookupOrDefault(operand);
      Operation *maker = value.getDefiningOp();
      own = std::max(own, groups.level(value, block));
      if (llvm::is_contained(host, maker)) {
        reads = true;
        continue;
      }
      if (isConstant(maker))
        continue;
      if (maker && maker->getBlock() == &block && groups.of(maker) &&
          groups.level(value, block) == level)
        return kJoins; // of another group
      if (!now_->ancestry.isAncestor(value, host))
        return "it takes more than that block is made of";
      if (!isSharedOperand(value) && isReadBesides(value, block, level, &host))
        return kJoins;
    }
    if (own != level)
      return kNoPart;
    levels[op] = own;
  }
  return reads ? nullptr : kNoPart;
}

bool CodeMotion::shiftsLevels(Block &block, ArrayRef<Operation *> quiet, unsigned gone) {
  block.walk([&](Operation *) { ++looked_; });
  return looked_ > kMostLookedAt ||
         now_->groups.countWithout(block, quiet) + gone != now_->groups.countWithout(block, {});
}

bool CodeMotion::isReadBesides(Value value, Block &block, unsigned level, const Group *host) {
  unsigned readers = 0;
  for (Operation *user : value.getUsers()) {
    if (++readers > kMostReaders)
      return true;
    if (user->getBlock() == &block && isTensorCode(user) &&
        !(host && llvm::is_contained(*host, user)) &&
        now_->groups.level(user->getResult(0), block) == level)
      return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// What it costs
//===----------------------------------------------------------------------===//

/// Equal for groups that become one block with the same weights, and seldom for others.
static std::string kernelOf(const Group &group) {
  std::string text;
  auto add = [&](const void *unique) {
    text.append(reinterpret_cast<const char *>(&unique), sizeof unique);
  };
  for (Operation *op : group) {
    add(op->getAttrDictionary().getAsOpaquePointer());
    for (Type type : op->getResultTypes())
      add(type.getAsOpaquePointer());
    for (Value operand : op->getOperands())
      if (auto ref = operand.getDefiningOp<ir::ParamRefOp>())
        add(ref.getParamAttr().getAsOpaquePointer());
  }
  return text;
}

bool CodeMotion::runsOutside(const Group &group, Operation *root) {
  if (hasEqual(group, root))
    return true;
  for (Operation *op : group)
    if (batchRule<ops::Product>(op))
      for (Value operand : op->getOperands())
        if (auto ref = operand.getDefiningOp<ir::ParamRefOp>())
          for (Operation *other : products_.lookup(ref.getParamAttr()))
            if (!llvm::is_contained(group, other) && !root->isAncestor(other))
              return true;
  return false;
}

bool CodeMotion::hasEqual(const Group &group, Operation *root) {
  if (!now_->hasKernels) {
    now_->hasKernels = true;
    forEachBlock([&](Block &block) {
      for (const Group &each : now_->groups.of(block).groups)
        if (!isTouched(each))
          now_->kernels[kernelOf(each)].push_back(&each);
      return false;
    });
  }
  auto same = now_->kernels.find(kernelOf(group));
  return same != now_->kernels.end() && llvm::any_of(same->second, [&](const Group *other) {
           return other != &group && !isTouched(*other) && !root->isAncestor(other->front()) &&
                  !copies_.contains(other->front());
         });
}

double CodeMotion::workOf(ArrayRef<Operation *> ops) {
  double work = 0;
  for (Operation *op : ops)
    work += work_.of(op);
  return work;
}

double CodeMotion::ownWork(const Group &group) { return workOf(group) - vainWork(group); }

double CodeMotion::vainWork(const Group &group) {
  double work = 0;
  for (Operation *op : group)
    work += guests_.contains(op) ? work_.of(op) : 0;
  return work;
}

bool CodeMotion::takeRoom(int64_t operators) {
  if (operators > room_)
    return false;
  room_ -= operators;
  return true;
}

bool CodeMotion::isRepeated(Block &block) const {
  Operation *op = block.getParentOp();
  for (; !isa<func::FuncOp>(op); op = op->getParentOp())
    if (isa<ir::MapOp, ir::FoldOp, ir::ScanOp, ir::FilterOp>(op))
      return true;
  return calls_.isRecursive(cast<func::FuncOp>(op));
}

//===----------------------------------------------------------------------===//
// Rounds
//===----------------------------------------------------------------------===//

void CodeMotion::report(const Moved &moved, Operation *place, const Twine &text) {
  context_.remark(moved.group.front()->getLoc(), namesOf(moved.group) + " " + text);
  touch(moved.group);
  touch(moved.before);
  touch(place);
  changed_.insert(place->getParentOfType<func::FuncOp>());
}

void CodeMotion::bury(Operation *op) {
  op->dropAllReferences();
  op->remove();
  touch(op);
  buried_.push_back(op);
}

void CodeMotion::beginRound() {
  now_.reset();
  touched_.clear();
  stays_.clear();
  for (Operation *op : buried_) {
    guests_.erase(op);
    copies_.erase(op);
    op->destroy();
  }
  buried_.clear();
}

/// Outer blocks first.
template <typename Visit> bool CodeMotion::forEachBlock(Visit &&visit) {
  bool any = false;
  for (auto func : module_.getOps<func::FuncOp>()) {
    if (func->hasAttr(ir::kFoldedAttr) || func.isExternal())
      continue;
    SmallVector<Block *> work{&func.getBody().front()};
    for (size_t i = 0; i < work.size(); ++i) {
      any |= visit(*work[i]);
      for (Operation &op : *work[i])
        for (Region &region : op.getRegions())
          for (Block &block : region)
            work.push_back(&block);
    }
  }
  return any;
}

bool CodeMotion::sinkTails() {
  return forEachBlock([&](Block &block) {
    bool any = false;
    if (llvm::any_of(block, llvm::IsaPred<scf::IfOp, ir::MatchOp>))
      for (const Group &group : now_->groups.of(block).groups)
        any |= sinkTail(group, block);
    return any;
  });
}

bool CodeMotion::sinkLoopTails() {
  return forEachBlock([&](Block &block) {
    bool any = false;
    // Outside of recursions a later phase runs it for all instances at once.
    if (llvm::any_of(block, llvm::IsaPred<ir::FoldOp>) && isRepeated(block))
      for (const Group &group : now_->groups.of(block).groups)
        any |= sinkLoopTail(group, block);
    return any;
  });
}

bool CodeMotion::hoistHeads() {
  findRecursions();
  return forEachBlock([&](Block &block) {
    bool any = false;
    for (Operation &op : llvm::make_early_inc_range(block))
      if (isa<scf::IfOp, ir::MatchOp>(op))
        any |= hoistHeads(&op);
    return any;
  });
}

LogicalResult CodeMotion::run() {
  if (!module_
           .walk([](Operation *op) {
             return isa<scf::IfOp, ir::MatchOp, ir::FoldOp>(op) ? WalkResult::interrupt()
                                                                : WalkResult::advance();
           })
           .wasInterrupted())
    return success();
  auto repeat = [&](auto &&round) {
    for (unsigned i = 0; i < kMostRounds; ++i) {
      beginRound();
      now_ = std::make_unique<Snapshot>(module_);
      if (!round())
        break;
    }
    llvm::append_range(context_.remarks, stays_);
  };
  repeat([&] {
    bool any = sinkTails();
    return (!training_ && sinkLoopTails()) || any;
  });
  if (!training_)
    repeat([&] { return hoistHeads(); });
  beginRound();
  // What several arms computed is there several times. Not before the end: products_ must last.
  for (Operation *func : changed_) {
    IRRewriter rewriter(module_.getContext());
    DominanceInfo dominance(func);
    eliminateCommonSubExpressions(rewriter, dominance, func);
  }
  return success();
}

PassRecord codeMotionPass() {
  return {.name = "code-motion",
          .description =
              "Light tensor code after a branch becomes part of the last block of each arm, "
              "after a fold part of the last block of its body, and at the beginning of an arm "
              "part of the block before the branch, where that costs less than a record.",
          .run = [](ModuleOp module, PassContext &context) {
            return CodeMotion(module, context).run();
          }};
}

} // namespace sheaf::passes
