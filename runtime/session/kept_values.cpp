#include "runtime/session/kept_values.h"

#include "runtime/session/invalid_argument.h"

#include <algorithm>
#include <new>

namespace sheaf::rt {

namespace {

/// In order, and without overlaps.
std::vector<RowRange> joined(std::vector<RowRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const RowRange &a, const RowRange &b) { return a.begin < b.begin; });
  std::vector<RowRange> result;
  for (const RowRange &range : ranges)
    if (!result.empty() && range.begin <= result.back().end())
      result.back().granules = std::max(result.back().end(), range.end()) - result.back().begin;
    else if (range.granules > 0)
      result.push_back(range);
  return result;
}

uint64_t bytesOf(std::span<const RowRange> ranges) {
  uint64_t granules = 0;
  for (const RowRange &range : ranges)
    granules += range.granules;
  return granules * kGranuleBytes;
}

} // namespace

//===----------------------------------------------------------------------===//
// Handles
//===----------------------------------------------------------------------===//

Kept::~Kept() {
  rows->isDropped = true;
  std::lock_guard lock(link->mutex);
  if (link->inbox)
    link->inbox->noteDropped();
}

KeptValue::KeptValue(std::shared_ptr<const Kept> kept)
    : kept_(std::move(kept)), type_(kept_ ? kept_->type : 0) {}

uint64_t KeptValue::bytes() const {
  if (!kept_)
    return 0;
  return (kept_->rows->isGone ? 0 : bytesOf(kept_->rows->held)) + kept_->rows->imageBytes;
}

bool KeptValue::isThere() const { return kept_ && !kept_->rows->isGone; }

bool KeptValue::fits(uint32_t type) const {
  return kept_ && hasFormOf(kept_->model.types, type_, type);
}

KeptValue KeptValue::part(size_t number) const {
  const TypeTable *types = kept_ ? &kept_->model.types : nullptr;
  const TypeDesc *type = types ? &types->types[type_] : nullptr;
  if (!type || type->kind != TypeKind::Tuple || number >= type->children.size())
    throw InvalidArgument("the kept value has no part " + std::to_string(number));
  KeptValue part = *this;
  part.type_ = type->children[number];
  for (size_t i = 0; i < number; ++i)
    part.slot_ += types->slots(type->children[i]);
  return part;
}

const Slot *KeptValue::slots() const { return kept_ ? kept_->image.slots() + slot_ : nullptr; }

//===----------------------------------------------------------------------===//
// What an engine keeps
//===----------------------------------------------------------------------===//

KeptValues::KeptValues(const Model &model, Recorder &recorder, MemoryMeter &meter,
                       MemoryUse &memory, EngineInbox &inbox)
    : model_(model), recorder_(recorder), meter_(meter), memory_(memory),
      link_(std::make_shared<KeptLink>()) {
  link_->inbox = &inbox;
}

KeptValues::~KeptValues() {
  {
    std::lock_guard lock(link_->mutex);
    link_->inbox = nullptr;
  }
  forget([](const KeptRows &) { return true; });
}

std::shared_ptr<const Kept> KeptValues::keep(uint32_t type, ValueImage &&image,
                                             uint64_t weights) try {
  auto rows = std::make_shared<KeptRows>();
  rows->weights = weights;
  std::vector<RowRange> held;
  for (const ValueImage::Tensor &tensor : image.tensors()) {
    uint64_t id = image.id(tensor);
    if (id < recorder_.rowSpace.first())
      continue; // a parameter's
    rows->rows.push_back({id, tensor.granules});
    auto room = static_cast<uint64_t>(recorder_.grown.capacity(static_cast<uint32_t>(id)));
    held.push_back({id, std::max(tensor.granules, tensor.granules > 0 ? room : 0)});
  }
  rows->rows = joined(std::move(rows->rows));
  rows->held = joined(std::move(held));
  rows->memory = memoryOf(*rows);
  uint64_t bytes = image.bytes() +
                   (rows->rows.size() + rows->held.size() + rows->memory.size()) * sizeof(RowRange);
  auto kept = std::make_shared<const Kept>(model_, type, std::move(image), rows, link_);
  std::lock_guard lock(mutex_);
  if (!meter_.charge(memory_.heap, bytes))
    return nullptr;
  rows->imageBytes = bytes;
  try {
    values_.push_back(rows);
  } catch (const std::bad_alloc &) {
    meter_.uncharge(memory_.heap, bytes);
    throw;
  }
  bytes_.reset();
  return kept;
} catch (const std::bad_alloc &) {
  return nullptr;
}

std::vector<RowRange> KeptValues::memoryOf(const KeptRows &rows) const {
  std::vector<RowRange> memory;
  for (const RowRange &range : rows.held)
    recorder_.grown.addMemory(range, memory);
  return joined(std::move(memory));
}

void KeptValues::findMemory() const {
  std::lock_guard lock(mutex_);
  for (const std::shared_ptr<KeptRows> &rows : values_)
    rows->memory = memoryOf(*rows);
  bytes_.reset();
}

template <typename IsGone> bool KeptValues::forget(IsGone isGone) {
  std::lock_guard lock(mutex_);
  size_t before = values_.size();
  std::erase_if(values_, [&](const std::shared_ptr<KeptRows> &rows) {
    if (!isGone(*rows))
      return false;
    rows->isGone = true;
    gone_ += bytesOf(rows->held) / kGranuleBytes;
    meter_.uncharge(memory_.heap, rows->imageBytes);
    return true;
  });
  bytes_.reset();
  return values_.size() < before;
}

bool KeptValues::sweep() {
  return forget([](const KeptRows &rows) { return rows.isDropped.load(); });
}

bool KeptValues::forgetOlder(uint64_t weights) {
  return forget([&](const KeptRows &rows) { return rows.weights != weights; });
}

void KeptValues::mark(GranuleBits &live) const {
  gone_ = 0;
  uint64_t first = recorder_.rowSpace.first();
  for (const std::shared_ptr<KeptRows> &rows : values_)
    for (const RowRange &range : rows->rows)
      live.set(range.begin - first, range.end() - first);
}

void KeptValues::check(std::span<const KeptArgument> arguments) const {
  const std::vector<uint32_t> &types = model_.entry.argTypes;
  for (const KeptArgument &given : arguments) {
    std::string name = "argument " + std::to_string(given.argument);
    if (given.argument >= types.size())
      throw InvalidArgument("there is no " + name + " but " + std::to_string(types.size()));
    if (!given.value)
      throw InvalidArgument(name + " is an empty handle");
    if (given.value.kept_->link != link_)
      throw InvalidArgument(name + " is a value that another engine keeps");
    if (!given.value.fits(types[given.argument]))
      throw InvalidArgument(name + " is a kept value of another type");
  }
  if (std::string why = whyNot(arguments); !why.empty())
    throw InvalidArgument(why);
}

std::string KeptValues::whyNot(std::span<const KeptArgument> arguments) const {
  for (const KeptArgument &given : arguments)
    if (!given.value.isThere())
      return "argument " + std::to_string(given.argument) +
             " is a kept value that follows from weights which have been changed since";
  return "";
}

std::vector<PresentArgument> KeptValues::present(std::span<const KeptArgument> arguments) {
  std::vector<PresentArgument> present;
  for (const KeptArgument &given : arguments)
    present.push_back({given.argument, &given.value.kept_->image, given.value.slot_});
  return present;
}

KeptUse KeptValues::use() const {
  std::lock_guard lock(mutex_);
  if (!bytes_) {
    std::vector<RowRange> all;
    uint64_t images = 0;
    for (const std::shared_ptr<KeptRows> &rows : values_) {
      all.insert(all.end(), rows->memory.begin(), rows->memory.end());
      images += rows->imageBytes;
    }
    bytes_ = bytesOf(joined(std::move(all))) + images;
  }
  return {values_.size(), *bytes_};
}

} // namespace sheaf::rt
