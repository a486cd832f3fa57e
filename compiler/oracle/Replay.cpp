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

bool isSame(double own, double logged) {
  return own == logged || (std::isnan(own) && std::isnan(logged));
}

/// Of a float from what was read.
double floatDistance(double own, double logged) {
  if (isSame(own, logged))
    return 0;
  double distance = (own - logged) / std::max(1.0, std::fabs(own));
  return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
}

double numberOf(const Value &value) {
  auto *number = std::get_if<double>(&value);
  return number ? *number : static_cast<double>(toInt(value));
}

} // namespace

Replay::Replay(const std::vector<std::string> &paths, double near, bool hasIntResults)
    : places_(paths.size()), near_(near), hasIntResults_(hasIntResults) {
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

bool Replay::begin(const Context &context) {
  context_.emplace(context);
  decisions_.begin(context.weights);
  reads_.clear();
  own_.clear();
  ownBefore_.clear();
  turned_ = 0;
  return hasIntResults_ || !places_.empty();
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

/// A number that the oracle finds here. Where it decides otherwise, the tensor changes.
void Replay::compare(uint32_t place, const TensorPtr &tensor, size_t at, double logged) {
  decisions_.refresh(Value(tensor), *context_);
  double own = tensor->data[at];
  bool isFloat = ops::isFloat(tensor->dtype), mayChange = decisions_.knows(*tensor);
  Read read{place, isFloat, own, logged, isFloat ? floatDistance(own, logged) : 0};
  read.tensor = tensor;
  read.at = at;
  if (!isFloat && !isSame(own, logged)) {
    ++turned_;
    change(read);
  }
  if (!mayChange)
    read.tensor = {};
  reads_.push_back(std::move(read));
}

void Replay::change(Read &read) {
  Decisions::Change change =
      decisions_.change(*read.tensor, read.at, read.logged, near_, *context_);
  read.turns.append(change.turns);
  read.isComplete &= change.isComplete;
  read.distance = decisions_.distance(read.turns);
}

Value Replay::read(mlir::Operation *op, llvm::ArrayRef<mlir::Location> calls,
                   llvm::ArrayRef<Value> operands) {
  auto tensor = std::get<TensorPtr>(operands[0]);
  mlir::Type type = op->getResult(0).getType();
  std::optional<uint32_t> number = placeOf(op, calls);
  auto list = mlir::dyn_cast<ir::ListType>(type);
  if (!list) {
    size_t at = operands.size() > 1 ? static_cast<size_t>(toInt(operands[1])) : 0;
    return readElement(number, tensor, at, type);
  }
  std::vector<Value> all;
  for (size_t at = 0; at < tensor->data.size(); ++at)
    all.push_back(readElement(number, tensor, at, list.getElement()));
  return makeList(std::move(all));
}

/// Whichever is turned around, of one tensor or of others, comes after those read before: so each
/// element is looked at when its turn comes.
Value Replay::readElement(std::optional<uint32_t> number, const TensorPtr &tensor, size_t at,
                          mlir::Type type) {
  decisions_.refresh(Value(tensor), *context_);
  double own = tensor->data.at(at);
  Place *place = number ? &places_[*number] : nullptr;
  if (!place || place->next == place->log.size())
    return fromElement(own, type);
  Value logged = fromSlot(place->log[place->next++], type);
  compare(*number, tensor, at, numberOf(logged));
  if (type.isF64() && !isSame(own, numberOf(logged)))
    noteOwn(numberOf(logged), own);
  return logged;
}

void Replay::prepare(const Step &step, llvm::ArrayRef<Value> operands) {
  if (step.kind == Step::Kind::Apply || mlir::isa<ir::RowsOp>(step.op))
    decisions_.refresh(operands, *context_);
}

void Replay::settle() {
  // One that is no longer what it was found to be, because of a later one, must be that as well.
  for (Read &read : reads_) {
    if (!read.tensor || read.isFloat)
      continue;
    decisions_.refresh(Value(read.tensor), *context_);
    if (!isSame(read.tensor->data[read.at], read.logged))
      change(read);
  }
  decisions_.refreshAll(*context_);
  for (Read &read : reads_) {
    if (!read.tensor)
      continue;
    double own = read.tensor->data[read.at];
    read.isComplete &= decisions_.isComplete();
    read.distance = read.isFloat                ? floatDistance(own, read.logged)
                    : !isSame(own, read.logged) ? std::numeric_limits<double>::infinity()
                    : read.turns.empty()        ? 0
                                                : decisions_.distance(read.turns);
  }
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
  else if (!own_.empty() || !ownBefore_.empty())
    noteHost(step, operands, results);
}

/// Arithmetic on host floats, once more on what they would be.
void Replay::noteHost(const Step &step, llvm::ArrayRef<Value> operands, const Values &results) {
  if (results.size() != 1 || std::holds_alternative<CellPtr>(results[0]))
    return;
  // One that has the same bits as another need not be it: each alone, and all of them.
  llvm::SmallVector<Value, 4> all(operands.begin(), operands.end());
  llvm::SmallVector<llvm::SmallVector<Value, 4>, 2> choices;
  for (size_t i = 0; i < operands.size(); ++i)
    if (auto *number = std::get_if<double>(&operands[i]))
      if (auto found = ownOf(*number)) {
        choices.emplace_back(operands.begin(), operands.end());
        choices.back()[i] = all[i] = *found;
      }
  if (choices.size() > 1)
    choices.push_back(all);
  for (const auto &choice : choices) {
    Value result = compute(step, choice, *context_)[0];
    if (result == results[0])
      continue;
    if (auto *number = std::get_if<double>(&results[0]))
      noteOwn(*number, std::get<double>(result));
    else
      ++turned_;
    return;
  }
}

std::optional<double> Replay::ownOf(double logged) const {
  for (const auto *numbers : {&own_, &ownBefore_})
    if (auto it = numbers->find(bitsOf(logged)); it != numbers->end())
      return it->second;
  return std::nullopt;
}

void Replay::noteOwn(double logged, double own) {
  constexpr size_t kMostNumbers = 1 << 16;
  if (bitsOf(logged) == bitsOf(own))
    return;
  if (own_.size() == kMostNumbers) {
    ownBefore_ = std::move(own_);
    own_.clear();
  }
  own_[bitsOf(logged)] = own;
}

void Replay::compareResult(const Value &expected, const Value &actual) {
  if (!hasIntResults_)
    return;
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
    for (size_t i = 0; i < (*a)->data.size(); ++i)
      compare(kResult, *a, i, tensor(y).data[i]);
  }
  settle();
  // What nothing explains is told by its distance.
  for (const Read &read : reads_)
    if (read.place == kResult && read.tensor)
      const_cast<ops::RefTensor &>(*read.tensor).data[read.at] = read.logged;
}

} // namespace sheaf::oracle
