//===- Products.cpp - Rows by weights, against libraries ------------------===//
#include "compiler/kernelbench/Cases.h"
#include "compiler/kernelbench/Loops.h"
#include "compiler/kernelbench/OneKernel.h"
#include "compiler/kernelbench/Race.h"
#include "compiler/vendor/Libraries.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>

namespace sheaf::kernelbench {

namespace {

/// A library's product at its best: weights in the form that it likes most, rows one after the
/// other.
struct Peer {
  std::string name;
  std::unique_ptr<rt::LibraryProduct, void (*)(rt::LibraryProduct *)> product;
  bool fused; ///< adds the bias and takes tanh itself

  void run(int64_t m, const float *a, float *c) const { product->run(product.get(), m, a, c); }
};

/// Of each library that is there and can. They take f32 and compute as this machine can.
std::vector<Peer> makePeers(const Options &options, int64_t k, int64_t n, const float *weights,
                            const float *bias) {
  std::vector<Peer> peers;
  if (!options.compares())
    return peers;
  rt::ProductShape shape{k, n, k, n};
  for (const vendor::LoadedLibrary &library : vendor::loadedLibraries()) {
    if (!library.table)
      continue;
    rt::LibraryProduct *product = nullptr;
    bool fused = bias && library.table->tanhProduct;
    if (fused)
      product = library.table->tanhProduct(&shape, weights, bias);
    else if (library.table->product)
      product = library.table->product(&shape, weights);
    if (product)
      peers.push_back({library.known.name, {product, product->destroy}, fused});
  }
  return peers;
}

} // namespace

void Bench::products(Part part) {
  bool fused = part == Part::Fused;
  for (auto [k, n] : options_.shapes) {
    OneKernel kernel(fused
                         ? "dim k, n\nparam w : f32[k, n] = glorot\nparam b : f32[n] = normal(1)\n"
                           "fn main(x: f32[k]) -> f32[n] = tanh(x @ w + b)\n"
                         : "dim k, n\nparam w : f32[k, n] = glorot\n"
                           "fn main(x: f32[k]) -> f32[n] = x @ w\n",
                     {{"k", k}, {"n", n}}, options_);
    std::vector<float> weights = kernel.param(0);
    // On the pages that packed weights have.
    rt::AlignedBytes streamed = rt::allocateAligned(weights.size() * sizeof(float));
    std::memcpy(streamed.get(), weights.data(), weights.size() * sizeof(float));
    std::vector<float> bias;
    if (fused)
      bias = kernel.param(1);
    std::vector<Peer> peers =
        makePeers(options_, k, n, weights.data(), fused ? bias.data() : nullptr);
    driver::PeakProbe probe(kernel.model().target(), kernel.model().precision());
    for (int64_t m : options_.rows) {
      Line line{part, fused ? "tanh(x @ w + b)" : "x @ w", k, n, m};
      say(fmt::format("{}, {} x {}, {} rows", line.what, k, n, m));
      const int64_t args[] = {rt::rowGranules(k, rt::DType::F32)};
      kernel.prepare(m, args, rt::rowGranules(n, rt::DType::F32));
      std::vector<float> a(static_cast<size_t>(m * k)), c(static_cast<size_t>(m * n));
      auto gather = [&] {
        for (int64_t i = 0; i < m; ++i)
          std::memcpy(a.data() + i * k, kernel.row(i, 0), static_cast<size_t>(k) * 4);
      };
      gather();

      Race race(options_.repetitions);
      size_t own = race.add([&] { kernel.run(); });
      std::vector<size_t> entries;
      for (const Peer &peer : peers) {
        if (peer.product->choose)
          peer.product->choose(peer.product.get(), m, a.data(), c.data());
        entries.push_back(race.add([&, &peer = peer] {
          if (fused)
            gather();
          peer.run(m, a.data(), c.data());
          if (fused && !peer.fused)
            biasTanh(m, n, bias.data(), c.data());
        }));
        for (int64_t row : {int64_t(0), m / 2, m - 1})
          for (int64_t column : {int64_t(0), n / 2, n - 1})
            checkClose(kernel.row(row, 1)[column], c[static_cast<size_t>(row * n + column)], 1,
                       fmt::format("{} and {}, {} x {}, row {} of {}", line.what, peer.name, k, n,
                                   row, m));
      }
      // The weights as one stream of bytes: what a single row is bound by.
      volatile float sink = 0;
      size_t stream = m <= 2 ? race.add([&] {
        sink = readAll(reinterpret_cast<const float *>(streamed.get()), k * n);
      })
                             : own;
      race.run(&probe);
      double flop = 2.0 * static_cast<double>(m * k * n) * 1e-9;
      line.peak = race.peak(probe, own, flop);
      line.own = flop / race.best(own);
      for (size_t i = 0; i < peers.size(); ++i)
        line.others.push_back(
            {peers[i].name, flop / race.best(entries[i]), race.ratio(entries[i], own)});
      if (stream != own)
        line.stream = race.ratio(stream, own).median;
      add(std::move(line));
    }
  }
}

/// Nobody else computes a whole cell at once.
void Bench::cells() {
  for (int64_t h : {256, 512}) {
    OneKernel kernel("dim h\nparam w : f32[h, 4 * h] = glorot\nparam u : f32[h, 4 * h] = glorot\n"
                     "param b : f32[4 * h] = normal(1)\n"
                     "fn main(x: f32[h], s: f32[h], c: f32[h]) -> (f32[h], f32[h]) = {\n"
                     "  let (i, f, o, u2) = split(x @ w + s @ u + b, 4)\n"
                     "  let c2 = sigmoid(f) * c + sigmoid(i) * tanh(u2)\n"
                     "  (sigmoid(o) * tanh(c2), c2)\n}\n",
                     {{"h", h}}, options_);
    driver::PeakProbe probe(kernel.model().target(), kernel.model().precision());
    int64_t granules = rt::rowGranules(h, rt::DType::F32);
    for (int64_t m : options_.rows) {
      Line line{Part::Cell, "lstm cell", h, 4 * h, m};
      say(fmt::format("{}, hidden {}, {} rows", line.what, h, m));
      const int64_t args[] = {granules, granules, granules};
      kernel.prepare(m, args, 2 * granules);
      Race race(options_.repetitions);
      size_t own = race.add([&] { kernel.run(); });
      race.run(&probe);
      double flop = 2.0 * static_cast<double>(m * 2 * h * 4 * h) * 1e-9;
      line.peak = race.peak(probe, own, flop);
      line.own = flop / race.best(own);
      add(std::move(line));
    }
  }
}

} // namespace sheaf::kernelbench
