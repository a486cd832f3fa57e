//===- library.h - Products by libraries from outside -----------*- C++ -*-===//
//
// What a library that multiplies matrices looks like to Sheaf: tables of C functions, so that
// generated code calls them, and so that neither the runtime nor the compiler is linked with any
// library. compiler/vendor fills them; whoever has no library there has no table either.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MODEL_LIBRARY_H
#define SHEAF_RUNTIME_MODEL_LIBRARY_H

#include <cstdint>

namespace sheaf::rt {

/// C[m,n] = A[m,k] W[k,n] in f32, row-major, for any m. Floats from one row to the next: of A
/// `aStride`, of C `cStride`; W is contiguous.
struct ProductShape {
  int64_t k = 0, n = 0;
  int64_t aStride = 0, cStride = 0;
};

/// Such a product with one W, which it keeps as it is given and in a form of its own.
struct LibraryProduct {
  /// First, since generated code reads it. Runs on the calling thread alone and may be called by
  /// several at once. Never fails: what the library refuses is computed by a plain loop.
  void (*run)(const LibraryProduct *, int64_t m, const float *a, float *c);
  void (*destroy)(LibraryProduct *);
  /// Chooses among the library's ways for this m by timing them; while it does, nobody may run it.
  /// Null: there is nothing to choose.
  void (*choose)(LibraryProduct *, int64_t m, const float *a, float *c);
};

/// C = A B for contiguous n x n matrices; neither is known beforehand.
struct LibraryMatrices {
  void (*run)(const LibraryMatrices *, const float *a, const float *b, float *c);
  void (*destroy)(LibraryMatrices *);
};

struct Library {
  const char *name; ///< oneDNN
  const char *version;
  bool (*accepts)(const ProductShape *);
  /// Null where it does not accept the shape, or finds no memory.
  LibraryProduct *(*product)(const ProductShape *, const float *weights);
  /// tanh(A W + bias) in one call. The member, or what it returns, may be null.
  LibraryProduct *(*tanhProduct)(const ProductShape *, const float *weights, const float *bias);
  LibraryMatrices *(*matrices)(int64_t n);
};

} // namespace sheaf::rt

/// What each library's module exports.
extern "C" const sheaf::rt::Library *sheaf_library();

#endif // SHEAF_RUNTIME_MODEL_LIBRARY_H
