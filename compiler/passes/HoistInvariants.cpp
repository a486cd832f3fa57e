//===- HoistInvariants.cpp - What a loop does not change runs before it ---===//
//
// map(|x| x @ w + tanh(s @ u), xs) computes tanh(s @ u) for every element, and could do so once.
// So what is made of values from outside of a loop alone moves before it, as far out as its
// operands allow. Only what cannot fail, draws nothing and has no place in the order of the
// program; where a list may be empty and there is much to compute, it runs only if the list has
// elements. A sum that stays takes up the chain of a product all the same (order-sums), or the
// product stays: no bit changes.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/OperatorWork.h"
#include "compiler/analysis/ProgramOrder.h"
#include "compiler/ops/Expand.h"
#include "compiler/passes/Pass.h"
#include "compiler/passes/Precedence.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// From here on what moves asks first whether the list has elements: a branch has a record of its
/// own, which could else be part of another.
constexpr double kMuchWork = 4 * kRecordWork;
/// What an extent that is not known, and a list, are taken for.
constexpr double kUnknownExtent = 8, kUnknownLength = 4;

bool isLoop(Operation *op) { return isa<ir::MapOp, ir::FilterOp, ir::FoldOp, ir::ScanOp>(op); }
bool isBranch(Operation *op) { return isa<scf::IfOp, ir::MatchOp>(op); }

bool hasUnknownExtents(Operation *op) {
  auto isUnknown = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && !tensor.hasStaticShape();
  };
  return llvm::any_of(op->getOperandTypes(), isUnknown) ||
         llvm::any_of(op->getResultTypes(), isUnknown);
}

/// Whether a check may have made it right: of extents, an index, or what a type says of a tensor.
bool mayNeedCheck(Operation *root) {
  return root
      ->walk([](Operation *op) {
        bool may = false;
        if (isa<ir::ApplyOp>(op))
          may = hasUnknownExtents(op) || llvm::any_of(op->getOperands(), [](Value operand) {
                  return !isa<RankedTensorType>(operand.getType()) &&
                         !isa_and_nonnull<arith::ConstantOp>(operand.getDefiningOp());
                });
        else if (auto tuple = dyn_cast<ir::TupleOp>(op))
          may = tuple->getOperandTypes() != tuple.getType().getTypes();
        return may ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Elements of a list may have unequal extents, and then cannot be stacked.
bool mayFindUnequal(Operation *op) {
  return isa<ir::ApplyOp>(op) && llvm::any_of(op->getOperandTypes(), [](Type type) {
           auto list = dyn_cast<ir::ListType>(type);
           auto tensor = list ? dyn_cast<RankedTensorType>(list.getElement()) : nullptr;
           return tensor && !tensor.hasStaticShape();
         });
}

/// Lists that have elements whatever the instance is.
bool hasElements(Value list) {
  for (;;) {
    Operation *def = list.getDefiningOp();
    if (auto made = dyn_cast_or_null<ir::ListMakeOp>(def))
      return made->getNumOperands() > 0;
    if (isa_and_nonnull<ir::ConsOp, ir::AppendOp>(def))
      return true;
    if (auto rows = dyn_cast_or_null<ir::RowsOp>(def))
      return cast<RankedTensorType>(rows.getTensor().getType()).getDimSize(0) > 0;
    if (!isa_and_nonnull<ir::MapOp, ir::ScanOp, ir::ReverseOp>(def))
      return false;
    list = def->getOperands().back();
  }
}

class HoistInvariants {
public:
  HoistInvariants(ModuleOp module, PassContext &context)
      : context_(context), precedence_(module), training_(module->hasAttr(ops::kTrainingAttr)) {}

  void run(func::FuncOp func) {
    if (!func.walk([](Operation *op) {
               return isLoop(op) ? WalkResult::interrupt() : WalkResult::advance();
             })
             .wasInterrupted())
      return;
    entry_ = &func.getBody().front();
    findChecked(func);
    findRoom(func);
    // What stays keeps others, so it begins anew until nothing more has to.
    do
      findMoves(func);
    while (keep());
    std::vector<Batch> batches = takeBatches();
    llvm::for_each(batches, [&](const Batch &batch) { move(batch); });
    dropCopied();
  }

private:
  /// What moves before one loop, in the order of the program.
  struct Batch {
    Operation *loop;
    SmallVector<Operation *> ops;     ///< in any case
    SmallVector<Operation *> guarded; ///< if the list has elements
  };

  //===--- What is the same -------------------------------------------------===//

  /// Free wherever it is taken: views, constants, host arithmetic, what is made of weights alone.
  /// It is copied to where it is wanted.
  bool isFree(Operation *op) {
    if (isTensorCode(op)) {
      return batchRule<ops::Movement>(op) || isFill(op) ||
             precedence_.rank(op) == Precedence::kShared;
    }
    return op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() && !takesList(op) &&
           isPure(op);
  }

  /// What computes, and may do so at another place.
  bool isMovable(Operation *op) {
    if (pinned_.contains(op))
      return false;
    auto staysInside = [](Operation *inner) {
      auto *record = operatorOf(inner);
      return (record && record->draws()) || mayFindUnequal(inner);
    };
    if (isa<ir::ApplyOp>(op))
      return !staysInside(op);
    if (!(isLoop(op) || isBranch(op)) || !isPure(op))
      return false;
    bool computes = false;
    return !op->walk([&](Operation *inner) {
                computes |= isTensorCode(inner) && !isFree(inner);
                return staysInside(inner) ? WalkResult::interrupt() : WalkResult::advance();
              }).wasInterrupted() &&
           computes;
  }

  unsigned depth(Block *block) {
    auto known = depths_.find(block);
    if (known != depths_.end())
      return known->second;
    unsigned depth = 0;
    for (Operation *op = block->getParentOp(); op && !isa<func::FuncOp>(op); op = op->getParentOp())
      ++depth;
    return depths_[block] = depth;
  }

  using Homes = llvm::DenseMap<Operation *, Block *>;

  /// The innermost block that something an operation takes is made in.
  Block *homeOf(Operation *op, const Homes &homes) {
    Block *home = entry_;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        if (op->isAncestor(operand.getParentBlock()->getParentOp()))
          continue; // made inside of it
        Operation *def = operand.getDefiningOp();
        auto known = homes.find(def);
        Block *block = known != homes.end() ? known->second : operand.getParentBlock();
        if (depth(block) > depth(home))
          home = block;
      }
    });
    return home;
  }

  /// Everything that stands, in its block, after what may end the instance.
  void findChecked(func::FuncOp func) {
    func.walk([&](Block *block) {
      bool checked = false;
      for (Operation &op : *block) {
        if (checked)
          checked_.insert(&op);
        checked |= op.getNumRegions() == 0 && isOrdered(&op) &&
                   !isa<ir::ReadOp, ir::EmitOp, func::CallOp>(op);
      }
    });
  }

  double workOf(Operation *root) {
    double all = 0;
    root->walk([&](Operation *op) {
      if (!isTensorCode(op) || isFree(op))
        return;
      double work = work_.of(op) * (hasUnknownExtents(op) ? kUnknownExtent : 1);
      for (Operation *around = op; around != root; around = around->getParentOp())
        work *= isLoop(around->getParentOp()) ? kUnknownLength : 1;
      all += work;
    });
    return all;
  }

  /// What a loop computes for an element whatever its branches are, beside what could move.
  void findRoom(func::FuncOp func) {
    Homes ideal;
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isFree(op) || isMovable(op))
        ideal[op] = homeOf(op, ideal);
    });
    llvm::DenseMap<Block *, double> work;
    func.walk([&](Operation *op) {
      double own = 0;
      if (isLoop(op)) {
        room_[op] = work.lookup(&op->getRegion(0).front());
      } else if (isBranch(op)) {
        own = std::numeric_limits<double>::infinity();
        for (Region &region : op->getRegions())
          own = std::min(own, region.empty() ? 0 : work.lookup(&region.front()));
      } else if (isTensorCode(op)) {
        Operation *loop = loopAround(op);
        auto home = ideal.find(op);
        bool stays = home == ideal.end() || !loop || loop->isAncestor(home->second->getParentOp());
        own = stays ? work_.of(op) : 0;
      }
      work[op->getBlock()] += own;
    });
  }

  static Operation *loopAround(Operation *op) {
    for (op = op->getParentOp(); op && !isa<func::FuncOp>(op); op = op->getParentOp())
      if (isLoop(op))
        return op;
    return nullptr;
  }

  void findMoves(func::FuncOp func) {
    homes_.clear();
    moves_.clear();
    llvm::DenseMap<Operation *, double> room = room_;
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<func::FuncOp>(op) || op->hasTrait<OpTrait::IsTerminator>())
        return;
      bool isWanted = isFree(op);
      if (!isWanted && !isMovable(op))
        return;
      Block *home = homeOf(op, homes_);
      Operation *loop = placeBefore(op, home, isWanted ? nullptr : &room);
      homes_[op] = loop ? loop->getBlock() : op->getBlock();
      if (isa<ir::ParamRefOp, arith::ConstantOp>(op))
        homes_[op] = entry_;
      if (loop && !isWanted)
        moves_[op] = loop;
    });
  }

  /// The outermost loop before which an operation may run: all that it takes is there, and its
  /// checks are made. Out of a branch it may go if that costs no more than there is room for.
  Operation *placeBefore(Operation *op, Block *home, llvm::DenseMap<Operation *, double> *room) {
    Operation *place = nullptr, *at = op;
    bool mayFail = mayNeedCheck(op);
    bool asks = false; // a branch is between
    while (at->getBlock() != home && !isa<func::FuncOp>(at->getParentOp())) {
      if (mayFail && checked_.contains(at))
        break;
      at = at->getParentOp();
      if (isBranch(at)) {
        // The gradient of what nobody reads is zero, and zero times an infinite factor is not.
        if (mayFail || training_)
          break;
        asks = true;
        continue;
      }
      if (!isLoop(at))
        break;
      if (asks && room) {
        double work = workOf(op);
        double &left = (*room)[at];
        if (work > left)
          break;
        left -= work;
      }
      asks = false;
      place = at;
    }
    return place;
  }

  //===--- What stays after all ----------------------------------------------===//

  /// Where a use is when everything has moved.
  Block *landing(Operation *user) {
    for (Operation *op = user; !isa<func::FuncOp>(op); op = op->getParentOp())
      if (Operation *loop = moves_.lookup(op))
        return loop->getBlock();
    return user->getBlock();
  }

  /// Whether the loop takes it, if only through what is free.
  bool isTakenInside(Operation *op) {
    Block *block = moves_.lookup(op)->getBlock();
    llvm::SetVector<Operation *> users(op->user_begin(), op->user_end());
    for (size_t i = 0; i < users.size(); ++i) {
      Operation *user = users[i];
      if (landing(user) == block)
        continue;
      if (!isFree(user))
        return true;
      users.insert(user->user_begin(), user->user_end());
    }
    return false;
  }

  /// Whether a kernel may make one chain of it and another term of a sum.
  bool beginsChain(Value value) {
    Operation *def = value.getDefiningOp();
    auto *rule = batchRule<ops::Elementwise>(def);
    return (rule && rule->addition) ||
           (batchRule<ops::Product>(def) &&
            (isFree(def) || precedence_.rank(def->getOperand(1), def) == Precedence::kShared));
  }

  /// Whether a sum that stays takes up an operand's chain as well when that is made elsewhere.
  bool goesOnFrom(Operation *sum, Value value) {
    Value other = sum->getOperand(sum->getOperand(0) == value ? 1 : 0);
    if (sum->hasAttr(ops::kStartAttr))
      return sum->getOperand(0) == value;
    return precedence_.rank(other, sum) != Precedence::kShared && !beginsChain(other);
  }

  bool breaksChain(Operation *op) {
    if (!beginsChain(op->getResult(0)))
      return false;
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      auto *rule = batchRule<ops::Elementwise>(user);
      return rule && rule->addition && landing(user) != moves_.lookup(op)->getBlock() &&
             !goesOnFrom(user, op->getResult(0));
    });
  }

  /// A tensor that is larger than all that it is made of costs more to read than to make.
  static bool isSpread(Operation *op) {
    if (!isTensorCode(op) || batchRule<ops::Product>(op))
      return false;
    int64_t taken = 0, rank = 0;
    bool known = !hasUnknownExtents(op);
    for (Type type : op->getOperandTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type)) {
        rank = std::max(rank, tensor.getRank());
        taken += known ? tensor.getNumElements() : 0;
      }
    return llvm::any_of(op->getResultTypes(), [&](Type type) {
      auto tensor = cast<RankedTensorType>(type);
      return tensor.getRank() > rank || (known && tensor.getNumElements() > taken);
    });
  }

  /// What the loop may take from a row: numbers that are not rounded when they are stored.
  static bool isExact(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? tensor.getElementType().isF32() : isa<ir::ListType>(type);
  }

  /// Finds what has to stay; whether there is any.
  bool keep() {
    size_t before = pinned_.size();
    for (auto &[op, loop] : moves_)
      if (isTakenInside(op) &&
          (!llvm::all_of(op->getResultTypes(), isExact) || isSpread(op) || breaksChain(op)))
        pinned_.insert(op);
    if (pinned_.size() > before)
      return true;
    for (const SmallVector<Operation *> &group : groups())
      if (!pays(group))
        pinned_.insert(group.begin(), group.end());
    return pinned_.size() > before;
  }

  /// What moves before one loop and is made of each other.
  std::vector<SmallVector<Operation *>> groups() {
    llvm::EquivalenceClasses<Operation *> classes;
    for (auto &[op, loop] : moves_) {
      classes.insert(op);
      // Through what is free.
      SmallVector<Operation *> work{op};
      llvm::SmallDenseSet<Operation *> seen;
      while (!work.empty())
        work.pop_back_val()->walk([&](Operation *inner) {
          for (Value operand : inner->getOperands()) {
            Operation *def = operand.getDefiningOp();
            if (!def || !seen.insert(def).second)
              continue;
            if (Operation *other = moves_.lookup(def)) {
              if (other == loop)
                classes.unionSets(op, def);
            } else if (homes_.contains(def) && def->getNumRegions() == 0) {
              work.push_back(def);
            }
          }
        });
    }
    llvm::MapVector<Operation *, SmallVector<Operation *>> groups;
    for (auto &[op, loop] : moves_)
      groups[classes.getLeaderValue(op)].push_back(op);
    std::vector<SmallVector<Operation *>> all;
    for (auto &[leader, group] : groups)
      all.push_back(std::move(group));
    return all;
  }

  double workOf(ArrayRef<Operation *> group) {
    double work = 0;
    for (Operation *op : group)
      work += workOf(op);
    return work;
  }

  /// Whether the second element is worth a record, and a row for what it makes.
  bool pays(ArrayRef<Operation *> group) {
    return llvm::any_of(group,
                        [&](Operation *op) {
                          return takesList(op) || op->getNumRegions() > 0 ||
                                 (batchRule<ops::Product>(op) && workOf(op) >= kLeastProduct);
                        }) ||
           workOf(group) >= kRecordWork;
  }

  bool mayBeMuch(ArrayRef<Operation *> group) {
    return workOf(group) >= kMuchWork || llvm::any_of(group, [](Operation *op) {
             return op
                 ->walk([](Operation *inner) {
                   return isa<ir::ApplyOp>(inner) && hasUnknownExtents(inner)
                              ? WalkResult::interrupt()
                              : WalkResult::advance();
                 })
                 .wasInterrupted();
           });
  }

  //===--- Moving ---------------------------------------------------------------===//

  std::vector<Batch> takeBatches() {
    llvm::DenseSet<Operation *> guarded;
    for (const SmallVector<Operation *> &group : groups()) {
      Operation *loop = moves_.lookup(group.front());
      if (mayBeMuch(group) && !hasElements(loop->getOperands().back()))
        guarded.insert(group.begin(), group.end());
      tell(group);
    }
    llvm::MapVector<Operation *, Batch> batches;
    for (auto &[op, loop] : moves_) {
      Batch &batch = batches[loop];
      batch.loop = loop;
      (guarded.contains(op) ? batch.guarded : batch.ops).push_back(op);
    }
    std::vector<Batch> all;
    for (auto &[loop, batch] : batches)
      all.push_back(std::move(batch));
    return all;
  }

  void tell(ArrayRef<Operation *> group) {
    std::string names;
    for (Operation *op : group) {
      auto apply = dyn_cast<ir::ApplyOp>(op);
      names += (names.empty() ? "" : ", ") + (apply        ? apply.getOp().str()
                                              : isLoop(op) ? "a loop"
                                                           : "a branch");
    }
    context_.remark(group.front()->getLoc(),
                    names + ": the same at every step of the loop, so it runs once, before it");
  }

  /// Copies what is free and not there yet, before `place`, and has `op` take that.
  void bring(Operation *op, Operation *place, IRMapping &copies,
             SmallVectorImpl<Operation *> &made) {
    auto isThere = [&](Value value) {
      return value.getParentRegion()->isAncestor(place->getParentRegion());
    };
    op->walk([&](Operation *inner) {
      for (OpOperand &use : inner->getOpOperands()) {
        if (op->isAncestor(use.get().getParentBlock()->getParentOp()) || isThere(use.get()))
          continue;
        SmallVector<Operation *> work{use.get().getDefiningOp()};
        while (!work.empty()) {
          Operation *def = work.back();
          size_t before = work.size();
          for (Value operand : def->getOperands())
            if (!isThere(operand) && !copies.contains(operand))
              work.push_back(operand.getDefiningOp());
          if (work.size() > before)
            continue;
          work.pop_back();
          if (copies.contains(def->getResult(0)))
            continue;
          made.push_back(OpBuilder(place).clone(*def, copies));
          copied_.insert(def);
        }
        use.set(copies.lookup(use.get()));
      }
    });
  }

  void move(const Batch &batch) {
    auto moveAll = [&](ArrayRef<Operation *> ops) {
      IRMapping copies;
      SmallVector<Operation *> moved;
      for (Operation *op : ops) {
        // What it stands in may have moved by now, too.
        Operation *place = batch.loop->getBlock()->findAncestorOpInBlock(*op);
        bring(op, place, copies, moved);
        op->moveBefore(place);
        moved.push_back(op);
      }
      llvm::sort(moved, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      return moved;
    };
    moveAll(batch.ops);
    if (batch.guarded.empty())
      return;
    SmallVector<Operation *> guarded = moveAll(batch.guarded);
    dropCopied(); // else the branch would give what only the originals take
    guard(batch.loop, guarded);
  }

  /// Has operations that stand before a loop run only if its list has elements.
  void guard(Operation *loop, ArrayRef<Operation *> ops) {
    Location loc = ops.front()->getLoc();
    ImplicitLocOpBuilder builder(loc, loop);
    llvm::SmallDenseSet<Operation *> inside(ops.begin(), ops.end());
    auto isInside = [&](Operation *user) {
      for (; user && !isa<func::FuncOp>(user); user = user->getParentOp())
        if (inside.contains(user))
          return true;
      return false;
    };
    SmallVector<Value> taken;
    for (Operation *op : ops)
      for (Value result : op->getResults())
        if (!llvm::all_of(result.getUsers(), isInside))
          taken.push_back(result);
    // What no value can be made up for is computed for an empty list, too.
    if (taken.empty() || !llvm::all_of(taken, [](Value value) { return hasAny(value.getType()); }))
      return;
    Value length = ir::LenOp::create(builder, loop->getOperands().back());
    Value zero = arith::ConstantOp::create(builder, builder.getI64IntegerAttr(0));
    Value any = arith::CmpIOp::create(builder, arith::CmpIPredicate::sgt, length, zero);
    auto branch = scf::IfOp::create(builder, TypeRange(ValueRange(taken)), any, true);
    for (auto [value, result] : llvm::zip(taken, branch.getResults()))
      value.replaceUsesWithIf(result, [&](OpOperand &use) { return !isInside(use.getOwner()); });
    for (Operation *op : ops)
      op->moveBefore(branch.thenBlock(), branch.thenBlock()->end());
    builder.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(builder, taken);
    builder.setInsertionPointToEnd(branch.elseBlock());
    SmallVector<Value> others;
    for (Value value : taken)
      others.push_back(anyOf(builder, value.getType()));
    scf::YieldOp::create(builder, others);
  }

  static bool hasAny(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return isa<ir::ListType>(type) || (tensor && tensor.getElementType().isF32());
  }

  /// A value that nothing will look at, of a type that has one (hasAny).
  static Value anyOf(ImplicitLocOpBuilder &builder, Type type) {
    if (isa<ir::ListType>(type))
      return ir::ListMakeOp::create(builder, type, ValueRange());
    // Of one where the extent is not known.
    int64_t unknown = cast<RankedTensorType>(type).getNumDynamicDims();
    Value one;
    if (unknown)
      one = arith::ConstantOp::create(builder, builder.getI64IntegerAttr(1));
    SmallVector<Value> extents(static_cast<size_t>(unknown), one);
    auto value = builder.getNamedAttr("value", builder.getF64FloatAttr(0));
    return ir::ApplyOp::create(builder, type, "full", extents, builder.getDictionaryAttr(value))
        .getResult(0);
  }

  /// What was copied, where nothing takes it any more.
  void dropCopied() {
    SmallVector<Operation *> work(copied_.begin(), copied_.end());
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (!copied_.contains(op) || !op->use_empty())
        continue;
      copied_.remove(op);
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp())
          work.push_back(def);
      op->erase();
    }
    copied_.clear();
  }

  PassContext &context_;
  Precedence precedence_;
  bool training_;
  OperatorWork work_;
  Block *entry_ = nullptr;
  llvm::DenseMap<Block *, unsigned> depths_;
  llvm::DenseSet<Operation *> checked_, pinned_;
  llvm::DenseMap<Operation *, double> room_; ///< of loops, for work out of branches
  Homes homes_;                              ///< where what may move is made
  llvm::MapVector<Operation *, Operation *> moves_;
  llvm::SetVector<Operation *> copied_;
};

LogicalResult hoistInvariants(ModuleOp module, PassContext &context) {
  HoistInvariants hoist(module, context);
  for (auto func : module.getOps<func::FuncOp>())
    if (!func->hasAttr(ir::kFoldedAttr) && !func.isExternal())
      hoist.run(func);
  return success();
}

} // namespace

PassRecord hoistInvariantsPass() {
  return {.name = "hoist-invariants",
          .description =
              "Runs once, before a loop, what the loop does not change. Of a map, fold, scan or "
              "filter that is what it makes of values from outside of it alone and without a "
              "chance to fail, if that is worth a record; where it is much and the list may be "
              "empty, it runs if the list has elements.",
          .run = hoistInvariants};
}

} // namespace sheaf::passes
