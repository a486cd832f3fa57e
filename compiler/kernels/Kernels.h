//===- Kernels.h - Blocks to batched kernels --------------------*- C++ -*-===//
//
// A `sheaf.block` becomes one kernel that runs any number of records. Planning decides what is
// computed in registers, what is kept in scratch, and how weights are packed; it is plain data, so
// that `explain`, the host code and the weight packer read it. Emission turns a plan into MLIR
// (vector, scf, arith, math, llvm); lowering turns that into LLVM IR.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_KERNELS_KERNELS_H
#define SHEAF_KERNELS_KERNELS_H

#include "compiler/ir/Program.h"
#include "compiler/kernels/Dispatch.h"
#include "compiler/kernels/ProductForm.h"
#include "compiler/kernels/Tuning.h"
#include "compiler/ops/Op.h"
#include "runtime/cpu/target.h"
#include "runtime/model/model.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace sheaf::kernels {

/// A tensor that is made for a record: a result, which lies in rows that the record reserves, or a
/// temporary with per-instance extents.
struct RecordBuffer {
  ops::DType dtype;
  std::vector<Dim> shape;
};

/// What the implementations said of a product of a block.
struct ProductDispatch {
  mlir::Location where;
  std::string what; ///< operator and extents
  std::vector<Verdict> verdicts;
};

struct Plan; // the stages of a kernel (Plan.h)

/// A planned block: what the host code and the runtime need to know of its kernel.
struct Kernel {
  ir::BlockOp block;
  std::string symbol;                    ///< name of the function
  std::vector<rt::RecordWord> layout;    ///< what a record holds
  uint32_t words = 0;                    ///< 32-bit words of a record
  std::vector<RecordBuffer> results;     ///< reserved by each record, one after the other
  std::vector<RecordBuffer> temporaries; ///< needed in scratch beside scratchBytes
  uint64_t scratchBytes = 0;
  uint32_t panels = 0;     ///< see KernelDesc
  bool serpentine = false; ///< see KernelDesc
  bool tiles = false;      ///< runs on the processor's tiles
  std::vector<rt::FlopTerm> flop;
  std::vector<rt::FlopTerm> bytes; ///< of rows that a record reads and writes, without padding
  /// The work of each operator, for reports: FLOP of products, for the rest a few an element.
  std::vector<std::pair<mlir::Operation *, double>> work;
  double productWork = 0;                 ///< of the same, that of products
  double alongRowsWork = 0;               ///< of that, what is summed along rows
  std::optional<ProductForm> productForm; ///< with products
  /// Weight uses with `param` (and every segment's param) counting the block's weight arguments;
  /// a record's weight list turns them into parameters.
  std::vector<rt::WeightUse> weights;
  std::vector<ProductDispatch> dispatch; ///< of each of the block's products
  std::vector<std::string> remarks;      ///< what was fused, tiled, packed; slow paths and why
  Tuning tuning;                         ///< what it was planned with
  /// What that came to: `6 x 4`, rows by vectors of the register tile of each stage of products,
  /// and how many rows or records go on together. Where it is equal for a block, so is the code.
  std::string tiling;
  std::shared_ptr<Plan> plan;
};

/// An optimisation that can be left out.
struct Switch {
  std::string_view name;
  std::string_view meaning;
  bool computesProducts = false; ///< it names who may compute products
};

/// Walks weights, and their gradients, there and back.
constexpr const char *kSerpentineSwitch = "serpentine";

/// Those of the planner.
llvm::ArrayRef<Switch> switches();

/// Plans a block, without the switches that are named. Other names are ignored.
Kernel planKernel(ir::BlockOp block, const rt::Target &target, const std::set<std::string> &without,
                  const Tuning &tuning = {}, NumericClass numericClass = NumericClass::Exact);

/// What the code of a block's kernel follows from, but for its tuning and the version of the
/// compiler: equal texts with equal tunings have equal code. Names are left out.
std::string describeCode(ir::BlockOp block, const rt::Target &target,
                         const std::set<std::string> &without,
                         NumericClass numericClass = NumericClass::Exact);

/// The kernels as one MLIR module of functions with KernelFn's signature.
mlir::OwningOpRef<mlir::ModuleOp> emitKernels(llvm::ArrayRef<Kernel> kernels,
                                              const rt::Target &target, mlir::MLIRContext &context);

/// Lowers emitted kernels (in place) and translates them.
std::unique_ptr<llvm::Module> lowerKernels(mlir::ModuleOp kernels, const rt::Target &target,
                                           llvm::LLVMContext &context);

} // namespace sheaf::kernels

#endif // SHEAF_KERNELS_KERNELS_H
