#include "runtime/api/tensors.h"

#include "runtime/io/vocab.h"

#include <algorithm>
#include <bit>

using namespace sheaf;
using namespace sheaf::api;
using rt::Slot;

namespace {

constexpr uint64_t kMostGranules = uint64_t(1) << 31;

/// The number of a tensor's elements, after checking that it is of a type.
uint64_t checkedSize(const DLTensor &tensor, const rt::TypeDesc &type, const std::string &text) {
  DLDataType wanted = dlpackType(type.dtype);
  if (tensor.device.device_type != kDLCPU)
    throw Invalid("the tensor is not in the CPU's memory");
  if (tensor.dtype.code != wanted.code || tensor.dtype.bits != wanted.bits ||
      tensor.dtype.lanes != 1)
    throw Invalid("the tensor's dtype (code " + std::to_string(tensor.dtype.code) + ", " +
                  std::to_string(tensor.dtype.bits) + " bits) is not that of '" + text + "'");
  if (tensor.ndim < 0 || static_cast<size_t>(tensor.ndim) != type.shape.size())
    throw Invalid("the tensor has " + std::to_string(tensor.ndim) + " axes, '" + text + "' has " +
                  std::to_string(type.shape.size()));
  uint64_t elements = 1, granules = 1;
  if (!type.shape.empty())
    given(tensor.shape, "the tensor's shape");
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    int64_t extent = tensor.shape[axis];
    if (extent < 0 || (type.shape[axis] >= 0 && extent != type.shape[axis]))
      throw Invalid("axis " + std::to_string(axis) + " of the tensor has " +
                    std::to_string(extent) + " elements; its type is '" + text + "'");
    uint64_t least = static_cast<uint64_t>(
        axis + 1 == type.shape.size()
            ? rt::rowGranules(std::min<int64_t>(extent, int64_t(1) << 40), type.dtype)
            : extent);
    if (__builtin_mul_overflow(granules, least, &granules) || granules > kMostGranules)
      throw Invalid("the tensor is too large");
    elements *= static_cast<uint64_t>(extent);
  }
  return elements;
}

/// Of a tensor whose elements lie row by row without gaps.
std::vector<int64_t> denseStrides(const DLTensor &tensor) {
  std::vector<int64_t> strides(static_cast<size_t>(tensor.ndim), 1);
  for (size_t axis = strides.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * tensor.shape[axis];
  return strides;
}

/// Whether its elements lie so. An axis of one element has any stride.
bool isDense(const DLTensor &tensor) {
  int64_t stride = 1;
  for (int32_t axis = tensor.ndim; tensor.strides && axis-- > 0;) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != stride)
      return false;
    stride *= tensor.shape[axis];
  }
  return true;
}

/// The elements in row-major order, of so many bytes each; truth values of one byte `from` become
/// ints of more, as runtime/model/layout.h has them.
std::vector<uint8_t> gather(const DLTensor &tensor, size_t from, size_t bytes, uint64_t elements) {
  std::vector<uint8_t> out(elements * bytes);
  const uint8_t *data = dataOf(tensor);
  auto axes = static_cast<size_t>(tensor.ndim);
  std::vector<int64_t> strides = denseStrides(tensor);
  if (tensor.strides)
    strides.assign(tensor.strides, tensor.strides + axes);
  std::vector<int64_t> index(axes);
  int64_t at = 0;
  for (uint64_t i = 0; i < elements; ++i) {
    const uint8_t *element = data + at * static_cast<int64_t>(from);
    if (from < bytes) {
      int32_t truth = *element != 0;
      std::memcpy(out.data() + i * bytes, &truth, bytes);
    } else {
      std::memcpy(out.data() + i * bytes, element, bytes);
    }
    for (size_t axis = axes; axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < tensor.shape[axis])
        break;
      at -= strides[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return out;
}

} // namespace

const uint8_t *api::dataOf(const DLTensor &tensor) {
  return &given(static_cast<const uint8_t *>(tensor.data), "the tensor's data") +
         tensor.byte_offset;
}

void api::checkAxes(const DLTensor &tensor, size_t axes) {
  if (tensor.device.device_type != kDLCPU)
    throw Invalid("the tensor is not in the CPU's memory");
  if (tensor.ndim < 0 || static_cast<size_t>(tensor.ndim) != axes)
    throw Invalid("the tensor has " + std::to_string(tensor.ndim) + " axes, not " +
                  std::to_string(axes));
  if (axes)
    given(tensor.shape, "the tensor's shape");
  for (size_t axis = 0; axis < axes; ++axis)
    if (tensor.shape[axis] < 0)
      throw Invalid("axis " + std::to_string(axis) + " of the tensor has " +
                    std::to_string(tensor.shape[axis]) + " elements");
}

const uint8_t *api::denseElements(const DLTensor &tensor, size_t bytes, std::vector<uint8_t> &own) {
  size_t elements = 1;
  for (int32_t axis = 0; axis < tensor.ndim; ++axis)
    if (__builtin_mul_overflow(elements, static_cast<size_t>(tensor.shape[axis]), &elements) ||
        elements > kMostGranules * rt::kGranuleBytes)
      throw Invalid("the tensor is too large");
  if (elements == 0)
    return nullptr;
  if (isDense(tensor))
    return dataOf(tensor);
  own = gather(tensor, bytes, bytes, elements);
  return own.data();
}

api::Elements::Elements(const DLTensor &tensor) : dtype_(tensor.dtype) {
  checkAxes(tensor, 1);
  size_ = tensor.shape[0];
  if (tensor.strides)
    stride_ = tensor.strides[0];
  if (size_ > 0)
    data_ = dataOf(tensor);
}

void api::putTensor(const LoadedModel &model, sheaf_type number, const DLTensor &tensor,
                    io::SlotHeap &heap, Slot *to) {
  const rt::TypeDesc &type = model.typeOf(number, rt::TypeKind::Tensor);
  uint64_t elements = checkedSize(tensor, type, model.text(number));
  std::vector<uint8_t> gathered;
  const uint8_t *data = nullptr;
  if (elements) {
    data = dataOf(tensor);
    if (type.dtype == rt::DType::Bool || !isDense(tensor)) {
      auto bytes = static_cast<size_t>(rt::dtypeBytes(type.dtype));
      gathered = gather(tensor, type.dtype == rt::DType::Bool ? 1 : bytes, bytes, elements);
      data = gathered.data();
    }
  }
  if (type.isToken)
    for (uint64_t i = 0; i < elements; ++i) {
      int32_t token;
      std::memcpy(&token, data + i * sizeof token, sizeof token);
      checkToken(model, number, token);
    }
  std::vector<int64_t> shape(tensor.shape, tensor.shape + type.shape.size());
  to[0] = heap.tensor(type.dtype, std::move(shape), data);
  for (size_t axis = 0; axis < type.shape.size(); ++axis)
    if (type.shape[axis] < 0)
      *++to = tensor.shape[axis];
}

void api::throwNoToken(const LoadedModel &model, sheaf_type type, int64_t token) {
  throw Invalid("token " + std::to_string(token) + " is none of the " +
                std::to_string(model.tokens(type)) + " of the vocabulary of '" +
                io::tokenTypeName(model.types().types[type].vocab) + "'");
}
