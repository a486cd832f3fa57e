//===- Tuning.cpp - Choices of the planner that may be timed --------------===//
#include "compiler/kernels/Tuning.h"

#include <array>
#include <charconv>

namespace sheaf::kernels {

namespace {

struct Part {
  std::string_view name;
  int64_t Tuning::*value;
  int64_t most;
};

/// A tile's accumulators are registers; what is far beyond the caches is not near.
constexpr std::array<Part, 4> kParts = {{{"vectors ", &Tuning::vectors, 32},
                                         {" rows ", &Tuning::rows, 32},
                                         {" near ", &Tuning::near, 3200},
                                         {" by ", &Tuning::implementation, 8}}};

} // namespace

std::string Tuning::text() const {
  std::string out;
  for (const Part &part : kParts)
    out += std::string(part.name) + std::to_string(this->*part.value);
  return out;
}

std::optional<Tuning> Tuning::parse(std::string_view text) {
  Tuning tuning;
  for (const Part &part : kParts) {
    if (!text.starts_with(part.name))
      return std::nullopt;
    text.remove_prefix(part.name.size());
    int64_t &value = tuning.*part.value;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0 || value > part.most)
      return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  return text.empty() ? std::optional(tuning) : std::nullopt;
}

std::vector<Tuning> tilesToTry() {
  // Libraries, where they may not be asked, come to nothing new.
  return {{.vectors = 4},
          {.implementation = 2},
          {.implementation = 3},
          {.implementation = 4},
          {.vectors = 2},
          {.vectors = 8},
          {.vectors = 3},
          {.vectors = 5},
          {.vectors = 1},
          {.vectors = 6},
          {.vectors = 2, .rows = 12},
          {.vectors = 4, .rows = 4},
          {.vectors = 12},
          {.vectors = 2, .rows = 6},
          {.vectors = 1, .rows = 14},
          {.vectors = 8, .rows = 2}};
}

std::vector<int64_t> nearToTry() { return {50, 200, 25, 400}; }

} // namespace sheaf::kernels
