#include "runtime/train/parts.h"

#include "runtime/model/members.h"
#include "runtime/model/value.h"

#include <algorithm>

namespace sheaf::rt {

InstanceCosts::InstanceCosts(const TypeTable &types, std::span<const uint32_t> argTypes)
    : types_(types), argTypes_(argTypes.begin(), argTypes.end()) {
  std::vector<bool> holds(types.types.size()); // tensors, lists or data
  for (uint32_t i = 0; i < types.types.size(); ++i) {
    slots_.push_back(types.slots(i));
    TypeKind kind = types.types[i].kind;
    holds[i] = kind == TypeKind::Tensor || kind == TypeKind::List || kind == TypeKind::Data;
  }
  spreadToWholes(types, holds);
  holds.flip();
  isFlat_ = std::move(holds);
}

uint64_t InstanceCosts::of(const Slot *args) const {
  uint64_t cost = 1;
  std::vector<Members> pending{{argTypes_, false, static_cast<int64_t>(argTypes_.size()), args}};
  while (!pending.empty() && cost < kMost) {
    Members &top = pending.back();
    if (top.count == 0) {
      pending.pop_back();
      continue;
    }
    if (top.sameType && isFlat_[top.types[0]]) {
      cost += static_cast<uint64_t>(top.count);
      pending.pop_back();
      continue;
    }
    auto [type, value] = top.take(slots_);
    ++cost;
    if (types_.types[type].kind == TypeKind::Tensor)
      cost += static_cast<uint64_t>(HostTensor::fromInputSlot(*value)->granules());
    else if (!isFlat_[type])
      pending.push_back(membersOf(types_, type, value));
  }
  return std::min(cost, kMost);
}

std::vector<size_t> cutByCost(std::span<const uint64_t> costs, size_t parts) {
  uint64_t total = 0;
  for (uint64_t cost : costs)
    total += cost;
  std::vector<size_t> places{0};
  size_t at = 0;
  uint64_t before = 0; // of what stands before `at`
  for (size_t part = 1; part < parts; ++part) {
    auto wanted = static_cast<uint64_t>(static_cast<unsigned __int128>(total) * part / parts);
    size_t last = costs.size() - (parts - part); // the others take one at least
    // An instance that the cut goes through is on the side of which it has more.
    do
      before += costs[at++];
    while (at < last && before + costs[at] / 2 <= wanted);
    places.push_back(at);
  }
  places.push_back(costs.size());
  return places;
}

} // namespace sheaf::rt
