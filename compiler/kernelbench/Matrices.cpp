//===- Matrices.cpp - Products of per-instance matrices -------------------===//
#include "compiler/kernelbench/Cases.h"
#include "compiler/kernelbench/OneKernel.h"
#include "compiler/kernelbench/Race.h"
#include "compiler/vendor/Libraries.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>

namespace sheaf::kernelbench {

void Bench::matrices() {
  constexpr int64_t count = 64;
  for (int64_t n : {16, 24, 32, 48, 64, 96, 128}) {
    Line line{Part::Matrices, "a @ b", n, n, count};
    say(fmt::format("{}, {} x {}", line.what, n, n));
    OneKernel kernel("dim n\nfn main(a: f32[n, n], b: f32[n, n]) -> f32[n, n] = a @ b\n",
                     {{"n", n}}, options_);
    int64_t granules = n * rt::rowGranules(n, rt::DType::F32);
    int64_t stride = rt::rowGranules(n, rt::DType::F32) * rt::kGranuleBytes / 4;
    const int64_t args[] = {granules, granules};
    kernel.prepare(count, args, granules);
    auto size = static_cast<size_t>(n * n);
    std::vector<float> a(size * count), b(size * count), c(size * count);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t row = 0; row < n; ++row) {
        auto at = static_cast<size_t>((i * n + row) * n);
        std::memcpy(&a[at], kernel.row(i, 0) + row * stride, static_cast<size_t>(n) * 4);
        std::memcpy(&b[at], kernel.row(i, 1) + row * stride, static_cast<size_t>(n) * 4);
      }
    Race race(options_.repetitions);
    size_t own = race.add([&] { kernel.run(); });
    using Peer = std::unique_ptr<rt::LibraryMatrices, void (*)(rt::LibraryMatrices *)>;
    std::vector<Peer> peers;
    std::vector<size_t> entries;
    for (const vendor::LoadedLibrary &library : vendor::loadedLibraries()) {
      rt::LibraryMatrices *made = options_.compares() && library.table && library.table->matrices
                                      ? library.table->matrices(n)
                                      : nullptr;
      if (!made)
        continue;
      peers.emplace_back(made, made->destroy);
      line.others.push_back({library.known.name, 0, {}});
      entries.push_back(race.add([&, made] {
        for (size_t i = 0; i < count; ++i)
          made->run(made, &a[i * size], &b[i * size], &c[i * size]);
      }));
      for (int64_t i = 0; i < count; i += 21)
        for (int64_t row = 0; row < n; row += 5)
          checkClose(kernel.row(i, 2)[row * stride + n - 1],
                     c[static_cast<size_t>((i * n + row) * n + n - 1)], static_cast<double>(n),
                     fmt::format("matrices of {} and {}", n, library.known.name));
    }
    driver::PeakProbe probe(kernel.model().target(), kernel.model().precision());
    race.run(&probe);
    double flop = 2.0 * static_cast<double>(count * n * n * n) * 1e-9;
    line.peak = race.peak(probe, own, flop);
    line.own = flop / race.best(own);
    for (size_t i = 0; i < entries.size(); ++i) {
      line.others[i].speed = flop / race.best(entries[i]);
      line.others[i].ratio = race.ratio(entries[i], own);
    }
    add(std::move(line));
  }
}

} // namespace sheaf::kernelbench
