//===- Tuning.h - Choices of the planner that may be timed ------*- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELS_TUNING_H
#define SHEAF_COMPILER_KERNELS_TUNING_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::kernels {

/// How a kernel is cut into register tiles and passes, and by whom its products are computed: how
/// long it takes follows from it, and in the exact numeric class none of its bits
/// (docs/numerics.md). 0: what the planner takes by itself. A wish that does not fit
/// the kernel or the registers is fulfilled as far as it does.
struct Tuning {
  int64_t vectors = 0; ///< most vectors of columns across a tile
  int64_t rows = 0;    ///< most rows of a tile
  int64_t near = 0;    ///< per cent of the default: how much of the caches the rows of a pass take
  /// Who is asked first to compute the products (Dispatch.h): 1 generated code, 2 the first of
  /// vendor::knownLibraries(), ...
  int64_t implementation = 0;

  bool operator==(const Tuning &) const = default;

  /// `vectors 4 rows 6 near 200 by 0`.
  std::string text() const;
  /// What text() wrote; nothing for anything else, or beyond what kernels can be made with.
  static std::optional<Tuning> parse(std::string_view text);
};

/// Tiles that may be worth trying, the likeliest first. Several may come to the same for a kernel.
std::vector<Tuning> tilesToTry();
/// Values of Tuning::near that may be.
std::vector<int64_t> nearToTry();

} // namespace sheaf::kernels

#endif // SHEAF_COMPILER_KERNELS_TUNING_H
