//===- Compute.cpp - Host values, lists and parameters --------------------===//

#include "compiler/oracle/Compute.h"

#include "compiler/ir/Program.h"
#include "compiler/ops/Reference.h"
#include "runtime/model/keys.h"

#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

namespace sheaf::oracle {
namespace {

using mlir::Operation;
using ValuesRef = llvm::ArrayRef<Value>;

std::vector<Value> toVector(ValuesRef operands) { return {operands.begin(), operands.end()}; }

Value convert(ir::ConvertOp op, const Value &value) {
  mlir::Type to = op.getType();
  if (auto *number = std::get_if<double>(&value)) {
    if (to.isF64())
      return *number;
    if (to.isInteger(1))
      return *number != 0;
    return ops::truncateToInt(*number, ops::DType::I64);
  }
  int64_t number = toInt(value);
  if (to.isF64())
    return static_cast<double>(number);
  if (to.isInteger(1))
    return number != 0;
  return number;
}

Value get(const Value &list, int64_t index) {
  if (index < 0 || index >= length(list))
    throw Failure{"index " + std::to_string(index) + " is out of range for a list of " +
                  std::to_string(length(list))};
  return element(list, index);
}

/// `{0}` and `{1}` stand for the values, if there are any.
std::string fillIn(llvm::StringRef text, ValuesRef values) {
  std::string filled = text.str();
  for (size_t i = 0; i < values.size(); ++i) {
    std::string name = "{" + std::to_string(i) + "}";
    if (size_t at = filled.find(name); at != std::string::npos)
      filled.replace(at, name.size(), std::to_string(toInt(values[i])));
  }
  return filled;
}

Value cut(const Value &list, int64_t lo, int64_t hi) {
  if (lo < 0 || hi < lo || hi > length(list))
    throw Failure{"slice " + std::to_string(lo) + ":" + std::to_string(hi) +
                  " is out of range for a list of " + std::to_string(length(list))};
  return slice(list, lo, hi);
}

Value reversed(const Value &list) {
  std::vector<Value> all = elements(list);
  std::reverse(all.begin(), all.end());
  return makeList(std::move(all));
}

Value zip(ValuesRef lists) {
  std::vector<std::vector<Value>> columns;
  for (const Value &list : lists)
    columns.push_back(elements(list));
  std::vector<Value> rows;
  for (size_t i = 0; !columns.empty() && i < columns[0].size(); ++i) {
    std::vector<Value> row;
    for (auto &column : columns) {
      if (column.size() != columns[0].size())
        throw Failure{"cannot zip lists of " + std::to_string(columns[0].size()) + " and " +
                      std::to_string(column.size()) + " elements"};
      row.push_back(column[i]);
    }
    rows.push_back(makeTuple(std::move(row)));
  }
  for (auto &column : columns)
    if (column.size() != columns[0].size())
      throw Failure{"cannot zip lists of " + std::to_string(columns[0].size()) + " and " +
                    std::to_string(column.size()) + " elements"};
  return makeList(std::move(rows));
}

Value range(int64_t lo, int64_t hi) {
  constexpr uint64_t kMostElements = 1'000'000'000;
  if (lo<hi &&static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo)> kMostElements)
    throw Failure{"a range from " + std::to_string(lo) + " to " + std::to_string(hi) +
                  " is too long"};
  std::vector<Value> all;
  for (int64_t i = lo; i < hi; ++i)
    all.push_back(i);
  return makeList(std::move(all));
}

Value rows(const ops::RefTensor &matrix) {
  std::vector<Value> all;
  ops::RefTensor row;
  row.dtype = matrix.dtype;
  row.shape.assign(matrix.shape.begin() + 1, matrix.shape.end());
  auto begin = matrix.data.begin();
  for (int64_t i = 0; i < matrix.shape[0]; ++i, begin += row.size()) {
    row.data.assign(begin, begin + row.size());
    all.push_back(makeTensor(row));
  }
  return makeList(std::move(all));
}

} // namespace

Values compute(const Step &step, ValuesRef x, const Context &context) {
  if (auto scalar = computeScalar(step.op, x))
    return {*scalar};
  return llvm::TypeSwitch<Operation *, Values>(step.op)
      .Case<ir::ParamRefOp>(
          [&](auto op) -> Values { return {context.weights.at(op.getParam().str())}; })
      .Case<ir::DimOp>([&](auto op) -> Values {
        return {tensor(x[0]).shape[static_cast<size_t>(op.getAxis())]};
      })
      .Case<ir::GhostOp>([&](auto) -> Values { return {x[0]}; })
      .Case<ir::ReadOp>([&](auto op) -> Values {
        const ops::RefTensor &from = tensor(x[0]);
        auto list = mlir::dyn_cast<ir::ListType>(op.getType());
        if (!list) {
          size_t at = op.getAt() ? static_cast<size_t>(toInt(x[1])) : 0;
          return {fromElement(from.data.at(at), op.getType())};
        }
        std::vector<Value> all;
        for (double element : from.data)
          all.push_back(fromElement(element, list.getElement()));
        return {makeList(std::move(all))};
      })
      .Case<ir::ConvertOp>([&](auto op) -> Values { return {convert(op, x[0])}; })
      .Case<ir::DivOp, ir::RemOp>([&](auto op) -> Values {
        int64_t a = toInt(x[0]), b = toInt(x[1]);
        bool isDiv = mlir::isa<ir::DivOp>(op.getOperation());
        if (b == 0)
          throw Failure{"division by zero"};
        if (b == -1) // the quotient of the least int wraps
          return {isDiv ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : int64_t(0)};
        return {isDiv ? a / b : a % b};
      })
      .Case<ir::SplitKeyOp>([&](auto op) -> Values {
        uint64_t key = rt::splitKey(static_cast<uint64_t>(toInt(x[0])), op.getSite());
        if (x.size() > 1)
          key = rt::splitKey(key, static_cast<uint64_t>(toInt(x[1])));
        return {static_cast<int64_t>(key)};
      })
      .Case<ir::CheckOp>([&](auto op) -> Values {
        if (toInt(x[0]) == 0)
          throw Failure{fillIn(op.getMessage(), x.drop_front())};
        return {};
      })
      .Case<ir::TupleOp>([&](auto) -> Values { return {makeTuple(toVector(x))}; })
      .Case<ir::GetOp>([&](auto op) -> Values {
        return {cell(x[0]).children[static_cast<size_t>(op.getIndex())]};
      })
      .Case<ir::ConstructOp>([&](auto op) -> Values {
        return {makeData(static_cast<int64_t>(op.getCtor()), toVector(x))};
      })
      .Case<ir::ListMakeOp>([&](auto) -> Values { return {makeList(toVector(x))}; })
      .Case<ir::ConsOp>([&](auto) -> Values { return {concat(makeList({x[0]}), x[1])}; })
      .Case<ir::AppendOp>([&](auto) -> Values { return {concat(x[0], makeList({x[1]}))}; })
      .Case<ir::ListConcatOp>([&](auto) -> Values { return {concat(x[0], x[1])}; })
      .Case<ir::LenOp>([&](auto) -> Values { return {length(x[0])}; })
      .Case<ir::ListGetOp>([&](auto) -> Values { return {get(x[0], toInt(x[1]))}; })
      .Case<ir::ListSliceOp>([&](auto) -> Values { return {cut(x[0], toInt(x[1]), toInt(x[2]))}; })
      .Case<ir::ReverseOp>([&](auto) -> Values { return {reversed(x[0])}; })
      .Case<ir::ZipOp>([&](auto) -> Values { return {zip(x)}; })
      .Case<ir::RangeOp>([&](auto) -> Values { return {range(toInt(x[0]), toInt(x[1]))}; })
      .Case<ir::RowsOp>([&](auto) -> Values { return {rows(tensor(x[0]))}; })
      .Default([](Operation *op) -> Values {
        throw InternalError("the oracle does not know the operation " +
                            op->getName().getStringRef().str());
      });
}

} // namespace sheaf::oracle
