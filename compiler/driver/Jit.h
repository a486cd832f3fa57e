//===- Jit.h - From LLVM IR to code in memory -------------------*- C++ -*-===//
//
// Compiles LLVM modules for the machine they will run on and links them against the runtime's ABI
// (runtime/abi.h) into a code image (runtime/code.h). Symbols come from a table, never from the
// process.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_DRIVER_JIT_H
#define SHEAF_COMPILER_DRIVER_JIT_H

#include "runtime/code.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace sheaf::driver {

/// The processor that code is made for.
struct Processor {
  std::string triple;
  std::string cpu;      ///< LLVM's name
  std::string features; ///< LLVM's feature string; empty for restricted CPU names
};

/// The triple of this process.
std::string hostTriple();

/// The features that the processor's code may use, by LLVM's names.
std::vector<std::string> usedFeatures(const Processor &processor);

/// Throws UserError when the processor's code cannot run on this machine, naming what it lacks.
void checkRunsHere(const Processor &processor);

/// How much the LLVM IR of a module is optimised before code generation.
enum class IrPasses {
  None, ///< kernels: they come as finished vector code
  O1    ///< host code
};

/// A module to compile, with the context that owns its types.
struct CodeModule {
  CodeModule();
  CodeModule(CodeModule &&) noexcept;
  CodeModule &operator=(CodeModule &&) noexcept;
  ~CodeModule();

  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  IrPasses passes = IrPasses::None;
};

/// Sets triple and data layout for the processor; to be done before the module is optimised.
void prepareModule(llvm::Module &module, const Processor &processor);

/// The module's assembly after the passes it asks for. The module is changed.
std::string emitAssembly(CodeModule &module, const Processor &processor);

/// Linked code. Addresses stay valid as long as the object lives.
class Jit {
public:
  /// Compiles the modules, up to `threads` of them at a time, and links them together.
  /// Throws InternalError when LLVM refuses.
  static std::unique_ptr<Jit> compile(std::vector<CodeModule> modules, const Processor &processor,
                                      unsigned threads);
  ~Jit();

  /// Throws InternalError when no module defines the symbol.
  void *address(std::string_view symbol) const;

  /// All of it, as it is loaded.
  const rt::LoadedCode &code() const;

  /// Bytes of stack that one call of any function of a module takes at most, callees excluded.
  uint64_t largestFrame(size_t module) const;

private:
  Jit();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_JIT_H
