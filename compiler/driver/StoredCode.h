//===- StoredCode.h - Compiled code of earlier starts -----------*- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_STOREDCODE_H
#define SHEAF_COMPILER_DRIVER_STOREDCODE_H

#include "compiler/codegen/Jit.h"
#include "compiler/kernels/Tuning.h"
#include "compiler/store/Store.h"
#include "runtime/cpu/target.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sheaf::driver {

struct CompileOptions;

/// What the tuner chose for a kernel (Tune.h).
struct TunedKernel {
  kernels::Tuning tuning;
  /// How many times as fast it was as the default: the median, and its interval of 95 %.
  double ratio = 1, low = 1, high = 1;

  store::Bytes bytes() const;
  /// What bytes() made; nothing for anything else.
  static std::optional<TunedKernel> parse(const store::Bytes &bytes);
};

/// The objects of one compilation, and what the tuner chose for its kernels: each by a key, the
/// SHA-256 of all that it follows from.
class StoredCode {
public:
  /// The name of the function in the object of a kernel, whatever the kernel is called in the
  /// program: programs share objects.
  static constexpr const char *kKernelSymbol = "kernel";

  /// Whether this program and its libraries have build ids: without them nothing is kept.
  static bool canKeep();

  /// The target must outlive it.
  StoredCode(const CompileOptions &options, const rt::Target &target);

  std::string hostKey(const llvm::Module &module) const;
  /// `description` is that of the block's code (kernels::describeCode).
  std::string kernelKey(const std::string &description, const kernels::Tuning &tuning) const;
  /// The key of what was chosen for a kernel on this machine.
  std::string tuningKey(const std::string &description) const;

  /// Looks for what was chosen. To be called before find().
  void findTunings(const std::vector<std::string> &keys);
  /// Of those that were found.
  std::optional<TunedKernel> tuned(const std::string &key) const;

  /// Looks for these, each once.
  void find(std::vector<std::string> keys);
  bool has(const std::string &key) const { return code_.contains(key); }
  /// Of a key that it has.
  const ObjectCode &code(const std::string &key) const { return code_.at(key); }

  /// What had to be compiled.
  void add(const std::string &key, ObjectCode code);
  /// Writes what was added.
  void keep();

  /// Of the code: what was chosen counts for nothing.
  store::Use use() const;

private:
  const rt::Target &target_;
  store::Store store_;
  size_t found_ = 0, made_ = 0; ///< see store::Use
  store::Values code_;
  std::map<std::string, TunedKernel> tuned_;
  std::vector<std::string> added_;
};

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_STOREDCODE_H
