//===- kernel_code.h - The code of a model's kernels ------------*- C++ -*-===//
//
// How a kernel is called, in which form it reads weights and what it needs beside rows differs from
// one kind of machine to another. A model says here what all may know of it; devices know the form
// of the code that they run (runtime/cpu/kernel_code.h for processors).
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MODEL_KERNEL_CODE_H
#define SHEAF_RUNTIME_MODEL_KERNEL_CODE_H

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::rt {

struct Model;

/// Bytes of the copies of weights that kernels read.
struct PackedBytes {
  std::vector<uint64_t> always; ///< of each copy
  uint64_t joined = 0;          ///< more, for joined kernels alone (KernelDesc::joined)
  /// The copies that a parameter is packed into where that is all that kernels read of it, and all
  /// of it is packed at once; else none.
  std::vector<std::vector<size_t>> onlyIn;
};

/// How the product of a gradient is best cut into parts for several threads: at whole units of rows
/// and columns, each part copying the columns of the rows that it needs.
struct ProductUnits {
  int64_t rows = 1, columns = 1;
  int64_t copyCost = 1; ///< of one float, in multiply-adds
};

class KernelCode {
public:
  virtual ~KernelCode() = default;
  virtual std::unique_ptr<KernelCode> clone() const = 0;
  /// The back end that made it: `cpu`.
  virtual std::string_view target() const = 0;
  /// Beside rows and temporaries, of the neediest kernel on each thread that runs kernels.
  virtual uint64_t scratchBytes() const = 0;
  /// Throws InternalError when weights are used that `model` does not have.
  virtual PackedBytes packedBytes(const Model &model) const = 0;
  virtual ProductUnits productUnits() const = 0;
  /// The libraries beside this one that it calls, by name.
  virtual std::set<std::string> libraries() const = 0;
};

/// The code that a model has, if it has any; copied with the model.
class ModelCode {
public:
  ModelCode() = default;
  ModelCode(std::unique_ptr<KernelCode> code) : code_(std::move(code)) {}
  ModelCode(const ModelCode &other) : code_(other.code_ ? other.code_->clone() : nullptr) {}
  ModelCode(ModelCode &&) noexcept = default;
  ModelCode &operator=(ModelCode other) noexcept {
    code_ = std::move(other.code_);
    return *this;
  }

  explicit operator bool() const { return code_ != nullptr; }
  const KernelCode *operator->() const { return code_.get(); }
  const KernelCode &operator*() const { return *code_; }
  KernelCode &operator*() { return *code_; }

private:
  std::unique_ptr<KernelCode> code_;
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MODEL_KERNEL_CODE_H
