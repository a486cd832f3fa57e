//===- KernelBench.h - Single kernels against libraries ---------*- C++ -*-===//
//
// Single kernels, one thread, as the compiler makes them for one-line models, against vendors'
// libraries, the core's peak and the memory that holds what they read. All candidates of a line
// take turns: the best time of each is its speed, and how they compare is the median of the ratios
// of all rounds, since the speed of a core that is shared changes within milliseconds.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_KERNELBENCH_KERNELBENCH_H
#define SHEAF_COMPILER_KERNELBENCH_KERNELBENCH_H

#include "compiler/driver/Compiler.h"
#include "compiler/measure/Timing.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sheaf::kernelbench {

enum class Part {
  Product,  ///< rows gathered from anywhere by K x N weights; libraries read them in order
  Fused,    ///< with a bias and tanh; libraries gather the rows first
  Cell,     ///< an LSTM cell
  Matrices, ///< products of per-instance matrices
  Rows      ///< elementwise work and norms
};

struct PartInfo {
  Part part;
  std::string_view name; ///< on the command line and in JSON
  std::string_view title;
  std::string_view unit; ///< of what is done a second
  bool ofProducts;       ///< has a peak; else there is a bandwidth to compare with
  bool ofWeights;        ///< its products are of weights: Options::rows and precision apply
  bool ofAnyShape;       ///< of weights of Options::shapes
};
/// All, in order.
const std::vector<PartInfo> &parts();
const PartInfo &infoOf(Part part);

struct Options {
  std::vector<Part> parts;
  std::vector<std::pair<int64_t, int64_t>> shapes; ///< K x N
  std::vector<int64_t> rows = {1, 2, 4, 8, 16, 64, 256, 1024};
  int64_t repetitions = 40;
  std::string targetCpu = "host";
  rt::CacheSizes targetCaches; ///< as in driver::CompileOptions
  driver::Precision precision = driver::Precision::F32;

  /// Whether libraries are compared with: they take f32 and compute as this machine can.
  bool compares() const { return precision == driver::Precision::F32 && targetCpu == "host"; }
};
/// The grid that docs/benchmarks/kernels.md speaks of.
std::vector<std::pair<int64_t, int64_t>> defaultShapes();

/// What one kernel does a second, and what others do.
struct Line {
  Part part;
  std::string what; ///< the expression
  int64_t k = 0;    ///< Product, Fused: rows of the weights; Cell: hidden size
  int64_t n = 0;    ///< Product, Fused: columns; Matrices: of each; Rows: floats of a row
  int64_t rows = 0; ///< or matrices
  double own = 0;   ///< in the part's unit
  double peak = 0;  ///< in the same; 0 where there is none
  /// Those that could do it: each library, or `copy`.
  struct Other {
    std::string name;
    double speed;
    driver::Ratio ratio; ///< the kernel's speed over its
  };
  std::vector<Other> others = {};
  /// How fast the weights were read, over the speed at which a loop of vector loads reads them;
  /// where there are so few rows that this is what bounds a kernel.
  std::optional<double> stream = {};

  /// Whether the summary of the part counts it.
  bool counts = true;

  /// Over the best of the others, which is who makes it least, if there are any.
  std::optional<driver::Ratio> ratio() const;
};

/// Told of what is going on. All may be empty.
struct Listener {
  std::function<void(const PartInfo &)> begin;
  std::function<void(const std::string &)> progress;
  std::function<void(const Line &)> line;
};

/// Runs the parts. Throws InternalError when a kernel computes something else than a library, and
/// UserError for what cannot be made.
std::vector<Line> run(const Options &options, const Listener &listener);

/// Libraries that are compared with, or why one is not, one a line.
std::string librariesText(const Options &options);

std::string headerText(const PartInfo &part);
std::string lineText(const Line &line);
/// Geometric mean and least of the ratios of a part; empty without any.
std::string summaryText(const std::vector<Line> &lines, Part part);
/// docs/schemas/bench-kernels.schema.json
std::string json(const Options &options, const std::vector<Line> &lines);

} // namespace sheaf::kernelbench

#endif // SHEAF_COMPILER_KERNELBENCH_KERNELBENCH_H
