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

/// Whether a value of this type may have rows, lists or data.
static bool holdsMemory(Type type) {
  if (auto tuple = dyn_cast<TupleType>(type))
    return llvm::any_of(tuple.getTypes(), holdsMemory);
  return isa<RankedTensorType, ir::ListType, ir::DataType>(type);
}

bool FunctionEmitter::isNeeded(Value value, Operation *at, bool own) {
  Block *home = value.getParentBlock();
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    bool counts = own;
    for (Operation *here = at;; here = here->getParentOp(), counts = false) {
      Block *block = here->getBlock();
      Operation *there = block->findAncestorOpInBlock(*user);
      if (there && (here->isBeforeInBlock(there) || (counts && here == there)))
        return true;
      if (block == home)
        break;
      // Another round of a loop may use what comes from outside, and takes the next of its list.
      Operation *around = block->getParentOp();
      if (!isa<scf::IfOp, ir::MatchOp>(around) && around->isAncestor(user) &&
          (around != user || isa<ir::ListType>(value.getType())))
        return true;
    }
  }
  return false;
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
  for (Value value : *rootValues_) {
    auto slots = slots_.find(value);
    if (slots != slots_.end() && value.getParentBlock()->findAncestorOpInBlock(*at) &&
        isNeeded(value, at, own))
      addRoots(roots, value.getType(), slots->second);
  }
  roots.append(partial_);
  for (auto &[op, fork] : forks_)
    roots.push_back({{rt::RootDesc::Fork, forkedType(op)}, {fork.task, fork.results}});
  if (roots.empty())
    return false;

  std::vector<Root> place;
  Slots slots;
  for (const RootSlots &root : roots) {
    place.push_back(root.root);
    slots.append(root.slots);
  }
  constexpr int64_t header = sizeof(rt::RootFrame) / sizeof(rt::Slot);
  int64_t size = header + static_cast<int64_t>(slots.size());
  if (!rootFrame_) {
    llvm::BasicBlock &entry = function_.code->getEntryBlock();
    llvm::IRBuilder<> builder(&entry, entry.begin());
    rootFrame_ = builder.CreateAlloca(b_.getInt64Ty(), i64(size));
  }
  if (size > cast<llvm::ConstantInt>(rootFrame_->getArraySize())->getSExtValue())
    rootFrame_->setOperand(0, i64(size));
  llvm::Value *top = contextField(offsetof(rt::Context, roots));
  b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), top), rootFrame_);
  b_.CreateStore(i64(m_.rootPlace(std::move(place))),
                 slotAt(rootFrame_, offsetof(rt::RootFrame, place) / sizeof(rt::Slot)));
  store(slotAt(rootFrame_, header), slots);
  b_.CreateStore(rootFrame_, top);
  return true;
}

void FunctionEmitter::dropRoots(bool saved) {
  if (saved)
    b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), rootFrame_),
                   contextField(offsetof(rt::Context, roots)));
}

} // namespace sheaf::host
