//===- StoredCode.h - Compiled code of earlier starts -----------*- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_STOREDCODE_H
#define SHEAF_COMPILER_DRIVER_STOREDCODE_H

#include "compiler/driver/Jit.h"
#include "compiler/kernels/Kernels.h"
#include "compiler/store/Store.h"

#include <set>
#include <string>
#include <vector>

namespace sheaf::driver {

struct CompileOptions;

/// The objects of one compilation: each by a key, the SHA-256 of all that its code follows from.
class StoredCode {
public:
  /// The name of the function in the object of a kernel, whatever the kernel is called in the
  /// program: programs share objects.
  static constexpr const char *kKernelSymbol = "kernel";

  /// The target must outlive it.
  StoredCode(const CompileOptions &options, const kernels::Target &target);

  std::string hostKey(const llvm::Module &module) const;
  std::string kernelKey(const kernels::Kernel &kernel) const;

  /// Looks for these, each once.
  void find(std::vector<std::string> keys);
  bool has(const std::string &key) const { return code_.contains(key); }
  /// Of a key that it has.
  const ObjectCode &code(const std::string &key) const { return code_.at(key); }

  /// What had to be compiled.
  void add(const std::string &key, ObjectCode code);
  /// Writes what was added.
  void keep();

  const store::Use &use() const { return store_.use(); }

private:
  const kernels::Target &target_;
  const std::set<std::string> &without_;
  store::Store store_;
  store::Values code_;
  std::vector<std::string> added_;
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_STOREDCODE_H
