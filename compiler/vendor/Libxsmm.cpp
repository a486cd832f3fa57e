//===- Libxsmm.cpp - Products by libxsmm ----------------------------------===//
//
// Its kernels are for small matrices: larger ones are cut into blocks of columns and rows, with the
// weights of a block of columns one after the other.
//
//===----------------------------------------------------------------------===//
#include "compiler/vendor/Plain.h"
#include "runtime/model/library.h"

#include <libxsmm.h>

#include <chrono>
#include <new>
#include <vector>

namespace sheaf::vendor {
namespace {

/// libxsmm counts columns first: there A is the weights and B the rows. Kernels are made when they
/// are first asked for, and kept by libxsmm.
libxsmm_smmfunction kernelFor(int64_t columns, int64_t rows, int64_t k, int64_t aStride,
                              int64_t cStride) {
  auto m = static_cast<libxsmm_blasint>(columns), n = static_cast<libxsmm_blasint>(rows),
       depth = static_cast<libxsmm_blasint>(k), ldb = static_cast<libxsmm_blasint>(aStride),
       ldc = static_cast<libxsmm_blasint>(cStride);
  float one = 1, zero = 0;
  return libxsmm_smmdispatch(m, n, depth, &m, &ldb, &ldc, &one, &zero, nullptr, nullptr);
}

class Product : public rt::LibraryProduct {
public:
  Product(const rt::ProductShape &shape, const float *weights)
      : shape_(shape), plain_(weights, weights + shape.k * shape.n), packed_(plain_.size()) {
    run = [](const rt::LibraryProduct *self, int64_t m, const float *a, float *c) {
      static_cast<const Product *>(self)->runRows(m, a, c);
    };
    destroy = [](rt::LibraryProduct *self) { delete static_cast<Product *>(self); };
    choose = [](rt::LibraryProduct *self, int64_t m, const float *a, float *c) {
      static_cast<Product *>(self)->chooseBlocks(m, a, c);
    };
    pack(64);
  }

private:
  void pack(int64_t columns) {
    columns_ = std::min(columns, shape_.n);
    for (int64_t column = 0; column < shape_.n; column += columns_) {
      int64_t width = std::min(columns_, shape_.n - column);
      for (int64_t k = 0; k < shape_.k; ++k)
        std::copy_n(plain_.data() + k * shape_.n + column, width,
                    packed_.data() + column * shape_.k + k * width);
    }
  }

  void runRows(int64_t m, const float *a, float *c) const {
    // Blocks that are not whole stand at the right and at the end.
    for (int64_t column = 0; column < shape_.n; column += columns_) {
      int64_t width = std::min(columns_, shape_.n - column), made = 0;
      libxsmm_smmfunction kernel = nullptr;
      for (int64_t row = 0; row < m; row += rows_) {
        int64_t rows = std::min(rows_, m - row);
        if (rows != made) {
          kernel = kernelFor(width, rows, shape_.k, shape_.aStride, shape_.cStride);
          made = rows;
        }
        if (!kernel)
          return plainProduct(shape_, m, a, plain_.data(), c);
        kernel(packed_.data() + column * shape_.k, a + row * shape_.aStride,
               c + row * shape_.cStride + column);
      }
    }
  }

  void chooseBlocks(int64_t m, const float *a, float *c) {
    double best = 1e9;
    int64_t bestColumns = 64, bestRows = 64;
    for (int64_t columns : {16, 32, 48, 64, 128})
      for (int64_t rows : {m, int64_t(5), int64_t(8), int64_t(16), int64_t(64)}) {
        if (columns > shape_.n || rows > m)
          continue;
        pack(columns);
        rows_ = rows;
        for (int i = 0; i < 5; ++i) {
          auto start = std::chrono::steady_clock::now();
          runRows(m, a, c);
          double took =
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
          if (took < best) {
            best = took;
            bestColumns = columns;
            bestRows = rows;
          }
        }
      }
    pack(bestColumns);
    rows_ = bestRows;
  }

  const rt::ProductShape shape_;
  const std::vector<float> plain_;
  std::vector<float> packed_;
  int64_t columns_ = 64, rows_ = 64; ///< of a block
};

bool accepts(const rt::ProductShape *shape) {
  return shape->k > 0 && shape->n > 0 && shape->aStride <= INT32_MAX &&
         shape->cStride <= INT32_MAX &&
         kernelFor(std::min<int64_t>(64, shape->n), 1, shape->k, shape->aStride, shape->cStride);
}

rt::LibraryProduct *makeProduct(const rt::ProductShape *shape, const float *weights) try {
  if (!accepts(shape))
    return nullptr;
  return new Product(*shape, weights);
} catch (const std::bad_alloc &) {
  return nullptr;
}

struct Matrices : rt::LibraryMatrices {
  libxsmm_smmfunction kernel;
};

rt::LibraryMatrices *makeMatrices(int64_t n) {
  libxsmm_smmfunction kernel = kernelFor(n, n, n, n, n);
  auto *matrices = kernel ? new (std::nothrow) Matrices : nullptr;
  if (!matrices)
    return nullptr;
  matrices->kernel = kernel;
  matrices->run = [](const rt::LibraryMatrices *self, const float *a, const float *b, float *c) {
    static_cast<const Matrices *>(self)->kernel(b, a, c);
  };
  matrices->destroy = [](rt::LibraryMatrices *self) { delete static_cast<Matrices *>(self); };
  return matrices;
}

} // namespace
} // namespace sheaf::vendor

const sheaf::rt::Library *sheaf_library() {
  static const sheaf::rt::Library library = {"libxsmm",
                                             LIBXSMM_VERSION,
                                             sheaf::vendor::accepts,
                                             sheaf::vendor::makeProduct,
                                             nullptr,
                                             sheaf::vendor::makeMatrices};
  return &library;
}
