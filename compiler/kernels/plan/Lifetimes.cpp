//===- Lifetimes.cpp - Temporaries of a kernel that never live at once ----===//

#include "compiler/kernels/plan/Planner.h"

using namespace mlir;

namespace sheaf::kernels {
namespace {

/// From the stage that first writes a buffer to the last one that reads or writes it.
struct Lifetime {
  Buffer *buffer;
  int first = INT32_MAX, last = -1;

  void extend(int stage) {
    first = std::min(first, stage);
    last = std::max(last, stage);
  }
};

/// Bytes of a tensor of known extents, in rows.
int64_t rowBytes(const Buffer &buffer) {
  std::vector<int64_t> extents;
  for (const Dim &extent : buffer.shape)
    extents.push_back(extent.constant());
  return rt::tensorGranules(extents, runtimeType(buffer.dtype)) * rt::kGranuleBytes;
}

/// Gives each lifetime a place, in order of their beginnings: the first one of its kind that is
/// free again. A stage may write what it also reads only in its own buffers, so lifetimes that
/// touch are apart. `fits` says whether a buffer may lie where another one does.
std::vector<std::vector<Lifetime>>
sharePlaces(const std::vector<Lifetime> &lifetimes, bool share,
            llvm::function_ref<bool(const Buffer &, const Buffer &)> fits) {
  // Insertion keeps the order of equal beginnings.
  std::vector<const Lifetime *> order;
  for (const Lifetime &life : lifetimes)
    order.insert(
        llvm::upper_bound(order, &life,
                          [](const Lifetime *a, const Lifetime *b) { return a->first < b->first; }),
        &life);
  std::vector<std::vector<Lifetime>> places;
  for (const Lifetime *life : order) {
    auto place = llvm::find_if(places, [&](const std::vector<Lifetime> &taken) {
      return share && taken.back().last < life->first && fits(*taken.front().buffer, *life->buffer);
    });
    if (place == places.end()) {
      places.emplace_back();
      place = std::prev(places.end());
    }
    place->push_back(*life);
  }
  return places;
}

} // namespace

/// What a stage reads from memory, at most: everything that its roots depend on, down to the
/// tensors that earlier levels keep.
void Planner::forEachRead(const Stage &stage, llvm::function_ref<void(Value)> visit) const {
  llvm::SmallVector<Value> work;
  llvm::SmallPtrSet<Value, 16> seen;
  for (const Root &root : stage.roots)
    work.push_back(root.value);
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (isKept(value)) {
      visit(value);
      if (levelOf(value) < stage.level)
        continue;
    }
    if (Operation *op = value.getDefiningOp())
      for (Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          work.push_back(operand);
  }
}

void Planner::shareTemporaries() {
  llvm::DenseMap<const Buffer *, Lifetime> lives;
  for (Buffer &buffer : plan_->buffers)
    if (buffer.isTemporary())
      lives[&buffer].buffer = &buffer;
  auto use = [&](const Buffer *buffer, int stage) {
    auto life = lives.find(buffer ? &buffer->whole() : nullptr);
    if (life == lives.end())
      return;
    buffer = life->first;
    life->second.extend(stage);
    // The stages of a row block run again for the next rows.
    if (int block = plan_->stages[static_cast<size_t>(stage)].rowBlock;
        block >= 0 && buffer->rowBlock != block) {
      const RowBlock &of = plan_->rowBlocks[static_cast<size_t>(block)];
      life->second.extend(static_cast<int>(of.begin));
      life->second.extend(static_cast<int>(of.end) - 1);
    }
  };
  for (auto [number, stage] : llvm::enumerate(plan_->stages)) {
    for (const Root &root : stage.roots)
      use(root.buffer, static_cast<int>(number));
    forEachRead(stage,
                [&](Value value) { use(plan_->bufferOf.lookup(value), static_cast<int>(number)); });
  }
  for (const RowBlock &block : plan_->rowBlocks)
    for (const Buffer *buffer : block.limitsRead)
      use(buffer, static_cast<int>(block.begin));

  std::vector<Lifetime> temporaries, scratch;
  for (Buffer &buffer : plan_->buffers)
    if (auto life = lives.find(&buffer); life != lives.end())
      (buffer.kind == Buffer::Scratch ? scratch : temporaries).push_back(life->second);

  for (auto &place :
       sharePlaces(temporaries, options_.shareTemporaries, [&](const Buffer &a, const Buffer &b) {
         return a.dtype == b.dtype &&
                a.shapeInMemory(options_.blockRows) == b.shapeInMemory(options_.blockRows);
       })) {
    for (const Lifetime &life : place) {
      life.buffer->index = static_cast<unsigned>(plan_->records.temporaries.size());
      life.buffer->firstStage = static_cast<unsigned>(life.first);
      life.buffer->lastStage = static_cast<unsigned>(life.last);
    }
    ops::DType dtype = place.front().buffer->dtype;
    std::vector<Dim> extents = place.front().buffer->shapeInMemory(options_.blockRows);
    // A back end may begin rows a granule later than they end.
    if (!extents.empty() && !extents.back().isConstant())
      extents.back() = extents.back() + Dim(rt::kGranuleBytes / bytesOf(dtype));
    plan_->records.temporaries.push_back({dtype, std::move(extents)});
  }
  for (auto &place :
       sharePlaces(scratch, options_.shareTemporaries,
                   [](const Buffer &a, const Buffer &b) { return rowBytes(a) == rowBytes(b); })) {
    for (const Lifetime &life : place)
      life.buffer->index = static_cast<unsigned>(plan_->scratch.size());
    plan_->scratch.push_back(rowBytes(*place.front().buffer));
  }
}

} // namespace sheaf::kernels
