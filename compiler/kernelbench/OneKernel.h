//===- OneKernel.h - The kernel of a one-line model -------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELBENCH_ONEKERNEL_H
#define SHEAF_COMPILER_KERNELBENCH_ONEKERNEL_H

#include "compiler/kernelbench/KernelBench.h"
#include "runtime/cpu/kernel_code.h"
#include "runtime/session/session.h"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sheaf::kernelbench {

/// The one kernel of a model whose arguments and results are tensors of known extents, with records
/// of its own: argument rows of records are shuffled.
class OneKernel {
public:
  /// Throws UserError when the model does not compile, as with weights beyond the memory limit.
  OneKernel(const std::string &text, const std::map<std::string, int64_t> &dims,
            const Options &options);

  const driver::CompiledModel &model() const { return *model_; }
  /// A parameter's elements, row-major.
  std::vector<float> param(size_t index) const;

  /// Makes room for so many records: granules of each argument, then of all results.
  void prepare(int64_t records, std::span<const int64_t> argGranules, int64_t resultGranules);
  /// Of an argument, or after these, of the results.
  float *row(int64_t record, size_t word);
  /// All records, once.
  void run();

private:
  const rt::KernelDesc &kernel() const { return model_->model().kernels[0]; }
  const rt::CpuKernel &code() const { return rt::cpuCode(model_->model()).kernels[0]; }

  SourceFile source_;
  Diagnostics diags_;
  std::unique_ptr<driver::CompiledModel> model_;
  std::unique_ptr<rt::Session> session_;
  int64_t records_ = 0;
  rt::AlignedBytes rows_, scratch_;
  std::vector<int32_t> words_;
};

/// Throws InternalError when a kernel's result is not that of something else. `scale`: of the
/// numbers that were summed.
void checkClose(float got, float expected, double scale, const std::string &where);

} // namespace sheaf::kernelbench

#endif // SHEAF_COMPILER_KERNELBENCH_ONEKERNEL_H
