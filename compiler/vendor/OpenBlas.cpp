//===- OpenBlas.cpp - Products by OpenBLAS --------------------------------===//
#include "runtime/model/library.h"

#include <cblas.h>

#include <cstdint>
#include <new>
#include <sstream>
#include <string>
#include <vector>

namespace sheaf::vendor {
namespace {

struct Product : rt::LibraryProduct {
  rt::ProductShape shape;
  std::vector<float> weights;
};

void run(const rt::LibraryProduct *self, int64_t m, const float *a, float *c) {
  const auto &product = *static_cast<const Product *>(self);
  auto k = static_cast<blasint>(product.shape.k), n = static_cast<blasint>(product.shape.n);
  if (m == 1)
    cblas_sgemv(CblasRowMajor, CblasTrans, k, n, 1, product.weights.data(), n, a, 1, 0, c, 1);
  else
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<blasint>(m), n, k, 1, a,
                static_cast<blasint>(product.shape.aStride), product.weights.data(), n, 0, c,
                static_cast<blasint>(product.shape.cStride));
}

bool accepts(const rt::ProductShape *shape) {
  return shape->k > 0 && shape->n > 0 && shape->k * shape->n <= INT32_MAX &&
         shape->aStride <= INT32_MAX && shape->cStride <= INT32_MAX;
}

rt::LibraryProduct *makeProduct(const rt::ProductShape *shape, const float *weights) try {
  if (!accepts(shape))
    return nullptr;
  auto *product = new Product;
  auto count = static_cast<size_t>(shape->k * shape->n);
  product->run = run;
  product->destroy = [](rt::LibraryProduct *self) { delete static_cast<Product *>(self); };
  product->choose = nullptr;
  product->shape = *shape;
  product->weights.assign(weights, weights + count);
  return product;
} catch (const std::bad_alloc &) {
  return nullptr;
}

} // namespace
} // namespace sheaf::vendor

const sheaf::rt::Library *sheaf_library() {
  openblas_set_num_threads(1);
  // "OpenBLAS 0.3.21 NO_LAPACKE ...": its version and how it was built.
  static const std::string version = [] {
    std::istringstream words(openblas_get_config());
    std::string name, number;
    words >> name >> number;
    return number + ", " + openblas_get_corename();
  }();
  static const sheaf::rt::Library library = {
      "OpenBLAS", version.c_str(), sheaf::vendor::accepts, sheaf::vendor::makeProduct,
      nullptr,    nullptr};
  return &library;
}
