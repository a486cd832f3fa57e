//===- Cpu.h - Kernels for processors ---------------------------*- C++ -*-===//
//
// Lays plans out for a processor: what is computed in registers, what is kept in scratch, and how
// weights are packed. Emission turns that into MLIR (vector, scf, arith, math, llvm); lowering
// turns MLIR into LLVM IR.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_KERNELS_CPU_CPU_H
#define SHEAF_COMPILER_KERNELS_CPU_CPU_H

#include "compiler/kernels/Kernel.h"
#include "runtime/cpu/kernel_code.h"
#include "runtime/cpu/target.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <set>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace sheaf::kernels {
class Backend;
class Generator;
struct BackendOptions;
} // namespace sheaf::kernels

namespace sheaf::kernels::cpu {

const Backend &backend();

/// Its generator, for a processor of the kernels' own if one is given, which outlives it; else for
/// that of host code.
std::unique_ptr<Generator> generator(const BackendOptions &options, const rt::Target *own);

/// What the run time must know to call a kernel, but for its address. `param` of weight uses (and
/// every segment's) counts the block's weight arguments; a record's weight list turns them into
/// parameters.
struct KernelCode : rt::CpuKernel {
  bool tiles = false; ///< runs on the processor's tiles
};

/// Walks weights, and their gradients, there and back.
constexpr const char *kSerpentineSwitch = "serpentine";

/// What can be left out of plans for processors.
llvm::ArrayRef<Switch> switches();

/// Plans a block, without the switches that are named. Other names are ignored.
Kernel planKernel(ir::BlockOp block, const rt::Target &target, const std::set<std::string> &without,
                  const Tuning &tuning = {}, NumericClass numericClass = NumericClass::Exact);

/// Of a kernel that planKernel() made.
const KernelCode &codeOf(const Kernel &kernel);

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

} // namespace sheaf::kernels::cpu

#endif // SHEAF_COMPILER_KERNELS_CPU_CPU_H
