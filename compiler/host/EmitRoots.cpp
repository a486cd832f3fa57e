//===- EmitRoots.cpp - What is needed after a call that may wait ----------===//
//
// Control in a Program is structured, so what is needed can be read off it: the uses after the
// call, in its block or after an operation around it, and all uses inside of a loop around it by
// what comes from outside of that loop.
//
//===----------------------------------------------------------------------===//

#include "compiler/host/Emitter.h"

using namespace mlir;

namespace sheaf::host {

constexpr int64_t kPlaceSlot = offsetof(rt::RootFrame, place) / sizeof(rt::Slot);

/// Whether a value of this type may have rows, lists or data.
static bool holdsMemory(Type type) {
  if (auto tuple = dyn_cast<TupleType>(type))
    return llvm::any_of(tuple.getTypes(), holdsMemory);
  return isa<RankedTensorType, ir::ListType, ir::DataType>(type);
}

bool FunctionEmitter::isNeededBy(OpOperand &use, Operation *at, bool own) {
  Operation *user = use.getOwner();
  Block *home = use.get().getParentBlock();
  bool counts = own;
  for (Operation *here = at;; here = here->getParentOp(), counts = false) {
    Block *block = here->getBlock();
    Operation *there = block->findAncestorOpInBlock(*user);
    if (there && (here->isBeforeInBlock(there) || (counts && here == there)))
      return true;
    if (block == home)
      return false;
    // Another round of a loop may use what comes from outside, and takes the next of its list.
    Operation *around = block->getParentOp();
    if (!isa<scf::IfOp, ir::MatchOp>(around) && around->isAncestor(user) &&
        (around != user || isa<ir::ListType>(use.get().getType())))
      return true;
  }
}

/// Types of slots that hold no memory.
static SmallVector<Type> numbers(MLIRContext *context, int64_t slots) {
  return SmallVector<Type>(static_cast<size_t>(slots), IntegerType::get(context, 64));
}

/// The type of what all of `values` stand for, which is of type `type`, without what no use needs.
/// Whatever is needed later is needed now: so what a fork's frame has not kept is not asked for
/// when the fork has been joined.
static Type neededPart(Type type, ArrayRef<Value> values,
                       llvm::function_ref<bool(OpOperand &)> needs) {
  auto tuple = dyn_cast<TupleType>(type);
  SmallVector<SmallVector<Value, 1>> taken(tuple ? tuple.size() : 0);
  for (Value value : values)
    for (OpOperand &use : value.getUses()) {
      auto get = dyn_cast<ir::GetOp>(use.getOwner());
      if (get && get->getBlock() == value.getParentBlock())
        taken[get.getIndex()].push_back(get.getResult());
      else if (needs(use))
        return type;
    }
  SmallVector<Type> fields;
  if (!tuple)
    fields = numbers(type.getContext(), slotCount(type));
  for (auto [i, parts] : llvm::enumerate(taken))
    fields.push_back(neededPart(tuple.getType(i), parts, needs));
  return TupleType::get(type.getContext(), fields);
}

void FunctionEmitter::addRoots(SmallVectorImpl<RootSlots> &roots, Type type,
                               ArrayRef<llvm::Value *> slots) {
  if (auto tuple = dyn_cast<TupleType>(type)) {
    for (Type field : tuple.getTypes()) {
      int64_t count = slotCount(field);
      addRoots(roots, field, slots.take_front(count));
      slots = slots.drop_front(count);
    }
    return;
  }
  // Constants are parameters and constructors without fields.
  if (!holdsMemory(type) || isa<llvm::Constant>(slots.front()))
    return;
  RootSlots root{{rt::RootDesc::Value, type}, Slots(slots)};
  if (llvm::none_of(roots, [&](const RootSlots &other) {
        return other.root == root.root && other.slots == root.slots;
      }))
    roots.push_back(std::move(root));
}

Type FunctionEmitter::takenType(SmallVector<Place> taken, MLIRContext *context) {
  // Places are in each other, or apart.
  llvm::sort(taken, [](const Place &a, const Place &b) {
    return std::pair(a.slot, -slotCount(a.type)) < std::pair(b.slot, -slotCount(b.type));
  });
  SmallVector<Type> fields;
  int64_t next = 0;
  for (const Place &place : taken) {
    if (place.slot < next)
      continue;
    fields.append(numbers(context, place.slot - next));
    fields.push_back(place.type);
    next = place.slot + slotCount(place.type);
  }
  return TupleType::get(context, fields);
}

void FunctionEmitter::linkRoots(llvm::Value *frame) {
  llvm::Value *top = contextField(offsetof(rt::Context, roots));
  b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), top), frame);
  b_.CreateStore(frame, top);
}

void FunctionEmitter::unlinkRoots(llvm::Value *frame, llvm::Value *inner) {
  b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), frame),
                 inner ? inner : contextField(offsetof(rt::Context, roots)));
}

void FunctionEmitter::sayNeeded(Operation *forked, const Fork &fork, Operation *at) {
  auto needs = [&](OpOperand &use) { return isNeededBy(use, at, /*own=*/false); };
  SmallVector<Type> types;
  for (auto [result, type] : llvm::zip(forked->getResults(), forkedTypes(forked)))
    types.push_back(neededPart(type, result, needs));
  Root root{rt::RootDesc::Fork, TupleType::get(forked->getContext(), types)};
  b_.CreateStore(i64(m_.rootPlace({root})), slotAt(fork.frame, kPlaceSlot));
}

void FunctionEmitter::openFork(Operation *op, Fork fork) {
  fork.frame = forkFrames_.empty() ? inFrame(kRootHeaderSlots + 2) : forkFrames_.pop_back_val();
  sayNeeded(op, fork, op);
  store(slotAt(fork.frame, kRootHeaderSlots), {fork.task, fork.results});
  linkRoots(fork.frame);
  forks_[op] = fork;
}

void FunctionEmitter::closeFork(Operation *op) {
  auto it = forks_.find(op);
  llvm::AllocaInst *frame = it->second.frame;
  auto next = forks_.erase(it);
  unlinkRoots(frame, next == forks_.end() ? nullptr : next->second.frame);
  forkFrames_.push_back(frame);
}

void FunctionEmitter::forgetTaken(Operation *op) {
  SmallVector<Operation *> taken;
  for (auto &[forked, fork] : forks_)
    if (forked->getBlock() == op->getBlock() && passes::isHandedTo(forked, op))
      taken.push_back(forked);
  for (Operation *forked : taken) {
    // A call has ended well only when those that it waits for have: no one else needs to join
    // these.
    if (isa<func::CallOp>(op) && !passes::isUsedBehind(forked, op))
      closeFork(forked);
    else
      sayNeeded(forked, forks_.find(forked)->second, op);
  }
}

bool FunctionEmitter::saveRoots(Operation *at, bool own) {
  if (!rootValues_) {
    rootValues_.emplace();
    auto add = [&](ValueRange values) {
      for (Value value : values)
        if (holdsMemory(value.getType()))
          rootValues_->push_back(value);
    };
    func::FuncOp source = function_.source;
    source.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
      add(op->getResults());
      for (Region &region : op->getRegions())
        add(region.getArguments());
    });
    add(source.getArguments());
  }
  SmallVector<RootSlots> roots;
  auto needs = [&](OpOperand &use) { return isNeededBy(use, at, own); };
  for (Value value : *rootValues_) {
    auto slots = slots_.find(value);
    if (slots != slots_.end() && value.getParentBlock()->findAncestorOpInBlock(*at))
      addRoots(roots, neededPart(value.getType(), value, needs), slots->second);
  }
  roots.append(partial_);
  if (roots.empty())
    return false;

  std::vector<Root> place;
  Slots slots;
  for (const RootSlots &root : roots) {
    place.push_back(root.root);
    slots.append(root.slots);
  }
  inFrame(rootFrame_, kRootHeaderSlots + static_cast<int64_t>(slots.size()));
  b_.CreateStore(i64(m_.rootPlace(std::move(place))), slotAt(rootFrame_, kPlaceSlot));
  store(slotAt(rootFrame_, kRootHeaderSlots), slots);
  linkRoots(rootFrame_);
  return true;
}

void FunctionEmitter::dropRoots(bool saved) {
  if (saved)
    unlinkRoots(rootFrame_);
}

} // namespace sheaf::host
