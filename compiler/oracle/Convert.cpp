//===- Convert.cpp - Oracle values from the runtime's slots ---------------===//

#include "compiler/oracle/Convert.h"

#include "llvm/ADT/APFloat.h"

#include <bit>
#include <cstring>

namespace sheaf::oracle {
namespace {

template <typename T> double load(const uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

double loadHalf(const uint8_t *at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return llvm::APFloat(llvm::APFloat::IEEEhalf(), llvm::APInt(16, bits)).convertToDouble();
}

double loadElement(rt::DType dtype, const uint8_t *at) {
  switch (dtype) {
  case rt::DType::F32:
    return load<float>(at);
  case rt::DType::BF16: {
    uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  case rt::DType::F16:
    return loadHalf(at);
  case rt::DType::I64:
    return load<int64_t>(at);
  case rt::DType::I32:
  case rt::DType::Bool:
    return load<int32_t>(at);
  }
  return 0;
}

/// Where tensors are found differs between inputs and outcomes.
using ReadTensor = std::function<ops::RefTensor(uint32_t type, const rt::Slot *slots)>;

/// Builds a value from its slots without recursion: each part is visited once to push its
/// children, and once more, when they are made, to take them from the stack of values.
class Builder {
public:
  Builder(const rt::TypeTable &types, const ReadTensor &readTensor)
      : types_(types), readTensor_(readTensor) {}

  Value run(uint32_t type, const rt::Slot *slots) {
    pending_.push_back({type, slots, false});
    while (!pending_.empty()) {
      Part part = pending_.back();
      pending_.pop_back();
      if (part.childrenAreMade)
        assemble(part);
      else
        visit(part);
    }
    return std::move(made_.back());
  }

private:
  struct Part {
    uint32_t type;
    const rt::Slot *slots;
    bool childrenAreMade;
  };

  static const rt::ListObject &listOf(const rt::Slot *slots) {
    return *std::bit_cast<const rt::ListObject *>(*slots);
  }

  const rt::CtorDesc &ctorOf(const rt::TypeDesc &desc, const rt::Slot *object) const {
    return types_.data[desc.data].ctors[static_cast<size_t>(object[0])];
  }

  void visit(Part part) {
    const rt::TypeDesc &desc = types_.types[part.type];
    switch (desc.kind) {
    case rt::TypeKind::Int:
    case rt::TypeKind::Token:
      made_.push_back(int64_t(*part.slots));
      return;
    case rt::TypeKind::Bool:
      made_.push_back(*part.slots != 0);
      return;
    case rt::TypeKind::Float:
      made_.push_back(std::bit_cast<double>(*part.slots));
      return;
    case rt::TypeKind::Tensor:
      made_.push_back(makeTensor(readTensor_(part.type, part.slots)));
      return;
    default:
      break;
    }
    part.childrenAreMade = true;
    pending_.push_back(part);
    size_t first = pending_.size();
    if (desc.kind == rt::TypeKind::List) {
      const rt::ListObject &list = listOf(part.slots);
      for (int64_t i = 0; i < list.size; ++i)
        pending_.push_back({desc.children[0], list.elements + i * list.elementSlots, false});
    } else if (desc.kind == rt::TypeKind::Tuple) {
      pushFields(desc.children, part.slots);
    } else {
      const auto *object = std::bit_cast<const rt::Slot *>(*part.slots);
      pushFields(ctorOf(desc, object).fieldTypes, object + 1);
    }
    // The last pushed is made first, and children are made in order.
    std::reverse(pending_.begin() + static_cast<int64_t>(first), pending_.end());
  }

  void pushFields(const std::vector<uint32_t> &fields, const rt::Slot *slots) {
    for (uint32_t field : fields) {
      pending_.push_back({field, slots, false});
      slots += types_.slots(field);
    }
  }

  void assemble(Part part) {
    const rt::TypeDesc &desc = types_.types[part.type];
    if (desc.kind == rt::TypeKind::List) {
      made_.push_back(makeList(take(static_cast<size_t>(listOf(part.slots).size))));
    } else if (desc.kind == rt::TypeKind::Tuple) {
      made_.push_back(makeTuple(take(desc.children.size())));
    } else {
      const auto *object = std::bit_cast<const rt::Slot *>(*part.slots);
      made_.push_back(makeData(object[0], take(ctorOf(desc, object).fieldTypes.size())));
    }
  }

  std::vector<Value> take(size_t count) {
    auto begin = made_.end() - static_cast<int64_t>(count);
    std::vector<Value> children(std::make_move_iterator(begin),
                                std::make_move_iterator(made_.end()));
    made_.erase(begin, made_.end());
    return children;
  }

  const rt::TypeTable &types_;
  const ReadTensor &readTensor_;
  std::vector<Part> pending_;
  std::vector<Value> made_;
};

} // namespace

ops::RefTensor fromView(const rt::TensorView &view) {
  ops::RefTensor tensor;
  tensor.dtype = view.dtype;
  tensor.shape = view.shape;
  int64_t bytes = rt::dtypeBytes(view.dtype);
  std::vector<uint8_t> dense(static_cast<size_t>(view.elements() * bytes));
  view.copyTo(dense.data());
  tensor.data.resize(static_cast<size_t>(view.elements()));
  for (size_t i = 0; i < tensor.data.size(); ++i)
    tensor.data[i] = loadElement(view.dtype, dense.data() + static_cast<int64_t>(i) * bytes);
  return tensor;
}

static ops::RefTensor readInput(uint32_t, const rt::Slot *at) {
  const rt::HostTensor *tensor = rt::HostTensor::fromInputSlot(*at);
  return fromView({tensor->dtype, tensor->shape, tensor->bytes.get()});
}

Value fromInput(const rt::TypeTable &types, uint32_t type, const rt::Slot *slots) {
  ReadTensor readTensor = readInput;
  return Builder(types, readTensor).run(type, slots);
}

std::vector<Value> fromInstance(const rt::TypeTable &types, std::span<const uint32_t> argTypes,
                                const rt::Slot *args, const VisitTensor &visit) {
  std::vector<Value> values;
  ReadTensor readTensor = [&](uint32_t type, const rt::Slot *at) {
    ops::RefTensor tensor = readInput(type, at);
    if (visit)
      visit(values.size(), tensor);
    return tensor;
  };
  for (uint32_t type : argTypes) {
    values.push_back(Builder(types, readTensor).run(type, args));
    args += types.slots(type);
  }
  return values;
}

Value fromOutcome(const rt::Session &session, uint32_t type, const rt::Slot *slots) {
  ReadTensor readTensor = [&](uint32_t tensorType, const rt::Slot *at) {
    return fromView(session.tensor(tensorType, at));
  };
  return Builder(session.model().types, readTensor).run(type, slots);
}

Weights weightsOf(const rt::Session &session) {
  Weights weights;
  const auto &params = session.model().params;
  for (size_t i = 0; i < params.size(); ++i)
    weights[params[i].name] = std::make_shared<const ops::RefTensor>(fromView(session.param(i)));
  return weights;
}

} // namespace sheaf::oracle
