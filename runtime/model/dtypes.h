//===- dtypes.h - The element types of tensors ------------------*- C++ -*-===//
//
// The one table of them: what they are called here and elsewhere, and how large they are.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MODEL_DTYPES_H
#define SHEAF_RUNTIME_MODEL_DTYPES_H

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace sheaf::rt {

enum class DType : uint8_t { F32, BF16, F16, I32, I64, Bool };
enum class DTypeKind : uint8_t { Float, Int, Bool };

struct DTypeInfo {
  DType dtype;
  std::string_view name; ///< in programs
  DTypeKind kind;
  int bits;         ///< of a value
  int64_t rowBytes; ///< of an element in rows
  uint8_t dlpackCode, dlpackBits;
  std::string_view mlir;        ///< as MLIR writes it
  std::string_view safetensors; ///< as the header of a file of weights has it
};

/// In the order of the enumerators.
inline constexpr DTypeInfo kDTypes[] = {
    {DType::F32, "f32", DTypeKind::Float, 32, 4, 2, 32, "f32", "F32"},
    {DType::BF16, "bf16", DTypeKind::Float, 16, 2, 4, 16, "bf16", "BF16"},
    {DType::F16, "f16", DTypeKind::Float, 16, 2, 2, 16, "f16", "F16"},
    {DType::I32, "i32", DTypeKind::Int, 32, 4, 0, 32, "i32", "I32"},
    {DType::I64, "i64", DTypeKind::Int, 64, 8, 0, 64, "i64", "I64"},
    {DType::Bool, "bool", DTypeKind::Bool, 1, 4, 6, 8, "i1", "BOOL"},
};

constexpr const DTypeInfo &infoOf(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }
constexpr std::string_view dtypeName(DType dtype) { return infoOf(dtype).name; }
constexpr bool isFloat(DType dtype) { return infoOf(dtype).kind == DTypeKind::Float; }
constexpr int64_t dtypeBytes(DType dtype) { return infoOf(dtype).rowBytes; }

static_assert([] {
  for (size_t i = 0; i < std::size(kDTypes); ++i)
    if (kDTypes[i].dtype != static_cast<DType>(i))
      return false;
  return true;
}());

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MODEL_DTYPES_H
