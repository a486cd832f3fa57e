//===- Invariants.cpp - What a loop computes alike at every step ----------===//
//
// Only what cannot fail, draws nothing and has no place in the order of the program; as far out as
// its operands allow. A sum that stays takes up the chain of a product all the same (order-sums),
// or the product stays: no bit changes.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Invariants.h"

#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/OperatorWork.h"
#include "compiler/analysis/ProgramOrder.h"
#include "compiler/ops/Expand.h"
#include "compiler/passes/Precedence.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

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

} // namespace

class Invariants::Impl {
public:
  Impl(ModuleOp module, PassContext &context)
      : context_(context), precedence_(module), training_(module->hasAttr(ops::kTrainingAttr)) {}

  std::vector<InvariantBatch> find(func::FuncOp func) {
    if (!func.walk([](Operation *op) {
               return isLoop(op) ? WalkResult::interrupt() : WalkResult::advance();
             })
             .wasInterrupted())
      return {};
    entry_ = &func.getBody().front();
    findChecked(func);
    findRoom(func);
    // What stays keeps others, so it begins anew until nothing more has to.
    do
      findMoves(func);
    while (keep());
    tellStays();
    return takeBatches();
  }

private:
  //===--- What is the same -------------------------------------------------===//

  /// Free wherever it is taken: views, constants, host arithmetic, what is made of weights alone.
  /// It is copied to where it is wanted.
  bool isFree(Operation *op) {
    if (isTensorCode(op)) {
      return batchRule<ops::Movement>(op) || isFill(op) ||
             precedence_.rank(op) == Precedence::kShared;
    }
    return op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() && !copiesRows(op) &&
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
    StringRef stays;
    while (at->getBlock() != home && !isa<func::FuncOp>(at->getParentOp())) {
      if (mayFail && checked_.contains(at)) {
        stays = "it may fail, and a check stands before it";
        break;
      }
      at = at->getParentOp();
      if (isBranch(at)) {
        // The gradient of what nobody reads is zero, and zero times an infinite factor is not.
        if (mayFail || training_) {
          stays = training_ ? "a branch is around it, in training"
                            : "it may fail, and a branch is around it";
          break;
        }
        asks = true;
        continue;
      }
      if (!isLoop(at))
        break;
      if (asks && room) {
        double work = workOf(op);
        double &left = (*room)[at];
        if (work > left) {
          stays = "a branch is around it, and it is more than the rest of the loop";
          break;
        }
        left -= work;
      }
      asks = false;
      place = at;
    }
    Operation *loop = loopAround(op);
    if (room && !place && !stays.empty() && loop && !loop->isAncestor(home->getParentOp()) &&
        pays(op))
      stays_.insert({op, stays});
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

  StringRef whyItStays(Operation *op) {
    if (!isTakenInside(op))
      return "";
    if (!llvm::all_of(op->getResultTypes(), isExact))
      return "it would be rounded where it is stored";
    if (isSpread(op))
      return "it takes longer to read than to make";
    if (breaksChain(op))
      return "a sum of the loop goes on from it";
    return "";
  }

  /// Finds what has to stay; whether there is any.
  bool keep() {
    size_t before = pinned_.size();
    for (auto &[op, loop] : moves_)
      if (StringRef why = whyItStays(op); !why.empty()) {
        pinned_.insert(op);
        if (pays(op))
          stays_.insert({op, why});
      }
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
                          return copiesRows(op) || op->getNumRegions() > 0 ||
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

  //===--- The result ------------------------------------------------------===//

  std::vector<InvariantBatch> takeBatches() {
    llvm::DenseSet<Operation *> guarded;
    for (const SmallVector<Operation *> &group : groups()) {
      Operation *loop = moves_.lookup(group.front());
      if (mayBeMuch(group) && !hasElements(loop->getOperands().back()))
        guarded.insert(group.begin(), group.end());
      tell(group);
    }
    llvm::MapVector<Operation *, InvariantBatch> batches;
    for (auto &[op, loop] : moves_) {
      InvariantBatch &batch = batches[loop];
      batch.loop = loop;
      (guarded.contains(op) ? batch.guarded : batch.ops).push_back(op);
    }
    std::vector<InvariantBatch> all;
    for (auto &[loop, batch] : batches)
      all.push_back(std::move(batch));
    return all;
  }

  static std::string nameOf(Operation *op) {
    auto apply = dyn_cast<ir::ApplyOp>(op);
    return apply ? apply.getOp().str() : isLoop(op) ? "a loop" : "a branch";
  }

  void tellStays() {
    for (auto &[op, why] : stays_)
      context_.remark(op->getLoc(),
                      nameOf(op) + ": the same at every step of the loop, but stays: " + why);
    stays_.clear();
  }

  void tell(ArrayRef<Operation *> group) {
    std::string names;
    for (Operation *op : group)
      names += (names.empty() ? "" : ", ") + nameOf(op);
    context_.remark(group.front()->getLoc(),
                    names + ": the same at every step of the loop, so it runs once, before it");
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
  llvm::MapVector<Operation *, StringRef> stays_; ///< and why
};

Invariants::Invariants(ModuleOp module, PassContext &context)
    : impl_(std::make_unique<Impl>(module, context)) {}
Invariants::~Invariants() = default;

std::vector<InvariantBatch> Invariants::find(func::FuncOp func) { return impl_->find(func); }

} // namespace sheaf::passes
