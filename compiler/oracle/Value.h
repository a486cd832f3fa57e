//===- Value.h - Values of the oracle ---------------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ORACLE_VALUE_H
#define SHEAF_COMPILER_ORACLE_VALUE_H

#include "compiler/ops/Op.h"

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

namespace sheaf::oracle {

struct Cell;
using TensorPtr = std::shared_ptr<const ops::RefTensor>;
using CellPtr = std::shared_ptr<const Cell>;

/// A value: int (or token), float, bool, tensor, or a cell (tuple, data value, list). Immutable;
/// copies share. Values may be as deep as memory allows: they are destroyed without recursion.
using Value = std::variant<std::monostate, int64_t, double, bool, TensorPtr, CellPtr>;

/// A tuple, a value of a data type, or a node of the balanced tree that a list is.
struct Cell {
  enum class Kind : uint8_t {
    Tuple,
    Data,
    Empty, ///< the empty list
    Leaf,  ///< a list of one element, its child
    Join   ///< a list made of two, its children
  };
  Kind kind;
  int32_t height = 0; ///< lists: of the tree
  int64_t number = 0; ///< data: the constructor; lists: the number of elements
  std::vector<Value> children;

  Cell(Kind kind, int64_t number, std::vector<Value> children, int32_t height = 0)
      : kind(kind), height(height), number(number), children(std::move(children)) {}
  ~Cell();
};

Value makeTuple(std::vector<Value> fields);
Value makeData(int64_t ctor, std::vector<Value> fields);
Value makeTensor(ops::RefTensor tensor);

//===--- Lists: every operation takes O(log n) but where n elements are made ---===//

Value makeList(std::vector<Value> elements);
Value concat(const Value &a, const Value &b);
int64_t length(const Value &list);
/// The caller has checked 0 <= index < length.
Value element(const Value &list, int64_t index);
/// The caller has checked 0 <= lo <= hi <= length.
Value slice(const Value &list, int64_t lo, int64_t hi);
std::vector<Value> elements(const Value &list);

inline const Cell &cell(const Value &v) { return *std::get<CellPtr>(v); }
inline const ops::RefTensor &tensor(const Value &v) { return *std::get<TensorPtr>(v); }

} // namespace sheaf::oracle

#endif // SHEAF_COMPILER_ORACLE_VALUE_H
