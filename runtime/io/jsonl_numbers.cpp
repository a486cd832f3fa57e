// JsonInstanceReader's numbers, tokens and tensors.
#include "runtime/io/jsonl.h"

#include "runtime/io/half.h"
#include "runtime/io/types.h"
#include "runtime/model/convert.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace sheaf::io {

using rt::DType;
using rt::TypeDesc;

int64_t JsonInstanceReader::integer(JsonEvent event) {
  int64_t value = 0;
  if (!parseInteger(json_.text(), value))
    expected("an integer of 64 bits", event);
  return value;
}

static bool isNumberName(JsonEvent event, std::string_view text) {
  return event == JsonEvent::String && (text == "NaN" || text == "Infinity" || text == "-Infinity");
}

double JsonInstanceReader::real(JsonEvent event) {
  double value = 0;
  if (event != JsonEvent::Number && !isNumberName(event, json_.text()))
    expected("float", event);
  if (!parseDouble(json_.text(), value))
    expected("a number that a float can hold", event);
  return value;
}

int64_t JsonInstanceReader::tokenNumber(uint32_t t, JsonEvent event) {
  std::string name = tokenTypeName(types_.types[t].vocab);
  if (event == JsonEvent::String) {
    int64_t id = tokens_.number(vocabs_[t], json_.text());
    if (id < 0)
      fail(fmt::format("the word {} is not in the vocabulary of '{}'", quoted(json_.text()), name));
    return id;
  }
  if (event != JsonEvent::Number)
    expected(fmt::format("{} as a word or its number", name), event);
  int64_t id = integer(event), size = tokens_.size(vocabs_[t]);
  if (id < 0 && size == INT64_MAX) // a vocabulary that is still to be made of the data
    fail(fmt::format("the {} {} is below 0", name, id));
  if (id < 0 || id >= size)
    fail(fmt::format("the {} {} is not one of the numbers 0 to {} of its vocabulary{}", name, id,
                     size - 1, tokens_.sizeOrigin(vocabs_[t])));
  tokens_.sawNumber(vocabs_[t], id);
  return id;
}

/// Reads the arrays of a tensor after its first '['; `extents` holds -1 where not yet known.
void JsonInstanceReader::readElements(uint32_t t, std::vector<int64_t> &extents) {
  size_t rank = extents.size();
  counts_.push_back(0);
  while (!counts_.empty()) {
    JsonEvent event = json_.next();
    size_t axis = counts_.size() - 1;
    if (event != JsonEvent::EndArray) {
      ++counts_.back();
      if (axis + 1 == rank) {
        appendElement(t, event);
      } else {
        if (event != JsonEvent::BeginArray)
          expected(fmt::format("an array (axis {} of {})", axis + 1, typeName(types_, t)), event);
        counts_.push_back(0);
      }
      continue;
    }
    int64_t count = counts_.back();
    counts_.pop_back();
    bool isStatic = types_.types[t].shape[axis] >= 0;
    if (extents[axis] < 0)
      extents[axis] = count;
    else if (extents[axis] != count && (!isStatic || tokens_.checksExtents()))
      fail(fmt::format("expected {}{}, found {}", plural(extents[axis], "element"),
                       isStatic ? fmt::format(" (axis {} of {})", axis, typeName(types_, t))
                                : " as in the arrays before",
                       count));
  }
}

template <typename T> static void appendBytes(std::vector<uint8_t> &bytes, T value) {
  size_t at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

void JsonInstanceReader::appendElement(uint32_t t, JsonEvent event) {
  const TypeDesc &type = types_.types[t];
  if (type.isToken) {
    int64_t id = tokenNumber(t, event);
    if (type.dtype == DType::I64)
      appendBytes<int64_t>(elements_, id);
    else
      appendBytes<int32_t>(elements_, static_cast<int32_t>(id));
    return;
  }
  switch (type.dtype) {
  case DType::F32: {
    float value = 0;
    if (event != JsonEvent::Number && !isNumberName(event, json_.text()))
      expected("a number", event);
    if (!parseFloat(json_.text(), value))
      expected("a number that an f32 can hold", event);
    return appendBytes(elements_, value);
  }
  case DType::BF16:
  case DType::F16: {
    double value = 0;
    if (event != JsonEvent::Number && !isNumberName(event, json_.text()))
      expected("a number", event);
    bool fits = parseDouble(json_.text(), value);
    uint16_t bits = type.dtype == DType::F16 ? toF16(value) : toBF16(value);
    double back = type.dtype == DType::F16 ? rt::f16ToFloat(bits) : rt::bf16ToFloat(bits);
    if (!fits || (std::isinf(back) && !std::isinf(value)))
      expected(fmt::format("a number that {} {} can hold", type.dtype == DType::F16 ? "an" : "a",
                           dtypeName(type.dtype)),
               event);
    return appendBytes(elements_, bits);
  }
  case DType::I32:
  case DType::I64: {
    if (event != JsonEvent::Number)
      expected("an integer", event);
    int64_t value = integer(event);
    if (type.dtype == DType::I64)
      return appendBytes(elements_, value);
    if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
      expected("an integer of 32 bits", event);
    return appendBytes(elements_, static_cast<int32_t>(value));
  }
  case DType::Bool:
    if (event != JsonEvent::True && event != JsonEvent::False)
      expected("true or false", event);
    return appendBytes<int32_t>(elements_, event == JsonEvent::True);
  }
}

/// Reads a tensor whose first event is `event`; pushes its slots.
void JsonInstanceReader::readTensor(uint32_t t, JsonEvent event) {
  const TypeDesc &type = types_.types[t];
  counts_.clear();
  std::vector<int64_t> extents(type.shape);
  elements_.clear();
  if (type.shape.empty())
    appendElement(t, event);
  else if (event != JsonEvent::BeginArray)
    expected(fmt::format("{} as an array", typeName(types_, t)), event);
  else
    readElements(t, extents);
  counts_.clear();
  size_t tensorAt = values_.size();
  values_.push_back(0);
  for (size_t axis = 0; axis < extents.size(); ++axis)
    if (type.shape[axis] < 0)
      pushExtent(t, axis, extents[axis]);
  std::vector<int64_t> shape(type.shape);
  for (size_t axis = 0, at = tensorAt; axis < shape.size(); ++axis)
    if (shape[axis] < 0)
      shape[axis] = values_[++at];
  // An axis without elements leaves the static ones inside it as they are.
  if (tokens_.checksExtents())
    values_[tensorAt] = heap_.tensor(type.dtype, std::move(shape), elements_.data());
}

/// Pushes a per-instance extent's slot; `extent` is -1 when the data do not tell it.
void JsonInstanceReader::pushExtent(uint32_t t, size_t axis, int64_t extent) {
  const TypeDesc &type = types_.types[t];
  std::string name = axis < type.dimNames.size() ? type.dimNames[axis] : std::string();
  if (extent < 0) {
    values_.push_back(isFreeDim(name) ? 0 : extents_.unknown(name, path()));
    return;
  }
  values_.push_back(extent);
  if (!isFreeDim(name))
    bindExtent(t, name, extent);
}

/// That a list has as many elements as its type says.
void JsonInstanceReader::checkLength(uint32_t list, int64_t count) {
  const TypeDesc &type = types_.types[list];
  if (type.length == -1)
    bindExtent(list, type.dimNames[0], count);
  else if (type.length && *type.length != count && tokens_.checksExtents())
    fail(fmt::format("{} has {}, found {}", typeName(types_, list), plural(*type.length, "element"),
                     count));
}

void JsonInstanceReader::bindExtent(uint32_t t, const std::string &name, int64_t extent) {
  if (!ExtentBinder::isPlainName(name)) {
    extents_.expect(name, extent, path());
    return;
  }
  const ExtentBinder::Binding *binding = extents_.find(name);
  const char *what = types_.types[t].kind == rt::TypeKind::List ? "length" : "extent";
  if (!binding)
    extents_.bind(name, extent, path());
  else if (binding->value != extent)
    fail(fmt::format("the {} {} of {} is {}, but {} has {} = {}", what, name, typeName(types_, t),
                     extent, binding->path, name, binding->value));
}

} // namespace sheaf::io
