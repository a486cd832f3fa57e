//===- layout.h - How values are laid out in memory -------------*- C++ -*-===//
//
// The agreement between generated host code, kernels, readers and printers.
//
// Slots. Every host value is a fixed number of 64-bit slots:
//   int, token   one slot, the number                 float   one slot, the bits of a double
//   bool         one slot, 0 or 1                     list    one slot, a ListObject *
//   data         one slot, an int64_t *: the constructor's index, then the slots of its fields
//   tuple        the slots of its fields, in order
//   tensor       one slot, a TensorHandle, then one slot for every `?` extent of its static type
//
// Rows. A tensor lives in the row space, one reserved range of addresses per session, in granules
// of 64 bytes; its id is the number of its first granule. The innermost axis is padded to whole
// granules, outer axes are dense; so row i of an f32[n, 50] starts 4*i granules after the tensor.
// A rank-0 tensor takes one granule. Padding may hold anything. bool elements take 4 bytes (0 or
// 1), f32 and i32 4, i64 8, f16 and bf16 2.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_MODEL_LAYOUT_H
#define SHEAF_RUNTIME_MODEL_LAYOUT_H

#include "runtime/model/dtypes.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sheaf::rt {

using Slot = int64_t;

constexpr int64_t kGranuleBytes = 64;

/// A tensor of an instance: where it is, and at which depth its record was made
/// (0: it exists before the flush; d > 0: made by a record of depth d - 1).
struct TensorHandle {
  uint32_t id;
  uint32_t depth;
  Slot pack() const { return static_cast<Slot>(static_cast<uint64_t>(depth) << 32 | id); }
  static TensorHandle unpack(Slot s) {
    return {static_cast<uint32_t>(s), static_cast<uint32_t>(static_cast<uint64_t>(s) >> 32)};
  }
};

/// Records may be given a phase, a number below kMaxPhases: all of one phase run before those of
/// the next. In 32 bits, a phase comes first and the depth inside of it last, so that phases and
/// depths compare as one number; the fewer phases a model has, the deeper they may be.
constexpr uint32_t kMaxPhases = 255;
constexpr uint32_t depthBits(uint32_t phases) {
  // One phase's worth is left over, so that one more than the deepest is a number, too.
  uint32_t bits = 28;
  while (uint64_t(phases) + 1 > uint64_t(1) << (32 - bits))
    --bits;
  return bits;
}

/// Granules from one innermost row to the next.
constexpr int64_t rowGranules(int64_t innermost, DType t) {
  int64_t bytes = innermost * dtypeBytes(t);
  return bytes <= kGranuleBytes ? 1 : (bytes + kGranuleBytes - 1) / kGranuleBytes;
}

/// Granules of a tensor of this shape (at least 1 each row; 0 when an outer extent is 0).
inline int64_t tensorGranules(std::span<const int64_t> shape, DType t) {
  if (shape.empty())
    return 1;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    rows *= shape[i];
  return rows * rowGranules(shape.back(), t);
}

/// The same of a shape with -1 where the extent is the next of `extents`.
template <typename Word>
int64_t tensorGranules(std::span<const int64_t> shape, DType t, const Word *extents) {
  int64_t rows = 1, innermost = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t extent = shape[i] < 0 ? *extents++ : shape[i];
    (i + 1 < shape.size() ? rows : innermost) *= extent;
  }
  return rows * rowGranules(innermost, t);
}

/// A persistent list: a view of `size` elements of `elementSlots` slots each. `buffer` owns the
/// slots and knows how far it may still grow at either end (runtime/walk/list.h).
struct ListBuffer;
struct ListObject {
  Slot *elements;
  int64_t size;
  int64_t elementSlots;
  ListBuffer *buffer;
};

//===----------------------------------------------------------------------===//
// Type descriptions, for readers and printers
//===----------------------------------------------------------------------===//

enum class TypeKind : uint8_t { Int, Float, Bool, Token, Tensor, List, Tuple, Data };

struct TypeDesc {
  TypeKind kind = TypeKind::Int;
  DType dtype = DType::F32;   ///< tensors
  std::vector<int64_t> shape; ///< tensors; -1 where per-instance
  /// Tensors: the source's name of each extent (may be "?"). Lists of a length: its name.
  std::vector<std::string> dimNames;
  bool isToken = false;           ///< tensors of tokens
  std::string vocab;              ///< tokens and token tensors: the vocabulary's name
  std::vector<uint32_t> children; ///< list: element; tuple: fields (indices into TypeTable)
  uint32_t data = 0;              ///< data: index into TypeTable::data
  /// Lists that have so many elements in all values; -1: the number is the instance's own.
  std::optional<int64_t> length = {};
};

/// Whether values are tensors that have gradients.
inline bool isFloat(const TypeDesc &type) {
  return type.kind == TypeKind::Tensor &&
         (type.dtype == DType::F32 || type.dtype == DType::F16 || type.dtype == DType::BF16);
}

struct CtorDesc {
  std::string name;
  std::vector<std::string> fieldNames;
  std::vector<uint32_t> fieldTypes;
};

struct DataDesc {
  std::string name; ///< source form, such as `Rose<f32[hidden]>`
  std::vector<CtorDesc> ctors;
};

struct TypeTable {
  std::vector<TypeDesc> types;
  std::vector<DataDesc> data;

  /// Slots that a value of this type takes.
  int64_t slots(uint32_t type) const {
    const TypeDesc &t = types[type];
    int64_t n = 1;
    if (t.kind == TypeKind::Tensor) {
      for (int64_t extent : t.shape)
        n += extent < 0;
    } else if (t.kind == TypeKind::Tuple) {
      n = 0;
      for (uint32_t child : t.children)
        n += slots(child);
    }
    return n;
  }
};

} // namespace sheaf::rt

#endif // SHEAF_RUNTIME_MODEL_LAYOUT_H
