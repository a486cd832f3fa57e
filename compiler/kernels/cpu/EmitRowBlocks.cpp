//===- EmitRowBlocks.cpp - Stages that go on together over blocks of rows -===//
//
// For each record, and each place along the outer axes of a row block, all of its stages compute
// some rows before the first computes the next ones. Rows are computed as ever, so the number of
// rows changes no bit.
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/cpu/Emitter.h"

using namespace mlir;

namespace sheaf::kernels::cpu {

void Emitter::emitRowBlock(const RowBlock &block, Value begin, Value end) {
  loop(begin, end, 1, [&](Value record) {
    enterRecord(record, begin);
    std::vector<Value> outer;
    nest(ArrayRef(block.axes).drop_back(), outer, [&] {
      Value rows = extent(block.axes.back());
      loop(constant(0), rows, layout_.blockRows, [&](Value first) {
        Value last = minimum(add(first, constant(layout_.blockRows)), rows);
        blockRows_.emplace(BlockRows{&block, outer, first, last,
                                     llvm::DenseMap<const Buffer *, Value>(), marker()});
        for (unsigned i = block.begin; i < block.end; ++i)
          emitStage(layout_.stages[i], begin, end);
        blockRows_.reset();
      });
    });
  });
}

/// Rows are addressed by their number among all, so the tensor seems to begin as many rows before
/// what is there as the block does behind the first.
Value Emitter::baseInBlock(const Buffer &buffer) {
  if (Value known = blockRows_->bases.lookup(&buffer))
    return known;
  Value stride = strides(buffer)[buffer.blockAxes - 1], there = temporaryBase(buffer);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(blockRows_->here);
  Value before = mul(arith::SubIOp::create(b, constant(0), blockRows_->begin), stride);
  return blockRows_->bases[&buffer] = bytes(there, before);
}

} // namespace sheaf::kernels::cpu
