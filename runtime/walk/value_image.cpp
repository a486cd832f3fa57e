#include "runtime/walk/value_image.h"

#include "runtime/model/members.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <set>
#include <unordered_map>
#include <utility>

namespace sheaf::rt {

/// Fills an image in. Where a slot refers to another, it first has that one's number.
class ImageMaker {
public:
  ImageMaker(ValueImage &image, const TypeTable &types, const TypeFacts &facts)
      : image_(image), types_(types), facts_(facts) {}

  void make(uint32_t type, const Slot *slots) {
    size_t root = allocate(image_.moved_, facts_.slots(type));
    open_.push_back({type, 1, slots, &image_.moved_, root});
    while (!open_.empty()) {
      Open &next = open_.back();
      Open one = next;
      int64_t width = facts_.slots(one.type);
      next.from += width;
      next.to += static_cast<size_t>(width);
      if (--next.count == 0)
        open_.pop_back();
      put(one.type, one.from, *one.part, one.to);
    }
    image_.moved_.shrink_to_fit();
    image_.fixed_.shrink_to_fit();
    for (const Reference &reference : references_) {
      Slot &slot = (*reference.from)[reference.slot];
      slot = std::bit_cast<Slot>(reference.to->data() + slot);
      if (reference.to == &image_.moved_)
        image_.pointers_.push_back(reference.slot);
    }
  }

private:
  using Part = std::vector<Slot>;
  struct Open {
    uint32_t type; ///< of each of `count` values
    int64_t count;
    const Slot *from;
    Part *part;
    size_t to;
  };
  struct Reference {
    Part *from;
    size_t slot;
    Part *to;
  };
  struct Place {
    Slot address;
    uint32_t type;
    bool operator==(const Place &) const = default;
  };
  struct HashOfPlace {
    size_t operator()(const Place &place) const {
      return std::hash<Slot>()(place.address ^ Slot(place.type) << 48);
    }
  };

  static size_t allocate(Part &part, int64_t slots) {
    size_t begin = part.size();
    part.resize(begin + static_cast<size_t>(slots));
    return begin;
  }
  void refer(Part &from, size_t slot, Part &to, size_t target) {
    from[slot] = static_cast<Slot>(target);
    references_.push_back({&from, slot, &to});
  }
  /// `count` values of a type; they are looked into when there is something to look for.
  void putAll(uint32_t type, int64_t count, const Slot *from, Part &part, size_t to) {
    if (facts_.hasTensor(type) || facts_.hasMemory(type)) {
      if (count > 0)
        open_.push_back({type, count, from, &part, to});
    } else {
      std::copy_n(from, count * facts_.slots(type), part.data() + to);
    }
  }

  void put(uint32_t type, const Slot *from, Part &part, size_t to) {
    const TypeDesc &desc = types_.types[type];
    std::copy_n(from, facts_.slots(type), part.data() + to);
    switch (desc.kind) {
    case TypeKind::Tensor: {
      part[to] = TensorHandle{TensorHandle::unpack(from[0]).id, 0}.pack();
      int64_t granules = tensorGranules(desc.shape, desc.dtype, from + 1);
      image_.tensors_.push_back({to, static_cast<uint64_t>(granules)});
      return;
    }
    case TypeKind::Tuple:
      for (uint32_t child : desc.children) {
        putAll(child, 1, from, part, to);
        from += facts_.slots(child);
        to += static_cast<size_t>(facts_.slots(child));
      }
      return;
    case TypeKind::List:
    case TypeKind::Data: {
      Part &target = facts_.hasTensor(type) ? image_.moved_ : image_.fixed_;
      auto [place, isNew] = places_.try_emplace(Place{from[0], type});
      if (isNew)
        place->second = desc.kind == TypeKind::List ? putList(desc, from[0], target)
                                                    : putData(desc, from, target);
      return refer(part, to, target, place->second);
    }
    default:
      return;
    }
  }

  size_t putList(const TypeDesc &desc, Slot at, Part &part) {
    constexpr int64_t head = sizeof(ListObject) / sizeof(Slot);
    const auto *list = std::bit_cast<const ListObject *>(at);
    size_t begin = allocate(part, head + list->size * list->elementSlots);
    size_t elements = begin + head;
    auto slots = std::bit_cast<std::array<Slot, head>>(
        ListObject{nullptr, list->size, list->elementSlots, nullptr});
    std::copy(slots.begin(), slots.end(), part.begin() + static_cast<ptrdiff_t>(begin));
    refer(part, begin + offsetof(ListObject, elements) / sizeof(Slot), part, elements);
    putAll(desc.children[0], list->size, list->elements, part, elements);
    return begin;
  }

  size_t putData(const TypeDesc &desc, const Slot *from, Part &part) {
    const std::vector<uint32_t> &fields = constructorOf(types_, desc, from).fieldTypes;
    const auto *object = std::bit_cast<const Slot *>(from[0]);
    int64_t slots = 1;
    for (uint32_t field : fields)
      slots += facts_.slots(field);
    size_t begin = allocate(part, slots), to = begin + 1;
    part[begin] = *object++;
    for (uint32_t field : fields) {
      putAll(field, 1, object, part, to);
      object += facts_.slots(field);
      to += static_cast<size_t>(facts_.slots(field));
    }
    return begin;
  }

  ValueImage &image_;
  const TypeTable &types_;
  const TypeFacts &facts_;
  std::vector<Open> open_; ///< values may be as deep as memory allows
  std::vector<Reference> references_;
  std::unordered_map<Place, size_t, HashOfPlace> places_; ///< of lists and data
};

ValueImage::ValueImage(const TypeTable &types, const TypeFacts &facts, uint32_t type,
                       const Slot *slots) {
  ImageMaker(*this, types, facts).make(type, slots);
}

uint64_t ValueImage::bytes() const {
  return (moved_.size() + fixed_.size()) * sizeof(Slot) + tensors_.size() * sizeof(Tensor) +
         pointers_.size() * sizeof(size_t);
}

void ValueImage::copyTo(Slot *to, uint32_t depth) const {
  std::copy(moved_.begin(), moved_.end(), to);
  const Slot *begin = moved_.data();
  for (size_t slot : pointers_)
    to[slot] = std::bit_cast<Slot>(to + (std::bit_cast<const Slot *>(moved_[slot]) - begin));
  for (const Tensor &tensor : tensors_)
    to[tensor.slot] = TensorHandle{id(tensor), depth}.pack();
}

bool hasFormOf(const TypeTable &types, uint32_t a, uint32_t b) {
  // Types are recursive: those that are looked at already agree unless others do not.
  std::set<std::pair<uint32_t, uint32_t>> seen;
  std::vector<std::pair<uint32_t, uint32_t>> pending{{a, b}};
  auto pairUp = [&](const std::vector<uint32_t> &as, const std::vector<uint32_t> &bs) {
    for (size_t i = 0; i < as.size() && i < bs.size(); ++i)
      pending.emplace_back(as[i], bs[i]);
    return as.size() == bs.size();
  };
  while (!pending.empty()) {
    auto pair = pending.back();
    pending.pop_back();
    if (pair.first == pair.second || !seen.insert(pair).second)
      continue;
    const TypeDesc &x = types.types[pair.first], &y = types.types[pair.second];
    if (x.kind != y.kind || x.isToken != y.isToken || x.vocab != y.vocab)
      return false;
    // (What else has a length that is the instance's own is not known here.)
    if (y.length && (x.length != y.length || *y.length < 0))
      return false;
    if (x.kind == TypeKind::Tensor && (x.dtype != y.dtype || x.shape != y.shape))
      return false;
    if (!pairUp(x.children, y.children))
      return false;
    if (x.kind != TypeKind::Data || x.data == y.data)
      continue;
    const DataDesc &first = types.data[x.data], &second = types.data[y.data];
    // `Rose<f32[n]>` and `Rose<f32[m]>` are one type of the source.
    auto name = [](const DataDesc &data) { return data.name.substr(0, data.name.find('<')); };
    if (name(first) != name(second) || first.ctors.size() != second.ctors.size())
      return false;
    for (size_t i = 0; i < first.ctors.size(); ++i)
      if (!pairUp(first.ctors[i].fieldTypes, second.ctors[i].fieldTypes))
        return false;
  }
  return true;
}

} // namespace sheaf::rt
