#include "bench/kernels/peers.h"

#include <algorithm>
#include <chrono>
#include <functional>

#ifdef SHEAF_HAVE_OPENBLAS
#include <cblas.h>
#endif
#ifdef SHEAF_HAVE_ONEDNN
#include <dnnl.hpp>
#endif
#ifdef SHEAF_HAVE_LIBXSMM
#include <libxsmm.h>
#endif

// The loops below are to run as wide as the machine is, whatever the program is compiled for.
#define SHEAF_WIDE [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]

namespace sheaf::bench {

namespace {

[[maybe_unused]] double secondsOf(const std::function<void()> &run) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    auto start = std::chrono::steady_clock::now();
    run();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

#ifdef SHEAF_HAVE_OPENBLAS
class OpenBlas : public Peer {
public:
  OpenBlas(int64_t k, int64_t n, const float *w)
      : k_(static_cast<int>(k)), n_(static_cast<int>(n)), w_(w) {
    openblas_set_num_threads(1);
  }
  const char *name() const override { return "OpenBLAS"; }
  void prepare(int64_t m, const float *, float *) override { m_ = static_cast<int>(m); }
  void product(const float *a, float *c) override {
    if (m_ == 1)
      cblas_sgemv(CblasRowMajor, CblasTrans, k_, n_, 1, w_, n_, a, 1, 0, c, 1);
    else
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m_, n_, k_, 1, a, k_, w_, n_, 0, c,
                  n_);
  }

private:
  int m_ = 0, k_, n_;
  const float *w_;
};
#endif

#ifdef SHEAF_HAVE_ONEDNN
class OneDnn : public Peer {
public:
  OneDnn(int64_t k, int64_t n, const float *w, const float *bias)
      : k_(k), n_(n), w_(w), bias_(bias), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}
  const char *name() const override { return "oneDNN"; }
  void prepare(int64_t m, const float *a, float *c) override { make(m, a, c, false); }
  void product(const float *, float *) override { matmul_.execute(stream_, arguments_); }
  bool prepareFused(int64_t m, const float *a, float *c) override {
    make(m, a, c, true);
    return true;
  }
  void fused(const float *, float *) override { matmul_.execute(stream_, arguments_); }

private:
  using Memory = dnnl::memory;

  void make(int64_t m, const float *a, float *c, bool fused) {
    auto f32 = Memory::data_type::f32;
    Memory::desc rows({m, k_}, f32, Memory::format_tag::ab);
    Memory::desc out({m, n_}, f32, Memory::format_tag::ab);
    Memory::desc any({k_, n_}, f32, Memory::format_tag::any);
    Memory::desc plain({k_, n_}, f32, Memory::format_tag::ab);
    Memory::desc bias({1, n_}, f32, Memory::format_tag::ab);
    dnnl::primitive_attr attributes;
    if (fused) {
      dnnl::post_ops tanh;
      tanh.append_eltwise(1, dnnl::algorithm::eltwise_tanh, 0, 0);
      attributes.set_post_ops(tanh);
    }
    auto description =
        fused ? dnnl::matmul::desc(rows, any, bias, out) : dnnl::matmul::desc(rows, any, out);
    dnnl::matmul::primitive_desc chosen(description, attributes, engine_);
    Memory weights(plain, engine_, const_cast<float *>(w_));
    packed_ = Memory(chosen.weights_desc(), engine_);
    dnnl::reorder(weights, packed_).execute(stream_, weights, packed_);
    stream_.wait();
    arguments_ = {{DNNL_ARG_SRC, Memory(rows, engine_, const_cast<float *>(a))},
                  {DNNL_ARG_WEIGHTS, packed_},
                  {DNNL_ARG_DST, Memory(out, engine_, c)}};
    if (fused)
      arguments_.insert({DNNL_ARG_BIAS, Memory(bias, engine_, const_cast<float *>(bias_))});
    matmul_ = dnnl::matmul(chosen);
  }

  int64_t k_, n_;
  const float *w_, *bias_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  Memory packed_;
  dnnl::matmul matmul_;
  std::unordered_map<int, Memory> arguments_;
};
#endif

#ifdef SHEAF_HAVE_LIBXSMM
/// Its kernels are for small matrices: larger ones are cut into blocks of columns and rows, with
/// the weights of a block of columns one after the other.
class Libxsmm : public Peer {
public:
  Libxsmm(int64_t k, int64_t n, const float *w) : k_(k), n_(n), w_(w) {
    packed_.resize(static_cast<size_t>(k * n));
  }
  const char *name() const override { return "libxsmm"; }
  void prepare(int64_t m, const float *a, float *c) override {
    m_ = m;
    double best = 1e9;
    int64_t bestColumns = 0, bestRows = 0;
    for (int64_t columns : {16, 32, 48, 64, 128})
      for (int64_t rows : {m, int64_t(5), int64_t(8), int64_t(16), int64_t(64)}) {
        if (columns > n_ || rows > m || !make(columns, rows))
          continue;
        if (double took = secondsOf([&] { product(a, c); }); took < best) {
          best = took;
          bestColumns = columns;
          bestRows = rows;
        }
      }
    make(bestColumns, bestRows);
  }
  void product(const float *a, float *c) override {
    for (int64_t row = 0; row < m_; row += rows_)
      for (int64_t column = 0; column < n_; column += columns_) {
        bool lastRows = row + rows_ > m_, lastColumns = column + columns_ > n_;
        kernels_[lastColumns][lastRows](packed_.data() + column * k_, a + row * k_,
                                        c + row * n_ + column);
      }
  }

private:
  bool make(int64_t columns, int64_t rows) {
    columns_ = columns;
    rows_ = rows;
    for (int64_t column = 0; column < n_; column += columns) {
      int64_t width = std::min(columns, n_ - column);
      for (int64_t k = 0; k < k_; ++k)
        std::copy_n(w_ + k * n_ + column, width, packed_.data() + column * k_ + k * width);
    }
    for (int lastColumns : {0, 1})
      for (int lastRows : {0, 1}) {
        // libxsmm counts columns first: there A is the weights and B the rows.
        auto m = static_cast<libxsmm_blasint>(lastColumns ? n_ % columns : columns);
        auto n = static_cast<libxsmm_blasint>(lastRows ? m_ % rows : rows);
        auto k = static_cast<libxsmm_blasint>(k_), ldc = static_cast<libxsmm_blasint>(n_);
        if (m == 0 || n == 0)
          continue;
        float one = 1, zero = 0;
        kernels_[lastColumns][lastRows] =
            libxsmm_smmdispatch(m, n, k, &m, &k, &ldc, &one, &zero, nullptr, nullptr);
        if (!kernels_[lastColumns][lastRows])
          return false;
      }
    return true;
  }

  int64_t m_ = 0, k_, n_, columns_ = 0, rows_ = 0;
  const float *w_;
  std::vector<float> packed_;
  libxsmm_smmfunction kernels_[2][2] = {};
};

class SmallLibxsmm : public SmallProduct {
public:
  explicit SmallLibxsmm(int64_t n) {
    auto size = static_cast<libxsmm_blasint>(n);
    float one = 1, zero = 0;
    kernel_ =
        libxsmm_smmdispatch(size, size, size, &size, &size, &size, &one, &zero, nullptr, nullptr);
  }
  bool there() const { return kernel_; }
  void product(const float *a, const float *b, float *c) override { kernel_(b, a, c); }

private:
  libxsmm_smmfunction kernel_;
};
#endif

} // namespace

std::vector<std::unique_ptr<Peer>> makePeers([[maybe_unused]] int64_t k, [[maybe_unused]] int64_t n,
                                             [[maybe_unused]] const float *weights,
                                             [[maybe_unused]] const float *bias) {
  std::vector<std::unique_ptr<Peer>> peers;
#ifdef SHEAF_HAVE_OPENBLAS
  peers.push_back(std::make_unique<OpenBlas>(k, n, weights));
#endif
#ifdef SHEAF_HAVE_ONEDNN
  peers.push_back(std::make_unique<OneDnn>(k, n, weights, bias));
#endif
#ifdef SHEAF_HAVE_LIBXSMM
  peers.push_back(std::make_unique<Libxsmm>(k, n, weights));
#endif
  return peers;
}

std::unique_ptr<SmallProduct> makeSmallProduct([[maybe_unused]] int64_t n) {
#ifdef SHEAF_HAVE_LIBXSMM
  auto product = std::make_unique<SmallLibxsmm>(n);
  if (product->there())
    return product;
#endif
  return nullptr;
}

// The rational approximation of Eigen and MLIR.
SHEAF_WIDE void biasTanh(int64_t m, int64_t n, const float *bias, float *c) {
  for (int64_t row = 0; row < m; ++row)
    for (int64_t i = 0; i < n; ++i) {
      float x = c[row * n + i] + bias[i];
      x = std::min(std::max(x, -7.90531110763549805f), 7.90531110763549805f);
      float x2 = x * x;
      float p = -2.76076847742355e-16f;
      p = p * x2 + 2.00018790482477e-13f;
      p = p * x2 + -8.60467152213735e-11f;
      p = p * x2 + 5.12229709037114e-08f;
      p = p * x2 + 1.48572235717979e-05f;
      p = p * x2 + 6.37261928875436e-04f;
      p = p * x2 + 4.89352455891786e-03f;
      float q = 1.19825839466702e-06f;
      q = q * x2 + 1.18534705686654e-04f;
      q = q * x2 + 2.26843463243900e-03f;
      q = q * x2 + 4.89352518554385e-03f;
      c[row * n + i] = x * p / q;
    }
}

SHEAF_WIDE void copySum(const float *x, const float *y, float *out, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = y ? x[i] + y[i] : x[i];
}

SHEAF_WIDE float readAll(const float *data, int64_t count) {
  using Vector [[gnu::vector_size(64), gnu::aligned(4)]] = float;
  Vector sums[8] = {};
  for (int64_t i = 0; i + 128 <= count; i += 128)
#pragma unroll
    for (int64_t j = 0; j < 8; ++j)
      sums[j] += *reinterpret_cast<const Vector *>(data + i + 16 * j);
  Vector sum =
      ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  float total = 0;
  for (int i = 0; i < 16; ++i)
    total += sum[i];
  return total;
}

} // namespace sheaf::bench
