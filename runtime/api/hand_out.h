//===- hand_out.h - Tensors as DLPack has them ------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_HAND_OUT_H
#define SHEAF_RUNTIME_API_HAND_OUT_H

#include "runtime/api/handles.h"

namespace sheaf::api {

/// What a tensor that was handed out keeps alive.
struct Holder {
  std::shared_ptr<const ResultData> data;
  rt::AlignedBytes own;
  DLManagedTensor tensor;
  std::vector<int64_t> shape;
};

/// Elements of a result, or of the holder's own, with these extents.
inline DLManagedTensor *handOut(std::unique_ptr<Holder> holder, const uint8_t *elements,
                                DLDataType dtype) {
  DLTensor &out = holder->tensor.dl_tensor;
  out.data = const_cast<uint8_t *>(elements);
  out.device = {kDLCPU, 0};
  out.ndim = static_cast<int32_t>(holder->shape.size());
  out.dtype = dtype;
  out.shape = holder->shape.data();
  out.strides = nullptr;
  out.byte_offset = 0;
  holder->tensor.manager_ctx = holder.get();
  holder->tensor.deleter = [](DLManagedTensor *self) {
    if (self)
      delete static_cast<Holder *>(self->manager_ctx);
  };
  return &holder.release()->tensor;
}

/// Elements of its own, zero, of a tensor with these extents.
inline std::unique_ptr<Holder> ownTensor(std::vector<int64_t> shape, size_t elementBytes) {
  auto holder = std::make_unique<Holder>();
  size_t bytes = elementBytes;
  for (int64_t extent : shape)
    bytes *= static_cast<size_t>(extent);
  holder->shape = std::move(shape);
  holder->own = rt::allocateAligned(bytes);
  return holder;
}

/// The same, when they are filled in.
inline DLManagedTensor *handOut(std::unique_ptr<Holder> holder, DLDataType dtype) {
  const uint8_t *elements = holder->own.get();
  return handOut(std::move(holder), elements, dtype);
}

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_HAND_OUT_H
