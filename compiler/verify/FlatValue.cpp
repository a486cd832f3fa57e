//===- FlatValue.cpp - Results taken out of a session ---------------------===//
#include "compiler/verify/FlatValue.h"

#include "runtime/session/non_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace sheaf::driver {

void FlatValue::clear() {
  structure.clear();
  floats.clear();
  tensors.clear();
  bytes.clear();
}

void Flattener::flatten(const rt::Session &session, uint32_t type, const rt::Slot *slots,
                        FlatValue &out) {
  const rt::TypeTable &types = session.model().types;
  out.clear();
  stack_.assign(1, {type, slots});
  while (!stack_.empty()) {
    Item item = stack_.back();
    stack_.pop_back();
    const rt::TypeDesc &desc = types.types[item.type];
    switch (desc.kind) {
    case rt::TypeKind::Int:
    case rt::TypeKind::Token:
    case rt::TypeKind::Bool:
      out.structure.push_back(*item.slots);
      break;
    case rt::TypeKind::Float:
      out.floats.push_back(std::bit_cast<double>(*item.slots));
      break;
    case rt::TypeKind::Tensor: {
      rt::TensorView view = session.tensor(item.type, item.slots);
      FlatTensor tensor;
      tensor.dtype = view.dtype;
      tensor.shape = view.shape;
      tensor.elements = view.elements();
      tensor.offset = out.bytes.size();
      out.bytes.resize(tensor.offset + tensor.elements * rt::dtypeBytes(view.dtype));
      view.copyTo(out.bytes.data() + tensor.offset);
      out.tensors.push_back(std::move(tensor));
      break;
    }
    case rt::TypeKind::List: {
      const auto *list = std::bit_cast<const rt::ListObject *>(*item.slots);
      out.structure.push_back(list->size);
      for (int64_t i = list->size; i-- > 0;)
        stack_.push_back({desc.children[0], list->elements + i * list->elementSlots});
      break;
    }
    case rt::TypeKind::Tuple: {
      int64_t offset = types.slots(item.type);
      for (size_t i = desc.children.size(); i-- > 0;) {
        offset -= types.slots(desc.children[i]);
        stack_.push_back({desc.children[i], item.slots + offset});
      }
      break;
    }
    case rt::TypeKind::Data: {
      const auto *object = std::bit_cast<const rt::Slot *>(*item.slots);
      out.structure.push_back(object[0]);
      const rt::CtorDesc &ctor = types.data[desc.data].ctors[object[0]];
      int64_t offset = 1;
      for (uint32_t field : ctor.fieldTypes)
        offset += types.slots(field);
      for (size_t i = ctor.fieldTypes.size(); i-- > 0;) {
        offset -= types.slots(ctor.fieldTypes[i]);
        stack_.push_back({ctor.fieldTypes[i], object + offset});
      }
      break;
    }
    }
  }
}

namespace {

float halfToFloat(uint16_t half) {
  int exponent = half >> 10 & 0x1F;
  int fraction = half & 0x3FF;
  float magnitude;
  if (exponent == 0x1F)
    magnitude = fraction ? NAN : INFINITY;
  else if (exponent == 0)
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  else
    magnitude = std::ldexp(static_cast<float>(fraction | 0x400), exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

template <typename T> T load(const uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

double element(rt::DType dtype, const uint8_t *at) {
  switch (dtype) {
  case rt::DType::F32:
    return load<float>(at);
  case rt::DType::BF16:
    return std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(at)) << 16);
  case rt::DType::F16:
    return halfToFloat(load<uint16_t>(at));
  case rt::DType::I64:
    return static_cast<double>(load<int64_t>(at));
  case rt::DType::I32:
  case rt::DType::Bool:
    return load<int32_t>(at);
  }
  return 0;
}

std::string shapeText(const FlatTensor &tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

} // namespace

std::vector<float> gradientOf(const rt::ParamDesc &param, const rt::ParamGradient &gradient) {
  rt::TensorView shape{param.dtype, param.shape, nullptr};
  std::vector<float> all(static_cast<size_t>(shape.elements()), 0.0F);
  if (gradient.kind == rt::ParamGradient::None)
    return all;
  int64_t stride = shape.rowStride() / static_cast<int64_t>(sizeof(float));
  int64_t width = param.shape.empty() ? 1 : param.shape.back();
  auto take = [&](int64_t row) {
    std::copy_n(gradient.data + row * stride, width, all.begin() + row * width);
  };
  if (gradient.kind == rt::ParamGradient::Rows)
    std::for_each(gradient.rows.begin(), gradient.rows.end(), take);
  else
    for (int64_t row = 0; row < shape.rows(); ++row)
      take(row);
  return all;
}

std::vector<double> toDoubles(const FlatValue &value, const FlatTensor &tensor) {
  std::vector<double> result(tensor.elements);
  int64_t size = rt::dtypeBytes(tensor.dtype);
  for (int64_t i = 0; i < tensor.elements; ++i)
    result[i] = element(tensor.dtype, value.bytes.data() + tensor.offset + i * size);
  return result;
}

std::string firstDifference(const FlatValue &a, const FlatValue &b) {
  auto text = [](double value) {
    return std::isfinite(value) ? fmt::format("{:.17g}", value) : rt::nonFiniteName(value);
  };
  if (a.structure != b.structure || a.tensors.size() != b.tensors.size() ||
      a.floats.size() != b.floats.size())
    return "the values are built differently";
  for (size_t i = 0; i < a.floats.size(); ++i)
    if (std::bit_cast<int64_t>(a.floats[i]) != std::bit_cast<int64_t>(b.floats[i]) &&
        !(std::isnan(a.floats[i]) && std::isnan(b.floats[i])))
      return fmt::format("float {}: {} and {}", i, text(a.floats[i]), text(b.floats[i]));
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    const FlatTensor &x = a.tensors[i];
    const FlatTensor &y = b.tensors[i];
    if (x.dtype != y.dtype || x.shape != y.shape)
      return fmt::format("tensor {}: shapes {} and {}", i, shapeText(x), shapeText(y));
    int64_t size = rt::dtypeBytes(x.dtype);
    const uint8_t *first = a.bytes.data() + x.offset;
    if (std::equal(first, first + x.elements * size, b.bytes.data() + y.offset))
      continue;
    for (int64_t e = 0; e < x.elements; ++e) {
      const uint8_t *p = a.bytes.data() + x.offset + e * size;
      const uint8_t *q = b.bytes.data() + y.offset + e * size;
      double u = element(x.dtype, p);
      double v = element(y.dtype, q);
      if (std::memcmp(p, q, size) != 0 && !(std::isnan(u) && std::isnan(v)))
        return fmt::format("tensor {}, element {}: {} and {}", i, e, text(u), text(v));
    }
  }
  return "";
}

} // namespace sheaf::driver
