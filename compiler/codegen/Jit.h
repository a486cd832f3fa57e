//===- Jit.h - From LLVM IR to code in memory -------------------*- C++ -*-===//
//
// Compiles LLVM modules for the machine they will run on and links them against the runtime's ABI
// (runtime/model/abi.h) into a code image (runtime/cpu/code.h). Symbols come from a table, never
// from the process.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_CODEGEN_JIT_H
#define SHEAF_COMPILER_CODEGEN_JIT_H

#include "runtime/cpu/code.h"
#include "runtime/cpu/target.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace sheaf::driver {

/// How much the LLVM IR of a module is optimised before code generation.
enum class IrPasses {
  None, ///< kernels: they come as finished vector code, with their addresses
  O1    ///< host code
};

struct CodeModule;

/// Compiled code as it can be kept: an ELF object, position independent.
using ObjectCode = std::vector<uint8_t>;

/// Compiles modules for one machine, one after the other, on one thread.
class ModuleCompiler {
public:
  virtual ~ModuleCompiler() = default;
  /// What every module for the machine needs, before it is optimised.
  virtual void prepare(llvm::Module &module) = 0;
  /// The module, prepared or not, is changed. Throws InternalError when LLVM refuses.
  virtual ObjectCode compile(CodeModule &module) = 0;
  virtual std::string assembly(CodeModule &module) = 0;
};
/// Called by each thread that compiles.
using CompilerFactory = std::function<std::unique_ptr<ModuleCompiler>()>;
/// By LLVM, for a processor. The target outlives the factory.
CompilerFactory compilersFor(const rt::Target &target);

/// A module to compile, with the context that owns its types.
struct CodeModule {
  CodeModule();
  CodeModule(CodeModule &&) noexcept;
  CodeModule &operator=(CodeModule &&) noexcept;
  ~CodeModule();

  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  IrPasses passes = IrPasses::None;
  std::shared_ptr<const CompilerFactory> compiler; ///< null: one for the target of host code
};

/// One for a module, where `host` is the target of host code.
std::unique_ptr<ModuleCompiler> compilerOf(const CodeModule &module, const rt::Target &host);

/// Compiles each module to an object, up to `threads` of them at a time; `target` is that of host
/// code. Throws InternalError when LLVM refuses. When `stop` is asked for no module begins any
/// more; of the rest the object is empty.
std::vector<ObjectCode> compileModules(std::vector<CodeModule> modules, const rt::Target &target,
                                       unsigned threads, std::stop_token stop = {});

/// Linked code. Addresses stay valid as long as the object lives; code for another machine
/// must not be called by them.
class Jit {
public:
  /// Throws InternalError for what the linker refuses.
  explicit Jit(std::span<const ObjectCode> objects);
  ~Jit();

  /// Of a symbol of one of the objects. Throws InternalError when it does not define it.
  void *address(size_t object, std::string_view symbol) const;

  /// All of it, as it is loaded.
  const rt::LoadedCode &code() const;

  /// Bytes of stack that one call of any function of an object takes at most, callees excluded.
  uint64_t largestFrame(size_t object) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_CODEGEN_JIT_H
