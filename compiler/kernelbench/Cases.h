//===- Cases.h - The parts of `sheaf bench kernels` -------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELBENCH_CASES_H
#define SHEAF_COMPILER_KERNELBENCH_CASES_H

#include "compiler/kernelbench/KernelBench.h"

namespace sheaf::kernelbench {

/// Measures a part, a line at a time.
class Bench {
public:
  Bench(const Options &options, const Listener &listener)
      : options_(options), listener_(listener) {}

  void run(Part part);
  std::vector<Line> lines;

private:
  void products(Part part);
  void cells();
  void matrices();
  void rows();

  void say(const std::string &what) const {
    if (listener_.progress)
      listener_.progress(what);
  }
  void add(Line line) {
    if (listener_.line)
      listener_.line(line);
    lines.push_back(std::move(line));
  }

  const Options &options_;
  const Listener &listener_;
};

} // namespace sheaf::kernelbench

#endif // SHEAF_COMPILER_KERNELBENCH_CASES_H
