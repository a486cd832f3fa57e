//===- Cases.cpp - The parts, and blocks without products -----------------===//
#include "compiler/kernelbench/Cases.h"

#include "compiler/kernelbench/Loops.h"
#include "compiler/kernelbench/OneKernel.h"
#include "compiler/kernelbench/Race.h"
#include "compiler/measure/Timing.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf::kernelbench {

const std::vector<PartInfo> &parts() {
  static const std::vector<PartInfo> all = {
      {Part::Product, "product", "x @ w, rows gathered", "GFLOP/s", true, true, true},
      {Part::Fused, "fused", "tanh(x @ w + b), rows gathered", "GFLOP/s", true, true, true},
      {Part::Cell, "cell", "an LSTM cell, x @ w + s @ u + b of hidden size K", "GFLOP/s", true,
       true, false},
      {Part::Matrices, "matrices", "a @ b of per-instance matrices, 64 instances", "GFLOP/s", true,
       false, false},
      {Part::Rows, "rows", "blocks without products: read and written", "GB/s", false, false,
       false}};
  return all;
}

const PartInfo &infoOf(Part part) {
  return *std::find_if(parts().begin(), parts().end(),
                       [&](const PartInfo &info) { return info.part == part; });
}

std::vector<std::pair<int64_t, int64_t>> defaultShapes() {
  return {{64, 64},  {64, 256},  {64, 512},  {256, 64},   {256, 256},  {256, 512},
          {512, 64}, {512, 256}, {512, 512}, {256, 1024}, {512, 2048}, {1024, 2560}};
}

std::optional<driver::Ratio> Line::ratio() const {
  if (others.empty())
    return std::nullopt;
  return std::ranges::min(others, {}, [](const Other &other) { return other.ratio.median; }).ratio;
}

void Bench::rows() {
  struct Case {
    const char *what, *text;
    size_t arguments;
  };
  static const Case cases[] = {
      {"x + y", "fn main(x: f32[n], y: f32[n]) -> f32[n] = x + y\n", 2},
      {"x * y + 1", "fn main(x: f32[n], y: f32[n]) -> f32[n] = x * y + 1\n", 2},
      {"relu(x + y)", "fn main(x: f32[n], y: f32[n]) -> f32[n] = relu(x + y)\n", 2},
      {"tanh(x)", "fn main(x: f32[n]) -> f32[n] = tanh(x)\n", 1},
      {"gelu(x)", "fn main(x: f32[n]) -> f32[n] = gelu(x)\n", 1},
      {"softmax(x)", "fn main(x: f32[n]) -> f32[n] = softmax(x)\n", 1},
      {"layer_norm(x)",
       "param g : f32[n] = ones\nparam b : f32[n] = zeros\n"
       "fn main(x: f32[n]) -> f32[n] = layer_norm(x, g, b)\n",
       1},
      {"rms_norm(x)", "param g : f32[n] = ones\nfn main(x: f32[n]) -> f32[n] = rms_norm(x, g)\n",
       1},
  };
  constexpr int64_t n = 1024;
  // In the second-level cache, and in memory.
  for (int64_t kilobytes : {512, 65536})
    for (const Case &what : cases) {
      int64_t count = (kilobytes << 10) / (n * 4 * static_cast<int64_t>(what.arguments + 1));
      Line line{Part::Rows, what.what, 0, n, count};
      line.counts = kilobytes > 1024; // what is near is bound by arithmetic
      say(fmt::format("{}, {} rows of {}", line.what, count, n));
      OneKernel kernel("dim n\n" + std::string(what.text), {{"n", n}}, options_);
      int64_t granules = rt::rowGranules(n, rt::DType::F32);
      std::vector<int64_t> args(what.arguments, granules);
      kernel.prepare(count, args, granules);
      Race race(options_.repetitions);
      // The same rows in the same order, read and written but not computed with.
      size_t copy = race.add([&] {
        for (int64_t i = 0; i < count; ++i) {
          const float *x = kernel.row(i, 0), *y = kernel.row(i, what.arguments - 1);
          copySum(x, what.arguments == 2 ? y : nullptr, kernel.row(i, what.arguments), n);
        }
      });
      size_t own = race.add([&] { kernel.run(); });
      race.run();
      double bytes = static_cast<double>(count * n * 4) * static_cast<double>(what.arguments + 1);
      line.own = bytes * 1e-9 / race.best(own);
      line.others.push_back({"copy", bytes * 1e-9 / race.best(copy), race.ratio(copy, own)});
      add(std::move(line));
    }
}

void Bench::run(Part part) {
  switch (part) {
  case Part::Product:
  case Part::Fused:
    return products(part);
  case Part::Cell:
    return cells();
  case Part::Matrices:
    return matrices();
  case Part::Rows:
    return rows();
  }
}

std::vector<Line> run(const Options &options, const Listener &listener) {
  // A core of its own, as far as that can be had.
  driver::Pin pin;
  Bench bench(options, listener);
  for (Part part : options.parts) {
    if (listener.begin)
      listener.begin(infoOf(part));
    bench.run(part);
  }
  return std::move(bench.lines);
}

} // namespace sheaf::kernelbench
