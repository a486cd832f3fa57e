#include "runtime/cpu.h"

#include <algorithm>

namespace sheaf::rt {

std::optional<std::string> missingFeature(std::span<const std::string> features) {
  auto missing = std::find_if_not(features.begin(), features.end(), hasFeature);
  return missing == features.end() ? std::nullopt : std::optional(*missing);
}

} // namespace sheaf::rt
