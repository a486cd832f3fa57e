#include "runtime/train/confusion.h"

#include "runtime/model/members.h"

#include <cstring>

namespace sheaf::rt {

namespace {

double ratio(int64_t part, int64_t whole) {
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// What lists of a type hold, at any depth.
uint32_t innermost(const TypeTable &types, uint32_t type) {
  while (types.types[type].kind == TypeKind::List)
    type = types.types[type].children[0];
  return type;
}

bool areClasses(const TypeTable &types, uint32_t type) {
  const TypeDesc &desc = types.types[innermost(types, type)];
  switch (desc.kind) {
  case TypeKind::Int:
  case TypeKind::Bool:
  case TypeKind::Token:
    return true;
  case TypeKind::Tensor:
    return desc.dtype == DType::I32 || desc.dtype == DType::I64 || desc.dtype == DType::Bool;
  default:
    return false;
  }
}

/// Whether classes of these types can be told from each other: tokens of one vocabulary, truth
/// values, or numbers, with axes or without.
bool areAlike(const TypeDesc &a, const TypeDesc &b) {
  auto isToken = [](const TypeDesc &t) { return t.kind == TypeKind::Token || t.isToken; };
  auto isBool = [](const TypeDesc &t) {
    return t.kind == TypeKind::Bool || (t.kind == TypeKind::Tensor && t.dtype == DType::Bool);
  };
  return isToken(a) == isToken(b) && isBool(a) == isBool(b) && a.vocab == b.vocab;
}

class ClassReader {
public:
  using Tensors = std::function<TensorView(uint32_t, const Slot *)>;
  ClassReader(const TypeTable &types, const Tensors &tensors) : types_(types), tensors_(tensors) {
    for (uint32_t t = 0; t < types.types.size(); ++t)
      slots_.push_back(types.slots(t));
  }

  /// Calls `visit(type, slots)` for what lists hold, in order.
  template <typename Visit> void forEach(uint32_t type, const Slot *slots, Visit visit) const {
    std::vector<Members> open;
    auto enter = [&](uint32_t t, const Slot *at) {
      if (types_.types[t].kind == TypeKind::List)
        open.push_back(membersOf(types_, t, at));
      else
        visit(t, at);
    };
    enter(type, slots);
    while (!open.empty()) {
      if (open.back().count == 0) {
        open.pop_back();
        continue;
      }
      auto [t, at] = open.back().take(slots_);
      enter(t, at);
    }
  }

  std::vector<int64_t> classes(uint32_t type, const Slot *slots) const {
    std::vector<int64_t> all;
    forEach(type, slots, [&](uint32_t t, const Slot *at) {
      if (types_.types[t].kind != TypeKind::Tensor)
        return all.push_back(*at);
      TensorView view = tensors_(t, at);
      std::vector<uint8_t> bytes = view.rowMajor();
      for (size_t i = 0; i < bytes.size(); i += static_cast<size_t>(dtypeBytes(view.dtype))) {
        int32_t narrow = 0;
        int64_t wide = 0;
        if (view.dtype == DType::I64)
          std::memcpy(&wide, bytes.data() + i, sizeof wide);
        else
          std::memcpy(&narrow, bytes.data() + i, sizeof narrow);
        all.push_back(view.dtype == DType::I64 ? wide : narrow);
      }
    });
    return all;
  }

  const Slot *second(uint32_t pair, const Slot *slots) const {
    return slots + slots_[types_.types[pair].children[0]];
  }

private:
  const TypeTable &types_;
  const Tensors &tensors_;
  std::vector<int64_t> slots_;
};

} // namespace

ClassScores Confusion::Class::scores() const {
  return {ratio(right, predicted), ratio(right, actual), ratio(2 * right, actual + predicted)};
}

void Confusion::add(int64_t actual, int64_t predicted, int64_t times) {
  counts_[{actual, predicted}] += times;
  total_ += times;
}

double Confusion::accuracy() const {
  int64_t right = 0;
  for (const auto &[which, times] : counts_)
    right += which.first == which.second ? times : 0;
  return ratio(right, total_);
}

std::vector<Confusion::Class> Confusion::classes() const {
  std::map<int64_t, Class> byNumber;
  for (const auto &[which, times] : counts_) {
    byNumber[which.first].actual += times;
    byNumber[which.second].predicted += times;
    if (which.first == which.second)
      byNumber[which.first].right += times;
  }
  std::vector<Class> all;
  for (auto &[number, one] : byNumber) {
    one.number = number;
    all.push_back(one);
  }
  return all;
}

ClassScores Confusion::macro() const {
  ClassScores mean;
  std::vector<Class> all = classes();
  for (const Class &one : all) {
    ClassScores scores = one.scores();
    mean.precision += scores.precision;
    mean.recall += scores.recall;
    mean.f1 += scores.f1;
  }
  auto count = static_cast<double>(std::max<size_t>(all.size(), 1));
  return {mean.precision / count, mean.recall / count, mean.f1 / count};
}

ClassScores Confusion::of(int64_t number) const {
  for (const Class &one : classes())
    if (one.number == number)
      return one.scores();
  return {};
}

bool isPrediction(const TypeTable &types, uint32_t type) {
  const TypeDesc &desc = types.types[innermost(types, type)];
  return desc.kind == TypeKind::Tuple && desc.children.size() == 2 &&
         areClasses(types, desc.children[0]) && areClasses(types, desc.children[1]) &&
         areAlike(types.types[innermost(types, desc.children[0])],
                  types.types[innermost(types, desc.children[1])]);
}

uint32_t classType(const TypeTable &types, uint32_t type) {
  return innermost(types, types.types[innermost(types, type)].children[1]);
}

std::string addPrediction(Confusion &confusion, const TypeTable &types, uint32_t type,
                          const Slot *slots,
                          const std::function<TensorView(uint32_t, const Slot *)> &tensors) {
  ClassReader reader(types, tensors);
  std::vector<std::pair<int64_t, int64_t>> found;
  std::string problem;
  reader.forEach(type, slots, [&](uint32_t pair, const Slot *at) {
    const std::vector<uint32_t> &sides = types.types[pair].children;
    std::vector<int64_t> predicted = reader.classes(sides[0], at);
    std::vector<int64_t> actual = reader.classes(sides[1], reader.second(pair, at));
    if (predicted.size() != actual.size())
      problem = std::to_string(predicted.size()) + " classes are predicted, but " +
                std::to_string(actual.size()) + " are there";
    for (size_t i = 0; i < std::min(predicted.size(), actual.size()); ++i)
      found.emplace_back(actual[i], predicted[i]);
  });
  if (!problem.empty())
    return problem;
  for (auto [actual, predicted] : found)
    confusion.add(actual, predicted);
  return "";
}

} // namespace sheaf::rt
