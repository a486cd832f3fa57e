//===- kernel_bench.cpp - Generated kernels against vendors' libraries ----===//
//
// kernel_bench [--quick] [--shape K N] [product] [fused] [matrices] [rows]: single kernels, one
// thread, as the compiler makes them for one-line models, against the libraries of peers.h, the
// core's peak and the memory that holds the weights. All candidates of a line take turns, the best
// time of each counts. Fails when a kernel computes something else than the libraries.
//
//   product   rows gathered from anywhere through K x N weights; libraries read them in order
//   fused     with a bias and tanh; libraries gather the rows first
//   matrices  products of per-instance matrices
//   rows      elementwise work and norms against the bandwidth of memory
//
//===----------------------------------------------------------------------===//
#include "bench/kernels/peers.h"

#include "compiler/driver/Compiler.h"
#include "compiler/driver/Peak.h"
#include "compiler/driver/Timing.h"
#include "runtime/memory.h"
#include "runtime/session.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <unistd.h>

using namespace sheaf;
using bench::Peer;
using driver::seconds;

namespace {

int rounds = 40;
bool wrong = false;

[[noreturn]] void fail(const std::string &message) {
  std::fprintf(stderr, "kernel_bench: %s\n", message.c_str());
  std::exit(1);
}

/// Times candidates in turns; each turn lasts about half a millisecond.
class Race {
public:
  size_t add(std::function<void()> run) {
    run();
    double start = seconds();
    run();
    double once = std::max(seconds() - start, 1e-8);
    candidates_.push_back({std::move(run), std::max(1, static_cast<int>(0.5e-3 / once)), 1e9});
    return candidates_.size() - 1;
  }
  void run() {
    for (int i = 0; i < rounds; ++i)
      for (Candidate &candidate : candidates_) {
        double start = seconds();
        for (int j = 0; j < candidate.times; ++j)
          candidate.run();
        candidate.best = std::min(candidate.best, (seconds() - start) / candidate.times);
      }
  }
  /// Seconds.
  double best(size_t i) const { return candidates_[i].best; }

private:
  struct Candidate {
    std::function<void()> run;
    int times;
    double best;
  };
  std::vector<Candidate> candidates_;
};

/// The one kernel of a model whose arguments and result are tensors of known extents, with records
/// of its own: argument rows of records are shuffled.
class OneKernel {
public:
  OneKernel(const std::string &text, const std::map<std::string, int64_t> &dims)
      : source_("kernel.sheaf", text), diags_(source_) {
    driver::CompileOptions options;
    options.dims = dims;
    options.without.insert("identical-records");
    model_ = driver::compile(source_, options, diags_);
    if (!model_)
      fail("the model does not compile: " + diags_.render());
    if (model_->model().kernels.size() != 1)
      fail("the model is expected to have one kernel");
    session_ = std::make_unique<rt::Session>(model_->model());
    session_->initParams(1);
    session_->packWeights();
  }

  const rt::KernelDesc &kernel() const { return model_->model().kernels[0]; }
  const driver::CompiledModel &model() const { return *model_; }

  std::vector<float> param(size_t index) const {
    rt::TensorView view = session_->param(index);
    std::vector<float> values;
    int64_t inner = view.shape.back(), outer = 1;
    for (size_t i = 0; i + 1 < view.shape.size(); ++i)
      outer *= view.shape[i];
    int64_t stride = rt::rowGranules(inner, rt::DType::F32) * rt::kGranuleBytes;
    for (int64_t row = 0; row < outer; ++row) {
      auto *from = reinterpret_cast<const float *>(view.data + row * stride);
      values.insert(values.end(), from, from + inner);
    }
    return values;
  }

  /// Rows for `records` records: granules of one argument, of one result.
  void prepare(int64_t records, std::span<const int64_t> argGranules, int64_t resultGranules) {
    records_ = records;
    int64_t each = std::accumulate(argGranules.begin(), argGranules.end(), resultGranules);
    rows_ = rt::allocateAligned(static_cast<size_t>(records * each) * rt::kGranuleBytes);
    scratch_ = rt::allocateAligned(kernel().scratchBytes + 64);
    words_.assign(static_cast<size_t>(records) * kernel().words, 0);
    std::mt19937 random(7);
    int64_t base = 0;
    for (size_t arg = 0; arg <= argGranules.size(); ++arg) {
      bool result = arg == argGranules.size();
      int64_t granules = result ? resultGranules : argGranules[arg];
      std::vector<int32_t> order(static_cast<size_t>(records));
      std::iota(order.begin(), order.end(), 0);
      if (!result)
        std::shuffle(order.begin(), order.end(), random);
      for (int64_t i = 0; i < records; ++i)
        words_[static_cast<size_t>(i) * kernel().words + arg] =
            static_cast<int32_t>(base + order[static_cast<size_t>(i)] * granules);
      base += records * granules;
    }
    std::normal_distribution<float> normal;
    auto *data = reinterpret_cast<float *>(rows_.get());
    for (int64_t i = 0; i < records * each * rt::kGranuleBytes / 4; ++i)
      data[i] = normal(random);
  }

  float *row(int64_t record, size_t word) {
    return reinterpret_cast<float *>(
        rows_.get() +
        int64_t(words_[static_cast<size_t>(record) * kernel().words + word]) * rt::kGranuleBytes);
  }

  void run() {
    kernel().fn(words_.data(), 0, records_, 0, kernel().panels, rows_.get(),
                session_->kernelWeights(0).data(), scratch_.get());
  }

private:
  SourceFile source_;
  Diagnostics diags_;
  std::unique_ptr<driver::CompiledModel> model_;
  std::unique_ptr<rt::Session> session_;
  int64_t records_ = 0;
  rt::AlignedBytes rows_, scratch_;
  std::vector<int32_t> words_;
};

/// Geometric means and the least of ratios.
struct Summary {
  std::vector<double> ratios;
  void print(const char *what) const {
    if (ratios.empty())
      return;
    double logs = 0;
    for (double ratio : ratios)
      logs += std::log(ratio);
    std::printf("%s: geometric mean %.2f, least %.2f, of %zu\n\n", what,
                std::exp(logs / static_cast<double>(ratios.size())),
                *std::min_element(ratios.begin(), ratios.end()), ratios.size());
  }
};

void check(float got, float expected, double scale, const std::string &where) {
  if (!(std::fabs(got - expected) <= 1e-4 * std::max(1.0, scale))) {
    std::fprintf(stderr, "kernel_bench: %s: %g instead of %g\n", where.c_str(),
                 static_cast<double>(got), static_cast<double>(expected));
    wrong = true;
  }
}

double probePeak(driver::PeakProbe &probe) {
  double peak = 0;
  for (int i = 0; i < 5; ++i)
    peak = std::max(peak, probe.measure());
  return peak;
}

std::vector<std::pair<int64_t, int64_t>> grid = {
    {64, 64},  {64, 256},  {64, 512},  {256, 64},   {256, 256},  {256, 512},
    {512, 64}, {512, 256}, {512, 512}, {256, 1024}, {512, 2048}, {1024, 2560}};

/// One row of numbers a product: GFLOP/s here and of every library.
void products(bool fused, const std::vector<int64_t> &counts) {
  std::printf("%s: GFLOP/s, one thread\n",
              fused ? "tanh(x @ w + b), rows gathered" : "x @ w, rows gathered");
  std::printf("%5s %5s %5s %8s %6s", "K", "N", "M", "sheaf", "peak");
  bool header = true;
  Summary all;
  for (auto [k, n] : grid) {
    OneKernel kernel(fused
                         ? "dim k, n\nparam w : f32[k, n] = glorot\nparam b : f32[n] = normal(1)\n"
                           "fn main(x: f32[k]) -> f32[n] = tanh(x @ w + b)\n"
                         : "dim k, n\nparam w : f32[k, n] = glorot\n"
                           "fn main(x: f32[k]) -> f32[n] = x @ w\n",
                     {{"k", k}, {"n", n}});
    std::vector<float> weights = kernel.param(0);
    std::vector<float> bias =
        fused ? kernel.param(1) : std::vector<float>(static_cast<size_t>(n), 0.0f);
    std::vector<std::unique_ptr<Peer>> peers = bench::makePeers(k, n, weights.data(), bias.data());
    if (header) {
      for (const auto &peer : peers)
        std::printf(" %9s", peer->name());
      std::printf(" %7s %9s\n", "ratio", "bandwidth");
      header = false;
    }
    driver::PeakProbe probe(kernel.model().target(), kernel.model().precision());
    for (int64_t m : counts) {
      const int64_t args[] = {rt::rowGranules(k, rt::DType::F32)};
      kernel.prepare(m, args, rt::rowGranules(n, rt::DType::F32));
      std::vector<float> a(static_cast<size_t>(m * k)), c(static_cast<size_t>(m * n));
      auto gather = [&] {
        for (int64_t i = 0; i < m; ++i)
          std::memcpy(a.data() + i * k, kernel.row(i, 0), static_cast<size_t>(k) * 4);
      };
      gather();

      Race race;
      size_t own = race.add([&] { kernel.run(); });
      std::vector<size_t> entries;
      for (const auto &peer : peers) {
        bool one = fused && peer->prepareFused(m, a.data(), c.data());
        if (!one)
          peer->prepare(m, a.data(), c.data());
        Peer *p = peer.get();
        if (!fused)
          entries.push_back(race.add([&a, &c, p] { p->product(a.data(), c.data()); }));
        else
          entries.push_back(race.add([&, p, one] {
            gather();
            if (one)
              return p->fused(a.data(), c.data());
            p->product(a.data(), c.data());
            bench::biasTanh(m, n, bias.data(), c.data());
          }));
        // The last peer's results are compared: all are held to it by this same loop.
        for (int64_t row : {int64_t(0), m / 2, m - 1})
          for (int64_t column : {int64_t(0), n / 2, n - 1})
            check(kernel.row(row, 1)[column], c[static_cast<size_t>(row * n + column)], 1,
                  std::string(p->name()) + " " + std::to_string(k) + "x" + std::to_string(n) +
                      ", row " + std::to_string(row) + " of " + std::to_string(m));
      }
      // The weights as one stream of bytes: what a single row is bound by.
      float sink = 0;
      size_t stream =
          m <= 2 ? race.add([&] { sink += bench::readAll(weights.data(), k * n); }) : own;
      double peak = probePeak(probe);
      race.run();
      peak = std::max(peak, probePeak(probe));
      double flop = 2.0 * static_cast<double>(m * k * n);
      double ours = race.best(own), theirs = 1e9;
      std::printf("%5lld %5lld %5lld %8.1f %5.0f%%", static_cast<long long>(k),
                  static_cast<long long>(n), static_cast<long long>(m), flop / ours * 1e-9,
                  100 * flop / ours * 1e-9 / peak);
      for (size_t entry : entries) {
        std::printf(" %9.1f", flop / race.best(entry) * 1e-9);
        theirs = std::min(theirs, race.best(entry));
      }
      if (!entries.empty()) {
        all.ratios.push_back(theirs / ours);
        std::printf(" %7.2f", theirs / ours);
      }
      if (stream != own)
        std::printf(" %8.0f%%", 100 * race.best(stream) / ours);
      std::printf("\n");
      std::fflush(stdout);
      if (sink == 12345.678f)
        std::printf(" ");
    }
  }
  all.print("over the best library");
}

void matrices() {
  std::printf("a @ b of per-instance matrices, 64 instances: GFLOP/s, one thread\n");
  std::printf("%5s %8s %6s %9s %7s\n", "n", "sheaf", "peak", "libxsmm", "ratio");
  Summary all;
  for (int64_t n : {16, 24, 32, 48, 64, 96, 128}) {
    const int64_t count = 64;
    OneKernel kernel("dim n\nfn main(a: f32[n, n], b: f32[n, n]) -> f32[n, n] = a @ b\n",
                     {{"n", n}});
    int64_t granules = n * rt::rowGranules(n, rt::DType::F32);
    int64_t stride = rt::rowGranules(n, rt::DType::F32) * rt::kGranuleBytes / 4;
    const int64_t args[] = {granules, granules};
    kernel.prepare(count, args, granules);
    std::unique_ptr<bench::SmallProduct> peer = bench::makeSmallProduct(n);
    auto size = static_cast<size_t>(n * n);
    std::vector<float> a(size * count), b(size * count), c(size * count);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t row = 0; row < n; ++row) {
        auto at = static_cast<size_t>((i * n + row) * n);
        std::memcpy(&a[at], kernel.row(i, 0) + row * stride, static_cast<size_t>(n) * 4);
        std::memcpy(&b[at], kernel.row(i, 1) + row * stride, static_cast<size_t>(n) * 4);
      }
    Race race;
    size_t own = race.add([&] { kernel.run(); });
    size_t other = own;
    if (peer) {
      other = race.add([&] {
        for (size_t i = 0; i < count; ++i)
          peer->product(&a[i * size], &b[i * size], &c[i * size]);
      });
      for (int64_t i = 0; i < count; i += 21)
        for (int64_t row = 0; row < n; row += 5)
          check(kernel.row(i, 2)[row * stride + n - 1],
                c[static_cast<size_t>((i * n + row) * n + n - 1)], static_cast<double>(n),
                "matrices of " + std::to_string(n));
    }
    driver::PeakProbe probe(kernel.model().target(), kernel.model().precision());
    double peak = probePeak(probe);
    race.run();
    peak = std::max(peak, probePeak(probe));
    double flop = 2.0 * static_cast<double>(count * n * n * n);
    std::printf("%5lld %8.1f %5.0f%%", static_cast<long long>(n), flop / race.best(own) * 1e-9,
                100 * flop / race.best(own) * 1e-9 / peak);
    if (peer) {
      all.ratios.push_back(race.best(other) / race.best(own));
      std::printf(" %9.1f %7.2f", flop / race.best(other) * 1e-9, all.ratios.back());
    }
    std::printf("\n");
  }
  all.print("over libxsmm");
}

/// Blocks without products: bytes read and written a second against those of a copy.
void rowWork() {
  struct Case {
    const char *what, *text;
    size_t arguments;
  };
  const Case cases[] = {
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
  std::printf("blocks without products: GB/s read and written, one thread\n");
  std::printf("%8s %5s %-14s %8s %8s %7s\n", "rows", "n", "", "sheaf", "copy", "ratio");
  Summary all;
  for (int64_t kilobytes : {512, 65536})
    for (const Case &what : cases) {
      const int64_t n = 1024;
      OneKernel kernel("dim n\n" + std::string(what.text), {{"n", n}});
      int64_t granules = rt::rowGranules(n, rt::DType::F32);
      int64_t count = (kilobytes << 10) / (n * 4 * static_cast<int64_t>(what.arguments + 1));
      std::vector<int64_t> args(what.arguments, granules);
      kernel.prepare(count, args, granules);
      // The same rows in the same order, read and written but not computed with.
      auto copy = [&] {
        for (int64_t i = 0; i < count; ++i) {
          const float *x = kernel.row(i, 0), *y = kernel.row(i, what.arguments - 1);
          float *out = kernel.row(i, what.arguments);
          bench::copySum(x, what.arguments == 2 ? y : nullptr, out, n);
        }
      };
      Race race;
      size_t other = race.add(copy);
      size_t own = race.add([&] { kernel.run(); });
      race.run();
      double bytes = static_cast<double>(count * n * 4) * static_cast<double>(what.arguments + 1);
      if (kilobytes > 1024)
        all.ratios.push_back(race.best(other) / race.best(own));
      std::printf("%5lld KB %5lld %-14s %8.1f %8.1f %7.2f\n", static_cast<long long>(kilobytes),
                  static_cast<long long>(n), what.what, bytes / race.best(own) * 1e-9,
                  bytes / race.best(other) * 1e-9, race.best(other) / race.best(own));
      std::fflush(stdout);
    }
  all.print("over a copy, rows in memory");
}

/// Libraries look at these when they are loaded, before main: one thread, and a core that an older
/// OpenBLAS may not know by its number is the newest one that it does.
void restartForLibraries(char **argv) {
  bool again = false;
  auto set = [&](const char *name, const char *value) {
    if (!std::getenv(name)) {
      setenv(name, value, 0);
      again = true;
    }
  };
  set("OMP_NUM_THREADS", "1");
  set("OPENBLAS_NUM_THREADS", "1");
  if (__builtin_cpu_supports("avx512vl"))
    set("OPENBLAS_CORETYPE", "SKYLAKEX");
  if (again)
    execv("/proc/self/exe", argv);
}

} // namespace

int main(int argc, char **argv) {
  restartForLibraries(argv);
  std::set<std::string> parts;
  std::vector<int64_t> counts = {1, 2, 4, 8, 16, 64, 256, 1024};
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--quick") {
      rounds = 8;
      counts = {1, 4, 64};
    } else if (argument == "--shape" && i + 2 < argc) {
      grid = {{std::atoll(argv[i + 1]), std::atoll(argv[i + 2])}};
      i += 2;
    } else if (argument == "product" || argument == "fused" || argument == "matrices" ||
               argument == "rows") {
      parts.insert(argument);
    } else {
      std::fprintf(stderr,
                   "usage: kernel_bench [--quick] [--shape K N] [product] [fused] [matrices] "
                   "[rows]\n");
      return 1;
    }
  }
  auto wanted = [&](const char *part) { return parts.empty() || parts.contains(part); };
  // A core of its own, as far as that can be had.
  driver::Pin pin;
  if (wanted("product"))
    products(false, counts);
  if (wanted("fused"))
    products(true, counts);
  if (wanted("matrices"))
    matrices();
  if (wanted("rows"))
    rowWork();
  return wrong;
}
