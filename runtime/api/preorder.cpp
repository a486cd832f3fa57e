// Values that are written one after the other, each part after what it is a part of.
#include "runtime/api/tensors.h"
#include "runtime/api/values.h"

#include <bit>

using namespace sheaf;
using namespace sheaf::api;
using rt::Slot;
using rt::TypeKind;

namespace {

/// What is taken one by one.
template <typename T> struct Stream {
  const T *first;
  size_t count;
  const char *name;
  size_t at = 0;

  size_t left() const { return count - at; }
  const T &next() {
    if (at == count) [[unlikely]]
      throw Invalid(std::string(name) + " has only " + std::to_string(count) +
                    ", and the values take more");
    return first[at++];
  }
  /// Of what was taken last.
  std::string place() const { return std::string(name) + "[" + std::to_string(at - 1) + "]"; }
  void mustBeUsedUp() const {
    if (left())
      throw Invalid(std::string(name) + " has " + std::to_string(count) +
                    ", and the values take only " + std::to_string(at));
  }
};

template <typename T> Stream<T> stream(const T *first, size_t count, const char *name) {
  if (count)
    given(first, name);
  return {first, count, name};
}

/// Reads values of any depth: parts that are still to come are kept on a stack of its own.
class PreorderReader {
public:
  PreorderReader(ValueStore &store, const sheaf_preorder &written)
      : model_(*store.model), heap_(store.heap),
        heads_(stream(written.heads, written.head_count, "heads")),
        numbers_(stream(written.numbers, written.number_count, "numbers")),
        floats_(stream(written.floats, written.float_count, "floats")),
        tensors_(stream(written.tensors, written.tensor_count, "tensors")) {}

  /// Every value without slots takes nothing of what is written, every other takes something.
  void checkCount(uint64_t count, int64_t slots, const std::string &what) const {
    if (slots && count > heads_.left() + numbers_.left() + floats_.left() + tensors_.left())
      throw Invalid(what + " asks for " + std::to_string(count) +
                    " values, more than what is written can be");
  }

  void read(uint32_t type, uint64_t count, Slot *to) {
    Parts parts{&type, count, 0, to};
    for (;;) {
      while (parts.left == 0) {
        if (pending_.empty())
          return;
        parts = pending_.back();
        pending_.pop_back();
      }
      uint32_t number = *parts.types;
      Slot *at = parts.to;
      parts.types += parts.step;
      parts.to += model_.slots(number);
      --parts.left;
      readOne(number, at, parts);
    }
  }

  void mustBeUsedUp() const {
    heads_.mustBeUsedUp();
    numbers_.mustBeUsedUp();
    floats_.mustBeUsedUp();
    tensors_.mustBeUsedUp();
  }

private:
  /// Values that are still to be read, one after the other.
  struct Parts {
    const uint32_t *types; ///< of the next one
    uint64_t left;
    size_t step; ///< to the type after it; 0: all have one type
    Slot *to;
  };

  void enter(const Parts &inner, Parts &parts) {
    if (parts.left)
      pending_.push_back(parts);
    parts = inner;
  }

  /// Errors of `check` say where what was taken last stands.
  template <typename T, typename Check> static void atLast(const Stream<T> &stream, Check check) {
    try {
      check();
    } catch (const Invalid &error) {
      throw Invalid(stream.place() + ": " + error.what());
    }
  }

  void readOne(uint32_t number, Slot *to, Parts &parts) {
    const rt::TypeDesc &type = model_.types().types[number];
    switch (type.kind) {
    case TypeKind::Int:
      *to = numbers_.next();
      return;
    case TypeKind::Bool:
      *to = numbers_.next() != 0;
      return;
    case TypeKind::Token:
      *to = numbers_.next();
      if (*to < 0 || *to >= model_.tokens(number)) [[unlikely]]
        atLast(numbers_, [&] { checkToken(model_, number, *to); });
      return;
    case TypeKind::Float:
      *to = std::bit_cast<Slot>(floats_.next());
      return;
    case TypeKind::Tensor: {
      const DLTensor *tensor = tensors_.next();
      atLast(tensors_, [&] { putTensor(model_, number, given(tensor, "the tensor"), heap_, to); });
      return;
    }
    case TypeKind::Tuple:
      enter({type.children.data(), type.children.size(), 1, to}, parts);
      return;
    case TypeKind::List:
      *to = list(type, number, parts);
      return;
    case TypeKind::Data:
      *to = data(type, number, parts);
      return;
    }
  }

  Slot list(const rt::TypeDesc &type, uint32_t number, Parts &parts) {
    uint64_t size = heads_.next();
    if (type.length >= 0 && static_cast<uint64_t>(*type.length) != size)
      throw Invalid(heads_.place() + ": the list has " + std::to_string(size) +
                    " elements; its type is '" + model_.text(number) + "'");
    int64_t width = model_.slots(type.children[0]);
    if (size > kFew)
      checkCount(size, width, heads_.place());
    constexpr int64_t kObject = sizeof(rt::ListObject) / sizeof(Slot);
    Slot *place = heap_.allocate(kObject + static_cast<int64_t>(size) * width);
    Slot *elements = place + kObject;
    if (width)
      enter({type.children.data(), size, 0, elements}, parts);
    return std::bit_cast<Slot>(
        new (place) rt::ListObject{elements, static_cast<int64_t>(size), width, nullptr});
  }

  Slot data(const rt::TypeDesc &type, uint32_t number, Parts &parts) {
    const std::vector<rt::CtorDesc> &ctors = model_.types().data[type.data].ctors;
    uint32_t constructor = heads_.next();
    if (constructor >= ctors.size()) [[unlikely]]
      throw Invalid(heads_.place() + ": '" + model_.text(number) + "' has no constructor " +
                    std::to_string(constructor));
    const std::vector<uint32_t> &fields = ctors[constructor].fieldTypes;
    Slot *object = heap_.allocate(1 + model_.fieldSlots(type, constructor));
    object[0] = constructor;
    enter({fields.data(), fields.size(), 1, object + 1}, parts);
    return std::bit_cast<Slot>(object);
  }

  /// Lists of so many need no look at what is left.
  static constexpr uint64_t kFew = 1 << 10;

  const LoadedModel &model_;
  io::SlotHeap &heap_;
  Stream<uint32_t> heads_;
  Stream<int64_t> numbers_;
  Stream<double> floats_;
  Stream<const DLTensor *> tensors_;
  std::vector<Parts> pending_;
};

} // namespace

sheaf_value api::ValueBuilder::preorder(sheaf_type type, const sheaf_preorder &written,
                                        size_t count) {
  if (!model_.type(type))
    model_.typeOf(type, TypeKind::Data);
  PreorderReader reader(store_, written);
  int64_t width = model_.slots(type);
  reader.checkCount(count, width, "count");
  Slot *slots = allocate(count, width);
  reader.read(type, width ? count : 0, slots);
  reader.mustBeUsedUp();
  return add(type, slots, count);
}
