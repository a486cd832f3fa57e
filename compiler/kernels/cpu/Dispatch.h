//===- Dispatch.h - Who computes the products of a block --------*- C++ -*-===//
//
// A product has an ordered list of implementations: generated code, then the vendors' libraries.
// Each accepts it or refuses with a reason; the first that accepts computes it. Libraries do not
// keep the order of sums (docs/numerics.md): they are asked only where the numeric class is any.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_KERNELS_CPU_DISPATCH_H
#define SHEAF_COMPILER_KERNELS_CPU_DISPATCH_H

#include "compiler/kernels/NumericClass.h"
#include "compiler/vendor/Libraries.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sheaf::kernels::cpu {

/// What must be known of a product.
struct ProductQuestion {
  /// Rows and columns of the weights; nothing where the right operand is not a matrix of packed
  /// weights of known extents.
  std::optional<rt::ProductShape> shape;
  bool bf16 = false; ///< takes factors in bf16
};

struct ProductAnswer {
  const rt::Library *library = nullptr; ///< null: generated code
  std::vector<Verdict> verdicts;        ///< in the order in which they were asked
};

/// Asks for the products of one block, which takes one library at most.
class Dispatch {
public:
  /// `first`: Tuning::implementation.
  Dispatch(NumericClass numericClass, const std::set<std::string> &without, int64_t first);

  ProductAnswer ask(const ProductQuestion &question);

private:
  std::optional<std::string> refusal(const vendor::KnownLibrary &known,
                                     const ProductQuestion &question) const;

  NumericClass numericClass_;
  const std::set<std::string> &without_;
  std::vector<const vendor::KnownLibrary *> order_; ///< null: generated
  const rt::Library *taken_ = nullptr;              ///< by an earlier product
};

/// The libraries that are there, with their versions, where the numeric class lets them be asked.
std::string describeLibraries(NumericClass numericClass);

/// The name by which `--without` leaves generated products out where a library takes them.
inline constexpr std::string_view kGeneratedSwitch = "generated";

} // namespace sheaf::kernels::cpu

#endif // SHEAF_COMPILER_KERNELS_CPU_DISPATCH_H
