//===- Replay.cpp - Reads as compiled code found them ---------------------===//

#include "compiler/oracle/Replay.h"

#include "compiler/ir/Program.h"

#include "llvm/ADT/STLExtras.h"

#include <bit>
#include <cmath>
#include <limits>

namespace sheaf::oracle {
namespace {

uint64_t bitsOf(double x) { return std::bit_cast<uint64_t>(x); }

/// A slot of a log as the type of a read.
Value fromSlot(rt::Slot slot, mlir::Type type) {
  if (type.isF64())
    return std::bit_cast<double>(slot);
  if (type.isInteger(1))
    return slot != 0;
  return static_cast<int64_t>(slot);
}

Value fromElement(double element, mlir::Type type) {
  if (type.isF64())
    return element;
  if (type.isInteger(1))
    return element != 0;
  return static_cast<int64_t>(element);
}

double numberOf(const Value &value) {
  auto *number = std::get_if<double>(&value);
  return number ? *number : static_cast<double>(toInt(value));
}

} // namespace

Replay::Replay(const std::vector<std::string> &paths) : places_(paths.size()) {
  for (const auto &[number, path] : llvm::enumerate(paths)) {
    numbers_[path] = static_cast<uint32_t>(number);
    pathLength_ = std::max(pathLength_, static_cast<size_t>(llvm::count(path, '<')));
  }
}

void Replay::expect(std::span<const rt::LoggedRead> log) {
  for (Place &place : places_)
    place = {};
  for (const rt::LoggedRead &read : log)
    places_.at(read.place).log.push_back(read.value);
}

void Replay::begin(const Context &context) {
  // What is computed anew is told to no one.
  options_ = context.options;
  options_.onStopGradient = {};
  context_.emplace(Context{context.arithmetic, context.precision, context.weights, options_});
  decisions_.begin(context.weights);
  reads_.clear();
  own_.clear();
  turned_ = 0;
}

std::optional<uint32_t> Replay::placeOf(mlir::Operation *op,
                                        llvm::ArrayRef<mlir::Location> calls) const {
  llvm::SmallVector<std::string, 2> path = ir::pathOf(op->getLoc());
  for (mlir::Location call : calls)
    llvm::append_range(path, ir::pathOf(call));
  for (size_t length = std::min(path.size(), pathLength_ + 1); length-- > 0;) {
    auto it = numbers_.find(ir::pathText(llvm::ArrayRef(path).take_front(length + 1)));
    if (it != numbers_.end())
      return it->second;
  }
  return std::nullopt;
}

/// Of a number that the oracle finds here. Where it decides otherwise, the tensor changes.
double Replay::distanceOf(const ops::RefTensor &tensor, size_t at, double logged) {
  double own = tensor.data[at];
  if (own == logged || (std::isnan(own) && std::isnan(logged)))
    return 0;
  if (ops::isFloat(tensor.dtype)) {
    double distance = (own - logged) / std::max(1.0, std::fabs(own));
    return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
  }
  ++turned_;
  return decisions_.change(tensor, at, logged, *context_);
}

Value Replay::read(mlir::Operation *op, llvm::ArrayRef<mlir::Location> calls,
                   const TensorPtr &tensor) {
  mlir::Type type = op->getResult(0).getType();
  double own = tensor->data.at(0);
  std::optional<uint32_t> number = placeOf(op, calls);
  Place *place = number ? &places_[*number] : nullptr;
  if (!place || place->next == place->log.size())
    return fromElement(own, type);
  Value logged = fromSlot(place->log[place->next++], type);
  double distance = distanceOf(*tensor, 0, numberOf(logged));
  reads_.push_back({*number, own, numberOf(logged), distance});
  if (type.isF64() && distance != 0)
    noteOwn(numberOf(logged), own);
  return logged;
}

std::optional<rt::LoggedRead> Replay::leftOver() const {
  for (const auto &[number, place] : llvm::enumerate(places_))
    if (place.next < place.log.size())
      return rt::LoggedRead{static_cast<uint32_t>(number), place.log[place.next]};
  return std::nullopt;
}

void Replay::note(const Step &step, llvm::ArrayRef<Value> operands, const Values &results) {
  if (step.kind == Step::Kind::Apply || mlir::isa<ir::RowsOp>(step.op))
    decisions_.note(step, operands, results);
  else if (!own_.empty())
    noteHost(step, operands, results);
}

/// Arithmetic on host floats, once more on what they may be.
void Replay::noteHost(const Step &step, llvm::ArrayRef<Value> operands, const Values &results) {
  if (results.size() != 1 || std::holds_alternative<CellPtr>(results[0]))
    return;
  // The operands as they are, and every other choice.
  std::vector<llvm::SmallVector<Value, 4>> choices{{operands.begin(), operands.end()}};
  for (size_t i = 0; i < operands.size(); ++i) {
    auto *number = std::get_if<double>(&operands[i]);
    auto it = number ? own_.find(bitsOf(*number)) : own_.end();
    if (it == own_.end())
      continue;
    for (size_t j = 0, count = choices.size(); j < count; ++j)
      for (double own : it->second) {
        choices.push_back(choices[j]);
        choices.back()[i] = own;
      }
  }
  bool turns = false;
  for (const auto &choice : llvm::drop_begin(choices)) {
    Value result = compute(step, choice, *context_)[0];
    if (auto *number = std::get_if<double>(&results[0]))
      noteOwn(*number, std::get<double>(result));
    else
      turns |= result != results[0];
  }
  turned_ += turns;
}

void Replay::noteOwn(double logged, double own) {
  constexpr size_t kMostChoices = 4;
  auto &choices = own_[bitsOf(logged)];
  if (choices.size() < kMostChoices && bitsOf(logged) != bitsOf(own) &&
      llvm::none_of(choices, [&](double x) { return bitsOf(x) == bitsOf(own); }))
    choices.push_back(own);
}

void Replay::compareResult(const Value &expected, const Value &actual) {
  std::vector<std::pair<Value, Value>> pending{{expected, actual}};
  while (!pending.empty()) {
    auto [x, y] = std::move(pending.back());
    pending.pop_back();
    if (x.index() != y.index())
      continue;
    if (auto *a = std::get_if<CellPtr>(&x)) {
      const Cell &b = cell(y);
      bool isList = (*a)->kind >= Cell::Kind::Empty;
      if (isList != (b.kind >= Cell::Kind::Empty) || (*a)->number != b.number)
        continue;
      std::vector<Value> left = isList ? elements(x) : (*a)->children,
                         right = isList ? elements(y) : b.children;
      for (size_t i = std::min(left.size(), right.size()); i-- > 0;)
        pending.emplace_back(left[i], right[i]);
    }
    auto *a = std::get_if<TensorPtr>(&x);
    if (!a || ops::isFloat((*a)->dtype) || (*a)->data.size() != tensor(y).data.size())
      continue;
    for (size_t i = 0; i < (*a)->data.size(); ++i) {
      double own = (*a)->data[i], logged = tensor(y).data[i];
      reads_.push_back({kResult, own, logged, distanceOf(**a, i, logged)});
      // What no single decision explains is told by its distance.
      decisions_.set(**a, i, logged);
    }
  }
}

} // namespace sheaf::oracle
