//===- tensors.h - Tensors on their way in ----------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_TENSORS_H
#define SHEAF_RUNTIME_API_TENSORS_H

#include "runtime/api/handles.h"

#include <cstring>

namespace sheaf::api {

/// The elements of a tensor with one axis, whatever its stride.
class Elements {
public:
  /// Throws Invalid when it is none.
  explicit Elements(const DLTensor &tensor);

  int64_t size() const { return size_; }
  DLDataType dtype() const { return dtype_; }
  template <typename T> T at(int64_t i) const {
    T element;
    std::memcpy(&element, data_ + i * stride_ * static_cast<int64_t>(sizeof(T)), sizeof element);
    return element;
  }

private:
  const uint8_t *data_ = nullptr;
  int64_t size_, stride_ = 1;
  DLDataType dtype_;
};

/// Where the elements begin, of a tensor that has some.
const uint8_t *dataOf(const DLTensor &tensor);
/// Throws Invalid when it is not in the CPU's memory or has no such axes.
void checkAxes(const DLTensor &tensor, size_t axes);

/// Copies a tensor, any strides, into a heap, and writes the slots of a value of this type. Throws
/// Invalid when it is not of the type.
void putTensor(const LoadedModel &model, sheaf_type type, const DLTensor &tensor,
               io::SlotHeap &heap, rt::Slot *to);

/// The elements of a tensor, any strides, row-major and without gaps: where they are, or in `own`.
/// `bytes`: of an element. Its axes have been checked.
const uint8_t *denseElements(const DLTensor &tensor, size_t bytes, std::vector<uint8_t> &own);

[[noreturn]] void throwNoToken(const LoadedModel &model, sheaf_type type, int64_t token);

/// Throws Invalid when it is none of a type of tokens, or of tensors of tokens.
inline void checkToken(const LoadedModel &model, sheaf_type type, int64_t token) {
  if (token < 0 || token >= model.tokens(type)) [[unlikely]]
    throwNoToken(model, type, token);
}

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_TENSORS_H
