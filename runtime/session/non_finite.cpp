#include "runtime/session/non_finite.h"

#include "runtime/model/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace sheaf::rt {

namespace {

/// The first element of a tensor that is not finite.
std::optional<double> nonFiniteIn(const TensorView &view) {
  int64_t width = view.shape.empty() ? 1 : view.shape.back(), bytes = dtypeBytes(view.dtype);
  for (int64_t row = 0; row < view.rows(); ++row)
    for (int64_t i = 0; i < width; ++i)
      if (float value = elementAsFloat(view.data + row * view.rowStride() + i * bytes, view.dtype);
          !std::isfinite(value))
        return static_cast<double>(value);
  return std::nullopt;
}

/// By type: whether a value of it may hold floats.
std::vector<bool> typesWithFloats(const TypeTable &types) {
  std::vector<bool> has(types.types.size());
  for (size_t t = 0; t < has.size(); ++t) {
    const TypeDesc &type = types.types[t];
    has[t] = type.kind == TypeKind::Float ||
             (type.kind == TypeKind::Tensor && !type.isToken && isFloat(type.dtype));
  }
  auto any = [&](const std::vector<uint32_t> &members) {
    return std::any_of(members.begin(), members.end(), [&](uint32_t m) { return has[m]; });
  };
  // Types may hold themselves: until nothing changes.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t t = 0; t < has.size(); ++t) {
      const TypeDesc &type = types.types[t];
      bool now = has[t] || any(type.children);
      if (type.kind == TypeKind::Data)
        for (const CtorDesc &ctor : types.data[type.data].ctors)
          now = now || any(ctor.fieldTypes);
      changed |= now != has[t];
      has[t] = now;
    }
  }
  return has;
}

} // namespace

std::string nonFiniteName(double value) {
  return std::isnan(value) ? "NaN" : value > 0 ? "infinity" : "-infinity";
}

std::optional<NonFinite> firstNonFinite(const Model &model, const Schedule &schedule,
                                        const uint8_t *rows, const std::vector<bool> *among) {
  size_t number = 0;
  for (const ScheduledBucket &bucket : schedule) {
    const KernelDesc &kernel = model.kernels[bucket.kernel];
    for (int64_t i = 0; i < bucket.count; ++i) {
      const int32_t *words = bucket.records + i * kernel.words;
      uint64_t granule = static_cast<uint32_t>(words[kernel.words - 1]);
      for (const RecordTensor &result : kernel.results) {
        TensorView view{result.dtype, {}, rows + granule * kGranuleBytes};
        for (const WordSum &extent : result.extents)
          view.shape.push_back(evaluate(extent, words));
        bool isMeant = !among || (*among)[number++];
        if (isMeant && isFloat(view.dtype))
          if (std::optional<double> value = nonFiniteIn(view))
            return NonFinite{bucket.kernel, *value};
        granule += static_cast<uint64_t>(tensorGranules(view.shape, view.dtype));
      }
    }
  }
  return std::nullopt;
}

NonFiniteSearch::NonFiniteSearch(const TypeTable &types, TensorAccess tensors)
    : types_(types), tensors_(std::move(tensors)), holds_(typesWithFloats(types)) {
  for (uint32_t t = 0; t < types.types.size(); ++t)
    slots_.push_back(types.slots(t));
}

std::optional<NonFiniteSearch::Found> NonFiniteSearch::find(uint32_t type, const Slot *slots) {
  open_.clear();
  if (std::optional<Found> found = look(type, slots))
    return found;
  while (!open_.empty()) {
    if (open_.back().count == 0) {
      open_.pop_back();
      continue;
    }
    auto [memberType, member] = open_.back().take(slots_);
    if (std::optional<Found> found = look(memberType, member))
      return found;
  }
  return std::nullopt;
}

/// Looks at a scalar or a tensor; of a composite notes the members.
std::optional<NonFiniteSearch::Found> NonFiniteSearch::look(uint32_t t, const Slot *slots) {
  if (!holds_[t])
    return std::nullopt;
  const TypeDesc &type = types_.types[t];
  switch (type.kind) {
  case TypeKind::Int:
  case TypeKind::Bool:
  case TypeKind::Token:
    break;
  case TypeKind::Float:
    if (double value = std::bit_cast<double>(*slots); !std::isfinite(value))
      return Found{value, {}, 0};
    break;
  case TypeKind::Tensor: {
    TensorView view = tensors_(t, slots);
    if (std::optional<double> value = nonFiniteIn(view))
      return Found{*value, TensorHandle::unpack(*slots),
                   static_cast<uint64_t>(tensorGranules(view.shape, view.dtype))};
    break;
  }
  case TypeKind::List:
  case TypeKind::Tuple:
  case TypeKind::Data:
    open_.push_back(membersOf(types_, t, slots));
    break;
  }
  return std::nullopt;
}

} // namespace sheaf::rt
