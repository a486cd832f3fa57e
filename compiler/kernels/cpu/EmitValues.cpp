//===- EmitValues.cpp - Expressions on vectors of lanes -------------------===//

#include "compiler/kernels/cpu/Emitter.h"
#include "compiler/ops/Expand.h"
#include "runtime/model/error.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace sheaf::kernels::cpu {

/// 16-bit floats are moved as integers: LLVM would convert them where it takes vectors apart.
Type Emitter::storageType(ops::DType dtype) {
  switch (dtype) {
  case ops::DType::F32:
    return b.getF32Type();
  case ops::DType::BF16:
  case ops::DType::F16:
    return b.getI16Type();
  case ops::DType::I64:
    return b.getI64Type();
  default:
    return b.getI32Type();
  }
}

/// All floats compute in f32; bools are i1.
Type Emitter::laneType(ops::DType dtype) {
  if (ops::isFloat(dtype))
    return b.getF32Type();
  return dtype == ops::DType::Bool ? b.getI1Type() : storageType(dtype);
}

static Type likeShape(Value value, Type element) {
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    return VectorType::get(vector.getShape(), element);
  return element;
}

Value Emitter::toLanes(Value stored, ops::DType dtype) {
  Type type = likeShape(stored, laneType(dtype));
  if (type == stored.getType())
    return stored;
  if (ops::isFloat(dtype)) {
    Type narrow = likeShape(stored, ops::elementType(b.getContext(), dtype));
    return arith::ExtFOp::create(b, type, Value(arith::BitcastOp::create(b, narrow, stored)));
  }
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(stored.getType()));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, stored, zero);
}

Value Emitter::toStorage(Value lanes, ops::DType dtype) {
  Type type = likeShape(lanes, storageType(dtype));
  if (type == lanes.getType())
    return lanes;
  if (ops::isFloat(dtype)) {
    Type narrow = likeShape(lanes, ops::elementType(b.getContext(), dtype));
    // What was so narrow before is so again.
    auto wide = lanes.getDefiningOp<arith::ExtFOp>();
    Value rounded = wide && wide.getIn().getType() == narrow
                        ? wide.getIn()
                        : Value(arith::TruncFOp::create(b, narrow, lanes));
    return arith::BitcastOp::create(b, type, rounded);
  }
  return arith::ExtUIOp::create(b, type, lanes);
}

Value Emitter::Scope::find(Value value, const View &view) const {
  auto views = known.find(value);
  if (views != known.end())
    for (auto &[knownView, lanes] : views->second)
      if (knownView == view)
        return lanes;
  return {};
}

/// Whether a kept tensor's value at this place is computed by this very stage.
bool Emitter::isComputedAlong(Value value, const View &view, const Scope &scope) {
  const Stage &stage = *scope.stage;
  Role role = roleOf(value);
  return stage.kind != Stage::Reduce && role != Role::Argument && role != Role::Weight &&
         role != Role::Assemble && role != Role::Reduction && role != Role::Dot &&
         plan_.levels.lookup(value) == stage.level && plan_.shapes->of(value) == stage.shape &&
         view == identityView(stage.shape.size());
}

/// The lanes of an expression at a place. `computed`: the value itself is not read from memory.
///
/// What is the same for all lanes of a row is computed once a row (Scope::row). LLVM could not: it
/// sees loads that the stores of the row might change.
Value Emitter::evaluate(Value root, const View &rootView, Scope &scope, bool computed) {
  // What an expression needs goes on top of it: programs make deep ones.
  llvm::SmallVector<std::pair<Value, View>> work{{root, rootView}};
  llvm::SaveAndRestore row(row_, scope.row);
  while (!work.empty()) {
    auto [value, view] = work.back();
    if (scope.find(value, view)) {
      work.pop_back();
      continue;
    }
    OpBuilder::InsertionGuard guard(b);
    if (scope.row && !dependsOn(view, scope.place->lanesAxis))
      b.setInsertionPoint(scope.row);
    size_t before = work.size();
    auto need = [&](Value operand, View through) {
      Value lanes = scope.find(operand, through);
      if (!lanes)
        work.push_back({operand, std::move(through)});
      return lanes;
    };
    Value lanes;
    const Buffer *buffer = plan_.bufferOf.lookup(value);
    if (buffer && !(computed && work.size() == 1) && !isComputedAlong(value, view, scope)) {
      if (needPlaces(view, scope, need))
        lanes = load(*buffer, view, *scope.place);
      placesOnTheWay_.clear();
    } else if (const Product *product = plan_.productOf.lookup(value)) {
      for (auto [i, a] : llvm::enumerate(scope.stage->accumulators))
        if (a.product == product && a.column == view.back().offset.constant())
          lanes = scope.accumulators[i];
    } else if (roleOf(value) == Role::Elementwise) {
      for (Value operand : llvm::reverse(value.getDefiningOp()->getOperands()))
        if (isa<RankedTensorType>(operand.getType()))
          need(operand, throughBroadcast(value, operand, view, *plan_.shapes));
      if (work.size() == before)
        lanes = emitElementwise(value, view, scope);
    } else if (roleOf(value) == Role::Fold) {
      if (need(value.getDefiningOp()->getOperand(0), view))
        lanes = emitFold(value, view, scope);
    } else if (roleOf(value) == Role::Fill) {
      lanes = fill(value, view, *scope.place);
    } else if (roleOf(value) == Role::View) {
      if (movementOf(value) == ops::Movement::Reshape && !isPlainReshape(value, *plan_.shapes)) {
        const Buffer *even = regrouped(value);
        lanes = even ? load(*even, view, *scope.place) : loadReshaped(value, view, *scope.place);
      } else {
        auto [source, through] = throughView(value, view, *plan_.shapes);
        lanes = need(source, std::move(through));
      }
    }
    if (lanes)
      scope.known[value].push_back({view, lanes});
    else if (work.size() == before)
      throw InternalError("block " + kernel_.symbol + ": a tensor of role " +
                          std::to_string(static_cast<int>(roleOf(value))) +
                          " is neither kept nor computed in place");
  }
  return scope.find(root, rootView);
}

/// Whether the indices of a view that no memory holds are known; they are in placesOnTheWay_ then.
bool Emitter::needPlaces(const View &view, Scope &scope,
                         llvm::function_ref<Value(Value, View)> need) {
  bool areKnown = true;
  for (const AxisMap &map : view) {
    if (!map.index || map.mirrored || plan_.bufferOf.contains(map.index))
      continue;
    Value lanes = need(map.index, *map.indexView);
    areKnown &= lanes != nullptr;
    if (!areKnown)
      continue;
    Value last = add(extent(map.indexed), constant(-1));
    auto type = VectorType::get({scope.place->lanes}, i64_);
    if (lanes.getType() != type)
      lanes = arith::ExtSIOp::create(b, type, lanes);
    placesOnTheWay_.push_back({map.index, *map.indexView, map.indexed, held(lanes, last)});
  }
  return areKnown;
}

/// All tensor operands are known.
Value Emitter::emitElementwise(Value value, const View &view, Scope &scope) {
  auto apply = value.getDefiningOp<ir::ApplyOp>();
  const auto &rule = std::get<ops::Elementwise>(batchRuleOf(value));
  SmallVector<Value> operands;
  bool anyLanes = false;
  for (Value operand : apply.getOperands()) {
    bool isTensor = isa<RankedTensorType>(operand.getType());
    anyLanes |= isTensor;
    operands.push_back(
        isTensor ? scope.find(operand, throughBroadcast(value, operand, view, *plan_.shapes))
                 : scalar(operand));
  }
  if (!anyLanes)
    return splat(rule.emit(b, operands), scope.place->lanes);
  for (Value &operand : operands)
    if (!isa<VectorType>(operand.getType()))
      operand = splat(operand, scope.place->lanes);
  if (rule.factor)
    return toLanes(toFactors(operands[0]), ops::DType::BF16);
  return rule.emit(b, operands);
}

/// The operand that it begins with is known. The elements' rows are found by the ids in the
/// record's table.
Value Emitter::emitFold(Value value, const View &view, Scope &scope) {
  auto apply = value.getDefiningOp<ir::ApplyOp>();
  auto list = cast<BlockArgument>(apply.getOperand(1));
  const Buffer &buffer = *plan_.bufferOf.lookup(list);
  Value table = base(buffer), length = extent(lengthOf(list.getArgNumber()));
  Value init = scope.find(apply.getOperand(0), view);
  auto steps = scf::ForOp::create(b, constant(0), length, constant(1), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(steps.getBody());
  Value entry = bytes(table, mul(steps.getInductionVar(), constant(sizeof(int32_t))));
  Value element =
      load(buffer, view, *scope.place, granule(loadAs(b.getI32Type(), entry, sizeof(int32_t))));
  SmallVector<Value> pair{steps.getRegionIterArg(0), element};
  if (ops::intAttr(apply, "reversed"))
    std::swap(pair[0], pair[1]);
  Value next = std::get<ops::Fold>(batchRuleOf(value)).emit(b, pair);
  scf::YieldOp::create(b, next);
  return steps.getResult(0);
}

Value Emitter::laneNumbers(Type element, int64_t lanes) {
  SmallVector<Attribute> numbers;
  for (int64_t lane = 0; lane < lanes; ++lane)
    numbers.push_back(b.getIntegerAttr(element, lane));
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(VectorType::get({lanes}, element), numbers));
}

Value Emitter::fill(Value value, const View &view, const Place &place) {
  auto apply = value.getDefiningOp<ir::ApplyOp>();
  Type element = laneType(dtypeOf(value));
  if (std::get<ops::Fill>(batchRuleOf(value)).kind == ops::Fill::Constant) {
    double number = cast<FloatAttr>(apply.getAttrs().get("value")).getValueAsDouble();
    TypedAttr attr = isa<FloatType>(element)
                         ? TypedAttr(b.getFloatAttr(element, number))
                         : TypedAttr(b.getIntegerAttr(element, static_cast<int64_t>(number)));
    return splat(arith::ConstantOp::create(b, attr), place.lanes);
  }
  // Iota: the index along its only axis.
  const AxisMap &first = view.front();
  if (first.index && dependsOn(view, place.lanesAxis)) {
    SmallVector<Value> numbers;
    for (int64_t lane = 0; lane < place.lanes; ++lane) {
      Place at = place;
      Value &index = at.index[static_cast<size_t>(place.lanesAxis)];
      index = add(index, constant(lane));
      numbers.push_back(arith::TruncIOp::create(b, element, indexOf(first, at)));
    }
    auto type = VectorType::get({place.lanes}, element);
    return vector::FromElementsOp::create(b, type, numbers);
  }
  Value number = indexOf(first, place);
  Value lanes = splat(arith::TruncIOp::create(b, element, number), place.lanes);
  if (place.lanesAxis < 0 || first.axis != place.lanesAxis)
    return lanes;
  return arith::AddIOp::create(b, lanes, laneNumbers(element, place.lanes));
}

/// Whether a view's vectors are not consecutive elements: the lanes axis moves an outer axis.
static bool isScattered(const View &view, int lanesAxis) {
  if (lanesAxis < 0)
    return false;
  for (const AxisMap &map : view) {
    if (map.axis == lanesAxis && &map != &view.back())
      return true;
    if (map.index && dependsOn(*map.indexView, lanesAxis))
      return true;
  }
  return false;
}

/// Lanes beyond the extent repeat its last element: they are not stored.
Value Emitter::loadLaneByLane(const Buffer &buffer, const Place &place,
                              llvm::function_ref<Value(const Place &)> addressOf) {
  SmallVector<Value> elements;
  Value last = add(extent(laneExtent_), constant(-1));
  for (int64_t lane = 0; lane < place.lanes; ++lane) {
    Place at = place;
    if (place.lanesAxis >= 0) {
      Value &index = at.index[static_cast<size_t>(place.lanesAxis)];
      index = minimum(add(index, constant(lane)), last);
      at.lane = lane;
    }
    elements.push_back(loadElement(buffer, addressOf(at)));
    if (place.lanesAxis < 0)
      return splat(toLanes(elements.front(), buffer.dtype), place.lanes);
  }
  auto type = VectorType::get({place.lanes}, storageType(buffer.dtype));
  return toLanes(vector::FromElementsOp::create(b, type, elements), buffer.dtype);
}

/// Lanes that lie so many bytes apart, from `pointer` on. Those beyond the extent repeat its last
/// element.
Value Emitter::loadApart(const Buffer &buffer, Value pointer, Value stride, const Place &place) {
  SmallVector<Value> elements;
  bool isWhole = laneExtent_.isConstant() && laneExtent_.constant() % place.lanes == 0;
  Value left = arith::SubIOp::create(b, extent(laneExtent_),
                                     place.index[static_cast<size_t>(place.lanesAxis)]);
  std::optional<int64_t> known = getConstantIntValue(stride);
  Value at = pointer;
  for (int64_t lane = 0; lane < place.lanes; ++lane) {
    if (isWhole && known)
      at = bytes(pointer, lane * *known);
    else if (lane && isWhole)
      at = bytes(at, stride);
    else if (lane)
      at = bytes(at, arith::SelectOp::create(b, isLess(constant(lane), left), stride, constant(0)));
    elements.push_back(loadElement(buffer, at));
  }
  auto type = VectorType::get({place.lanes}, storageType(buffer.dtype));
  return toLanes(vector::FromElementsOp::create(b, type, elements), buffer.dtype);
}

/// The bytes from one place along an iteration axis to the next.
Value Emitter::strideOf(const Buffer &buffer, const View &view, int axis) {
  Value stride = constant(0);
  for (auto [i, map] : llvm::enumerate(view))
    if (map.axis == axis)
      stride = add(stride, strides(buffer)[i]);
  return stride;
}

/// Whether the lanes are consecutive elements of the innermost axis, from the last to the first.
static bool isMirrored(const View &view, int lanesAxis) {
  if (lanesAxis < 0 || view.empty() || !view.back().mirrored)
    return false;
  const AxisMap &from = view.back().indexView->front();
  return from.axis == lanesAxis && !from.index && view.back().axis < 0 &&
         llvm::none_of(
             ArrayRef(view).drop_back(),
             [&](const AxisMap &map) { return dependsOn({map}, lanesAxis); });
}

/// Whole vectors that are turned around; the last of a row, which may reach before its beginning,
/// lane by lane.
Value Emitter::loadMirrored(const Buffer &buffer, const View &view, const Place &place,
                            llvm::function_ref<Value(const Place &)> addressOf) {
  auto whole = [&] {
    Value begin = bytes(addressOf(place), -(place.lanes - 1) * bytesOf(buffer.dtype));
    auto type = VectorType::get({place.lanes}, storageType(buffer.dtype));
    Value lanes = loadAs(type, begin, bytesOf(buffer.dtype));
    SmallVector<int64_t> order = llvm::to_vector(llvm::reverse(llvm::seq(place.lanes)));
    return toLanes(vector::ShuffleOp::create(b, lanes, lanes, order), buffer.dtype);
  };
  if (laneExtent_.isConstant() && laneExtent_.constant() % place.lanes == 0)
    return whole();
  auto type = VectorType::get({place.lanes}, laneType(buffer.dtype));
  Value isWhole = isLess(constant(place.lanes - 2), indexOf(view.back(), place));
  auto branch = scf::IfOp::create(b, TypeRange{type}, isWhole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(b, whole());
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, loadLaneByLane(buffer, place, addressOf));
  return branch.getResult(0);
}

Value Emitter::load(const Buffer &buffer, const View &view, const Place &place, Value base) {
  auto addressAt = [&](const Place &at) {
    return addressFrom(base ? base : this->base(buffer), buffer, indices(view, at));
  };
  if (isMirrored(view, place.lanesAxis))
    return loadMirrored(buffer, view, place, addressAt);
  bool isByLane = llvm::any_of(view, [&](const AxisMap &map) {
    return map.index && dependsOn(*map.indexView, place.lanesAxis);
  });
  if (isScattered(view, place.lanesAxis) && isByLane)
    return loadLaneByLane(buffer, place, addressAt);
  Value pointer = addressAt(place);
  if (isScattered(view, place.lanesAxis))
    return loadApart(buffer, pointer, strideOf(buffer, view, place.lanesAxis), place);
  if (place.lanesAxis < 0 || view.empty() || view.back().axis != place.lanesAxis)
    return splat(toLanes(loadElement(buffer, pointer), buffer.dtype), place.lanes);
  auto type = VectorType::get({place.lanes}, storageType(buffer.dtype));
  return toLanes(loadAs(type, pointer, bytesOf(buffer.dtype)), buffer.dtype);
}

/// Whether the lanes of a regrouped tensor lie in one row of its source: both have rows of whole
/// vectors, and so each vector of one is a vector of the other.
static bool isWholeVectors(const View &view, int lanesAxis, int64_t lanes, const Dim &to,
                           const Dim &from) {
  auto isMultiple = [&](const Dim &dim) { return dim.isConstant() && dim.constant() % lanes == 0; };
  if (lanesAxis < 0 || isScattered(view, lanesAxis))
    return false;
  const AxisMap &last = view.back();
  return last.axis == lanesAxis && last.host.empty() && !last.index && isMultiple(last.offset) &&
         isMultiple(to) && isMultiple(from);
}

/// Elements of a padded tensor that lie one after the other in row-major order: each lane is in the
/// row of the lane before it, or begins the next one. `pointer` is at the first, whose place in its
/// row is `column`. Lanes beyond the extent repeat its last element.
Value Emitter::loadAlongRows(const Buffer &buffer, Value pointer, Value column,
                             const Place &place) {
  Value size = constant(bytesOf(buffer.dtype)), width = extent(buffer.shape.back());
  Value padding = atRecord([&] {
    Value row = rowBytes(buffer);
    return arith::SubIOp::create(b, row, mul(add(width, constant(-1)), size)).getResult();
  });
  Value left = arith::SubIOp::create(b, extent(laneExtent_),
                                     place.index[static_cast<size_t>(place.lanesAxis)]);
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < place.lanes; ++lane) {
    if (lane) {
      Value next = add(column, constant(1));
      Value isEnd = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, next, width);
      column = arith::SelectOp::create(b, isEnd, constant(0), next);
      Value step = arith::SelectOp::create(b, isEnd, padding, size);
      pointer = bytes(pointer,
                      arith::SelectOp::create(b, isLess(constant(lane), left), step, constant(0)));
    }
    elements.push_back(loadElement(buffer, pointer));
  }
  auto type = VectorType::get({place.lanes}, storageType(buffer.dtype));
  return toLanes(vector::FromElementsOp::create(b, type, elements), buffer.dtype);
}

/// The same from the element with this number, of `rows` rows that begin at `first`, as whole
/// vectors of as many rows as the lanes reach into. Where that is none any more, nothing is read of
/// it.
Value Emitter::loadAcrossRows(const Buffer &buffer, Value first, Value number, Value rows,
                              const Place &place) {
  // So many rows after the first take fewer instructions than lane by lane.
  constexpr int64_t kMostRows = 5;
  int64_t size = bytesOf(buffer.dtype);
  const Dim &innermost = buffer.shape.back();
  Value width = divisor(innermost), bytesOfRow = rowBytes(buffer);
  Value padding = atRecord(
      [&] { return arith::SubIOp::create(b, bytesOfRow, mul(width, constant(size))).getResult(); });
  Value row = arith::DivUIOp::create(b, number, width);
  Value column = arith::SubIOp::create(b, number, mul(row, width));
  Value pointer = bytes(first, add(mul(row, bytesOfRow), mul(column, constant(size))));
  auto type = VectorType::get({place.lanes}, storageType(buffer.dtype));
  auto inVectors = [&](int64_t further) {
    Value lanes = loadAs(type, pointer, size);
    Value places =
        arith::AddIOp::create(b, laneNumbers(i64_, place.lanes), splat(column, place.lanes));
    for (int64_t i = 1; i <= further; ++i) {
      Value begin = atRecord([&] { return mul(width, constant(i)); });
      Value reaches = isLess(begin, add(column, constant(place.lanes)));
      Value isRow = arith::AndIOp::create(b, reaches, isLess(add(row, constant(i)), rows));
      Value step = atRecord([&] { return mul(padding, constant(i)); });
      Value at = arith::SelectOp::create(b, isRow, step, constant(0));
      Value next = loadAs(type, bytes(pointer, at), size);
      Value isNext =
          arith::CmpIOp::create(b, arith::CmpIPredicate::sge, places, splat(begin, place.lanes));
      lanes = arith::SelectOp::create(b, isNext, next, lanes);
    }
    return toLanes(lanes, buffer.dtype);
  };
  if (innermost.isConstant()) {
    int64_t further = (innermost.constant() + place.lanes - 2) / innermost.constant();
    return further <= kMostRows ? inVectors(further)
                                : loadAlongRows(buffer, pointer, column, place);
  }
  Value isWide = isLess(constant(place.lanes - 2), width);
  auto lanesType = VectorType::get({place.lanes}, laneType(buffer.dtype));
  auto branch = scf::IfOp::create(b, TypeRange{lanesType}, isWide, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(b, inVectors(1));
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, loadAlongRows(buffer, pointer, column, place));
  return branch.getResult(0);
}

/// A reshape that joins rows of a padded tensor: elements are found by their row-major number,
/// among those of the axes that are regrouped together.
Value Emitter::loadReshaped(Value value, const View &view, const Place &place) {
  const Buffer &buffer = *plan_.bufferOf.lookup(value.getDefiningOp()->getOperand(0));
  const std::vector<Dim> &to = plan_.shapes->of(value), &from = buffer.shape;
  std::vector<Regrouping> groups = regroupings(from, to);
  auto numberAt = [&](const Regrouping &group, const Place &lane) {
    Value number = constant(0);
    for (size_t axis = group.toBegin; axis < group.toEnd; ++axis)
      number = add(mul(number, extent(to[axis])), indexOf(view[axis], lane));
    return number;
  };
  auto indexAt = [&](ArrayRef<Regrouping> of, const Place &lane) {
    std::vector<Value> index(from.size(), constant(0));
    for (const Regrouping &group : of) {
      Value number = numberAt(group, lane);
      for (size_t axis = group.fromEnd; axis-- > group.fromBegin + 1;) {
        Value size = divisor(from[axis]);
        index[axis] = arith::RemUIOp::create(b, number, size);
        number = arith::DivUIOp::create(b, number, size);
      }
      if (group.fromBegin < group.fromEnd)
        index[group.fromBegin] = number;
    }
    return index;
  };
  auto addressAt = [&](const Place &lane) { return address(buffer, indexAt(groups, lane)); };
  bool alongLast = place.lanesAxis >= 0 && !to.empty() && !from.empty() &&
                   !isScattered(view, place.lanesAxis) && view.back().axis == place.lanesAxis;
  if (alongLast && isWholeVectors(view, place.lanesAxis, place.lanes, to.back(), from.back())) {
    auto type = VectorType::get({place.lanes}, storageType(buffer.dtype));
    return toLanes(loadAs(type, addressAt(place), bytesOf(buffer.dtype)), buffer.dtype);
  }
  auto last = llvm::find_if(groups, [&](const Regrouping &group) {
    return group.toBegin < group.toEnd && group.toEnd == to.size();
  });
  if (alongLast && last != groups.end() && last->fromBegin < last->fromEnd &&
      last->fromEnd == from.size() && bytesOf(buffer.dtype) <= 4) {
    std::vector<Regrouping> others(groups.begin(), groups.end());
    others.erase(others.begin() + (last - groups.begin()));
    Value rows = constant(1);
    for (size_t axis = last->fromBegin; axis + 1 < last->fromEnd; ++axis) {
      Value count = extent(from[axis]);
      rows = atRecord([&] { return mul(rows, count); });
    }
    return loadAcrossRows(buffer, address(buffer, indexAt(others, place)), numberAt(*last, place),
                          rows, place);
  }
  return loadLaneByLane(buffer, place, addressAt);
}

void Emitter::store(const Stage &stage, const Root &root, Value lanes, const Place &place) {
  const Buffer &buffer = *root.buffer;
  unsigned alignment = static_cast<unsigned>(bytesOf(buffer.dtype));
  if (root.transposedBegin >= 0) {
    const auto &[tile, row, begin] = tilePlace_;
    Value at = transposedRow(stage, root, *tile, row);
    LLVM::StoreOp::create(b, lanes, bytes(at, mul(begin, constant(alignment))), alignment);
    return;
  }
  Value pointer = address(buffer, indices(root.view, place));
  bool isFactor = buffer.dtype == ops::DType::BF16 && isOfFactors(root.value);
  Value stored = isFactor && !lanes.getDefiningOp<arith::ExtFOp>() ? toFactors(lanes)
                                                                   : toStorage(lanes, buffer.dtype);
  if (place.lanesAxis < 0)
    stored = vector::ExtractOp::create(b, stored, ArrayRef<int64_t>{0});
  else if (root.view.empty() || root.view.back().axis != place.lanesAxis)
    return storeLaneByLane(root, stored, place);
  if (root.masked)
    LLVM::MaskedStoreOp::create(b, stored, pointer, inRange(place), alignment);
  else
    LLVM::StoreOp::create(b, stored, pointer, alignment);
}

/// Where columns of the stage are rows of the buffer.
void Emitter::storeLaneByLane(const Root &root, Value stored, const Place &place) {
  const Buffer &buffer = *root.buffer;
  unsigned alignment = static_cast<unsigned>(bytesOf(buffer.dtype));
  Value first = address(buffer, indices(root.view, place));
  Value stride = strideOf(buffer, root.view, place.lanesAxis);
  if (!root.masked) {
    for (int64_t lane = 0; lane < place.lanes; ++lane) {
      Value element = vector::ExtractOp::create(b, stored, ArrayRef<int64_t>{lane});
      LLVM::StoreOp::create(b, element, bytes(first, mul(stride, constant(lane))), alignment);
    }
    return;
  }
  Value offsets =
      arith::MulIOp::create(b, laneNumbers(i64_, place.lanes), splat(stride, place.lanes));
  auto pointers = VectorType::get({place.lanes}, pointer_);
  Value at = LLVM::GEPOp::create(b, pointers, b.getI8Type(), first, offsets);
  LLVM::masked_scatter::create(b, stored, at, inRange(place), b.getI32IntegerAttr(alignment));
}

/// Which lanes lie before the end of the lanes axis.
Value Emitter::inRange(const Place &place) {
  Value index = place.index[static_cast<size_t>(place.lanesAxis)];
  Value left = arith::SubIOp::create(b, extent(laneExtent_), index);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, laneNumbers(i64_, place.lanes),
                               splat(left, place.lanes));
}

} // namespace sheaf::kernels::cpu
