//===- EmitForeign.cpp - Products by vendors' libraries -------------------===//
//
// The rows of a pass are gathered into scratch, where the library reads them and leaves its sums;
// what follows the products is generated as ever and reads these.
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/cpu/Emitter.h"

using namespace mlir;

namespace sheaf::kernels::cpu {

/// Rows have been gathered (emitFactorRows).
void Emitter::emitForeign(const Stage &stage, Value rows, EnterRow enter) {
  Value factors = factorRows();
  Value sums = atEntry([&] {
    return bytes(scratch_, layout_.accumulatorBytes + layout_.rowTableBytes + layout_.factorBytes);
  });
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                          {pointer_, i64_, pointer_, pointer_});
  for (const ProductGroup &group : stage.groups) {
    // rt::LibraryProduct begins with its function.
    Value product =
        atEntry([&] { return loadAs(pointer_, bytes(weights_, 8 * group.weightUse), 8); });
    Value run = atEntry([&] { return loadAs(pointer_, product, 8); });
    LLVM::CallOp::create(b, type,
                         ValueRange{run, product, rows, bytes(factors, group.rowOffset),
                                    bytes(sums, group.columnOffset)});
  }

  auto vector = VectorType::get({stage.lanes}, f32_);
  /// Where the columns of each accumulator begin in a row of sums.
  std::vector<int64_t> columns(stage.accumulators.size());
  int64_t width = stage.shape.back().constant() * bytesOf(ops::DType::F32);
  for (const ProductGroup &group : stage.groups)
    for (auto [i, accumulator] : llvm::enumerate(group.accumulators))
      columns[accumulator] = group.columnOffset + static_cast<int64_t>(i) * width;
  loop(constant(0), rows, 1, [&](Value row) {
    std::vector<Value> index = enter(row);
    Value of = bytes(sums, mul(row, constant(stage.sumsRow)));
    loop(constant(0), panelCount(stage), 1, [&](Value panel) {
      Value column = mul(panel, constant(stage.lanes));
      Value starts = stage.startUse >= 0 ? startsOf(stage, panel) : Value();
      std::vector<Value> accumulators;
      for (auto [a, begin] : llvm::enumerate(columns)) {
        Value at = bytes(bytes(of, begin), mul(column, constant(bytesOf(ops::DType::F32))));
        Value sum = loadAs(vector, at, bytesOf(ops::DType::F32));
        if (int view = stage.startViews[a]; view >= 0)
          sum = arith::AddFOp::create(b, sum,
                                      loadAs(vector, bytes(starts, view * stage.lanes * 4), 4));
        const Accumulator &accumulator = stage.accumulators[a];
        if (accumulator.startRow())
          sum = arith::AddFOp::create(
              b, sum,
              startOfRow(stage, accumulator, index, column, Turn::of(stage.groups.front())));
        accumulators.push_back(sum);
      }
      writeVector(stage, index, column, std::move(accumulators));
    });
  });
}

} // namespace sheaf::kernels::cpu
