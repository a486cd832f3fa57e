#include "runtime/io/output.h"

#include "runtime/io/json.h"
#include "runtime/io/text.h"
#include "runtime/model/convert.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace sheaf::io {

using rt::DType;
using rt::Slot;
using rt::TypeKind;

template <typename T> static void appendReal(std::string &out, T value) {
  if (std::isnan(value)) {
    out += "\"NaN\"";
  } else if (std::isinf(value)) {
    out += value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
  } else {
    char text[64];
    out.append(text, std::to_chars(text, text + sizeof(text), value).ptr);
  }
}

void appendNumber(std::string &out, double value) { appendReal(out, value); }
void appendNumber(std::string &out, float value) { appendReal(out, value); }

static void appendInteger(std::string &out, int64_t value) {
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

//===----------------------------------------------------------------------===//
// JsonValueWriter
//===----------------------------------------------------------------------===//

JsonValueWriter::JsonValueWriter(const rt::TypeTable &types, TensorAccess tensors,
                                 const Vocabularies *vocabularies)
    : types_(types), tensors_(std::move(tensors)) {
  for (uint32_t t = 0; t < types.types.size(); ++t) {
    slots_.push_back(types.slots(t));
    const Vocabulary *vocabulary =
        vocabularies ? vocabularies->find(types.types[t].vocab) : nullptr;
    vocabularies_.push_back(vocabulary && vocabulary->hasWords() ? vocabulary : nullptr);
  }
}

JsonValueWriter::TensorAccess JsonValueWriter::inputTensors(const rt::TypeTable &types) {
  return [&types](uint32_t type, const Slot *slots) {
    const rt::HostTensor *tensor = rt::HostTensor::fromInputSlot(*slots);
    return rt::TensorView{types.types[type].dtype, tensor->shape, tensor->bytes.get()};
  };
}

void JsonValueWriter::appendToken(std::string &out, const Vocabulary *vocabulary, int64_t id) {
  if (vocabulary && id >= 0 && id < vocabulary->size())
    appendJsonString(out, vocabulary->word(id));
  else
    appendInteger(out, id);
}

void JsonValueWriter::append(std::string &out, uint32_t type, const Slot *slots) {
  frames_.clear();
  begin(out, type, slots);
  while (!frames_.empty()) {
    Frame &frame = frames_.back();
    if (frame.members.count == 0) {
      out += frame.closing;
      frames_.pop_back();
      continue;
    }
    if (!frame.first)
      out += ',';
    frame.first = false;
    auto [memberType, member] = frame.members.take(slots_);
    begin(out, memberType, member); // may grow frames_: frame is not used after this
  }
}

void JsonValueWriter::appendOutcome(std::string &out, const rt::EntryDesc &entry,
                                    const Slot *slots) {
  if (!entry.emits)
    return append(out, entry.resultType, slots);
  rt::EmittingOutcome both(types_, entry);
  out += "{\"emitted\": ";
  append(out, both.list, slots + both.listSlot);
  out += ", \"result\": ";
  append(out, both.result, slots);
  out += '}';
}

void JsonValueWriter::appendArgs(std::string &out, const rt::EntryDesc &entry, const Slot *args) {
  out += '{';
  for (size_t i = 0; i < entry.argTypes.size(); ++i) {
    if (i)
      out += ',';
    appendJsonString(out, entry.argNames[i]);
    out += ':';
    append(out, entry.argTypes[i], args);
    args += slots_[entry.argTypes[i]];
  }
  out += '}';
}

/// Writes a scalar or a tensor, or the beginning of a composite and a frame for the rest.
void JsonValueWriter::begin(std::string &out, uint32_t t, const Slot *slots) {
  const rt::TypeDesc &type = types_.types[t];
  switch (type.kind) {
  case TypeKind::Int:
    return appendInteger(out, *slots);
  case TypeKind::Float:
    return appendNumber(out, std::bit_cast<double>(*slots));
  case TypeKind::Bool:
    out += *slots ? "true" : "false";
    return;
  case TypeKind::Token:
    return appendToken(out, vocabularies_[t], *slots);
  case TypeKind::Tensor:
    return appendTensor(out, t, slots);
  case TypeKind::List:
  case TypeKind::Tuple:
    out += '[';
    frames_.push_back({rt::membersOf(types_, t, slots), "]"});
    return;
  case TypeKind::Data: {
    const rt::CtorDesc &ctor = rt::constructorOf(types_, type, slots);
    if (ctor.fieldTypes.empty())
      return appendJsonString(out, ctor.name);
    out += '{';
    appendJsonString(out, ctor.name);
    out += ":[";
    frames_.push_back({rt::membersOf(types_, t, slots), "]}"});
    return;
  }
  }
}

void JsonValueWriter::appendTensor(std::string &out, uint32_t t, const Slot *slots) {
  rt::TensorView tensor = tensors_(t, slots);
  const std::vector<int64_t> &shape = tensor.shape;
  if (shape.empty())
    return appendRow(out, t, tensor, tensor.data, 1);
  size_t last = shape.size() - 1, axis = 0;
  int64_t stride = tensor.rowStride();
  const uint8_t *row = tensor.data;
  std::vector<int64_t> at(shape.size(), 0);
  out += '[';
  for (;;) {
    if (axis == last) {
      appendRow(out, t, tensor, row, shape[last]);
      row += stride;
    } else if (at[axis] < shape[axis]) {
      out += at[axis] > 0 ? ",[" : "[";
      ++axis;
      continue;
    }
    out += ']';
    at[axis] = 0;
    if (axis == 0)
      return;
    ++at[--axis];
  }
}

void JsonValueWriter::appendRow(std::string &out, uint32_t t, const rt::TensorView &tensor,
                                const uint8_t *row, int64_t count) {
  auto load = [&]<typename T>(T, int64_t i) {
    T value;
    std::memcpy(&value, row + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return value;
  };
  bool isToken = types_.types[t].isToken;
  for (int64_t i = 0; i < count; ++i) {
    if (i)
      out += ',';
    switch (tensor.dtype) {
    case DType::F32:
      appendNumber(out, load(float(), i));
      break;
    case DType::BF16:
      appendNumber(out, rt::bf16ToFloat(load(uint16_t(), i)));
      break;
    case DType::F16:
      appendNumber(out, rt::f16ToFloat(load(uint16_t(), i)));
      break;
    case DType::I32:
      if (isToken)
        appendToken(out, vocabularies_[t], load(int32_t(), i));
      else
        appendInteger(out, load(int32_t(), i));
      break;
    case DType::I64:
      if (isToken)
        appendToken(out, vocabularies_[t], load(int64_t(), i));
      else
        appendInteger(out, load(int64_t(), i));
      break;
    case DType::Bool:
      out += load(int32_t(), i) ? "true" : "false";
      break;
    }
  }
}

} // namespace sheaf::io
