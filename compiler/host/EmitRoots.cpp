//===- EmitRoots.cpp - What is needed behind a call that may wait ---------===//
//
// Control in a Program is structured, so what is needed can be read off it: the uses behind the
// call, in its block or behind an operation around it, and all uses inside of a loop around it by
// what comes from outside of that loop.
//
//===----------------------------------------------------------------------===//

#include "compiler/host/Emitter.h"

using namespace mlir;

namespace sheaf::host {

constexpr int64_t kPlaceSlot = offsetof(rt::RootFrame, place) / sizeof(rt::Slot);
/// Slots of a frame before what it holds.
constexpr int64_t kHeaderSlots = sizeof(rt::RootFrame) / sizeof(rt::Slot);

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

/// A type of as many slots, none of which holds memory.
static Type withoutMemory(Type type) {
  SmallVector<Type> slots(static_cast<size_t>(slotCount(type)),
                          IntegerType::get(type.getContext(), 64));
  return TupleType::get(type.getContext(), slots);
}

/// The type of a value, or of a part of one, without what no use needs. Whatever was needed later
/// is needed now: so what a fork's frame has not kept is not asked for when the fork has been
/// joined.
static Type neededPart(Type type, Value value, llvm::function_ref<bool(OpOperand &)> needs) {
  SmallVector<ir::GetOp> gets;
  for (OpOperand &use : value.getUses()) {
    auto get = dyn_cast<ir::GetOp>(use.getOwner());
    if (get && get->getBlock() == value.getParentBlock())
      gets.push_back(get);
    else if (needs(use))
      return type;
  }
  if (gets.empty())
    return withoutMemory(type);
  SmallVector<Type> wholes(cast<TupleType>(type).getTypes());
  SmallVector<Type> fields = llvm::map_to_vector(wholes, withoutMemory);
  for (ir::GetOp get : gets) {
    Type whole = wholes[get.getIndex()], &field = fields[get.getIndex()];
    // Taken twice, it may be needed in two ways.
    bool again = field != withoutMemory(whole);
    field = again ? whole : neededPart(whole, get.getResult(), needs);
  }
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

Type FunctionEmitter::forkedType(Operation *forked) {
  return TupleType::get(forked->getContext(), forkedTypes(forked));
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
  if (forkFrames_.empty()) {
    llvm::BasicBlock &entry = function_.code->getEntryBlock();
    llvm::IRBuilder<> builder(&entry, entry.begin());
    forkFrames_.push_back(builder.CreateAlloca(b_.getInt64Ty(), i64(kHeaderSlots + 2)));
  }
  fork.frame = forkFrames_.pop_back_val();
  llvm::Value *top = contextField(offsetof(rt::Context, roots));
  b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), top), fork.frame);
  sayNeeded(op, fork, op);
  store(slotAt(fork.frame, kHeaderSlots), {fork.task, fork.results});
  b_.CreateStore(fork.frame, top);
  forks_[op] = fork;
}

void FunctionEmitter::closeFork(Operation *op) {
  auto it = forks_.find(op);
  llvm::AllocaInst *frame = it->second.frame;
  auto next = forks_.erase(it);
  llvm::Value *link =
      next == forks_.end() ? contextField(offsetof(rt::Context, roots)) : next->second.frame;
  b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), frame), link);
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
  int64_t size = kHeaderSlots + static_cast<int64_t>(slots.size());
  if (!rootFrame_) {
    llvm::BasicBlock &entry = function_.code->getEntryBlock();
    llvm::IRBuilder<> builder(&entry, entry.begin());
    rootFrame_ = builder.CreateAlloca(b_.getInt64Ty(), i64(size));
  }
  if (size > cast<llvm::ConstantInt>(rootFrame_->getArraySize())->getSExtValue())
    rootFrame_->setOperand(0, i64(size));
  llvm::Value *top = contextField(offsetof(rt::Context, roots));
  b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), top), rootFrame_);
  b_.CreateStore(i64(m_.rootPlace(std::move(place))), slotAt(rootFrame_, kPlaceSlot));
  store(slotAt(rootFrame_, kHeaderSlots), slots);
  b_.CreateStore(rootFrame_, top);
  return true;
}

void FunctionEmitter::dropRoots(bool saved) {
  if (saved)
    b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), rootFrame_),
                   contextField(offsetof(rt::Context, roots)));
}

} // namespace sheaf::host
