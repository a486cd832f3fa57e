//===- EmitValues.cpp - Expressions on vectors of lanes -------------------===//

#include "compiler/kernels/Emitter.h"
#include "compiler/ops/Verify.h"
#include "runtime/error.h"

using namespace mlir;

namespace sheaf::kernels {

Type Emitter::storageType(ops::DType dtype) {
  switch (dtype) {
  case ops::DType::F32:
    return b.getF32Type();
  case ops::DType::BF16:
    return b.getBF16Type();
  case ops::DType::F16:
    return b.getF16Type();
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
  if (ops::isFloat(dtype))
    return arith::ExtFOp::create(b, type, stored);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(stored.getType()));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, stored, zero);
}

Value Emitter::toStorage(Value lanes, ops::DType dtype) {
  Type type = likeShape(lanes, storageType(dtype));
  if (type == lanes.getType())
    return lanes;
  if (ops::isFloat(dtype))
    return arith::TruncFOp::create(b, type, lanes);
  return arith::ExtUIOp::create(b, type, lanes);
}

/// Whether a kept tensor's value at this place is computed by this very stage.
bool Emitter::isInline(Value value, const View &view, const Scope &scope) {
  const Stage &stage = *scope.stage;
  Role role = roleOf(value);
  return stage.kind != Stage::Reduce && role != Role::Argument && role != Role::Weight &&
         role != Role::Assemble && role != Role::Reduction && role != Role::Dot &&
         plan_.levels.lookup(value) == stage.level && plan_.shapes->of(value) == stage.shape &&
         view == identityView(stage.shape.size());
}

Value Emitter::evaluate(Value value, const View &view, Scope &scope, bool top) {
  for (auto &[known, knownView, lanes] : scope.known)
    if (known == value && knownView == view)
      return lanes;
  auto remember = [&](Value lanes) {
    scope.known.push_back({value, view, lanes});
    return lanes;
  };
  const Place &place = *scope.place;
  if (const Buffer *buffer = plan_.bufferOf.lookup(value))
    if (!top && !isInline(value, view, scope))
      return remember(load(*buffer, view, place));
  if (const Product *product = plan_.productOf.lookup(value))
    for (auto [i, a] : llvm::enumerate(scope.stage->accumulators))
      if (a.product == product && a.column == view.back().offset.constant())
        return remember(scope.accumulators[i]);

  switch (roleOf(value)) {
  case Role::Elementwise:
    return remember(elementwise(value, view, scope));
  case Role::View: {
    auto apply = value.getDefiningOp<ir::ApplyOp>();
    const auto &rule = std::get<ops::Movement>(ops::OpTable::get().find(apply.getOp())->batch);
    if (rule.kind == ops::Movement::Reshape && !isPlainReshape(value, *plan_.shapes))
      return remember(loadReshaped(value, view, place));
    auto [source, through] = throughView(value, view, *plan_.shapes);
    return remember(evaluate(source, through, scope));
  }
  case Role::Fill:
    return remember(fill(value, view, place));
  default:
    throw InternalError("block " + kernel_.symbol + ": a tensor of role " +
                        std::to_string(static_cast<int>(roleOf(value))) +
                        " is neither kept nor computed in place");
  }
}

Value Emitter::elementwise(Value value, const View &view, Scope &scope) {
  auto apply = value.getDefiningOp<ir::ApplyOp>();
  const auto &rule =
      std::get<ops::Elementwise>(ops::OpTable::get().find(apply.getOp())->batch);
  bool allHost = true;
  for (Value operand : apply.getOperands())
    allHost &= !isa<RankedTensorType>(operand.getType());
  if (allHost) {
    SmallVector<Value> scalars;
    for (Value operand : apply.getOperands())
      scalars.push_back(scalar(operand));
    return splat(rule.emit(b, scalars), scope.place->lanes);
  }
  SmallVector<Value> operands;
  for (Value operand : apply.getOperands()) {
    if (isa<RankedTensorType>(operand.getType()))
      operands.push_back(
          evaluate(operand, throughBroadcast(value, operand, view, *plan_.shapes), scope));
    else
      operands.push_back(splat(scalar(operand), scope.place->lanes));
  }
  return rule.emit(b, operands);
}

Value Emitter::fill(Value value, const View &view, const Place &place) {
  auto apply = value.getDefiningOp<ir::ApplyOp>();
  const auto &rule = std::get<ops::Fill>(ops::OpTable::get().find(apply.getOp())->batch);
  Type element = laneType(ops::operandType(value.getType()).tensor()->dtype);
  if (rule.kind == ops::Fill::Constant) {
    double number = cast<FloatAttr>(apply.getAttrs().get("value")).getValueAsDouble();
    TypedAttr attr = isa<FloatType>(element)
                         ? TypedAttr(b.getFloatAttr(element, number))
                         : TypedAttr(b.getIntegerAttr(element, static_cast<int64_t>(number)));
    return splat(arith::ConstantOp::create(b, attr), place.lanes);
  }
  // Iota: the index along its only axis.
  AxisMap first = view[0];
  Value number = extent(first.offset);
  if (first.axis >= 0)
    number = add(number, place.index[first.axis]);
  for (Value host : first.host)
    number = add(number, scalar(host));
  Value lanes = splat(arith::TruncIOp::create(b, element, number), place.lanes);
  if (first.axis != place.lanesAxis || place.lanesAxis < 0)
    return lanes;
  SmallVector<int32_t> steps;
  for (int64_t lane = 0; lane < place.lanes; ++lane)
    steps.push_back(static_cast<int32_t>(lane));
  Value step = arith::ConstantOp::create(
      b, DenseElementsAttr::get(cast<VectorType>(lanes.getType()), ArrayRef<int32_t>(steps)));
  return arith::AddIOp::create(b, lanes, step);
}

/// Whether a view's vectors are not consecutive elements: the lanes axis moves an outer axis.
static bool isScattered(const View &view, int lanesAxis) {
  if (lanesAxis < 0)
    return false;
  for (auto [axis, map] : llvm::enumerate(view)) {
    if (map.axis == lanesAxis && axis + 1 < view.size())
      return true;
    if (map.index && llvm::any_of(*map.indexView,
                                  [&](const AxisMap &m) { return m.axis == lanesAxis; }))
      return true;
  }
  return false;
}

Value Emitter::loadLaneByLane(const Buffer &buffer, int64_t lanes,
                              llvm::function_ref<Value(int64_t)> addressOf) {
  Type type = storageType(buffer.dtype);
  unsigned alignment = static_cast<unsigned>(rt::dtypeBytes(static_cast<rt::DType>(buffer.dtype)));
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; ++lane)
    elements.push_back(loadAs(type, addressOf(lane), alignment));
  Value vector =
      vector::FromElementsOp::create(b, VectorType::get({lanes}, type), elements);
  return toLanes(vector, buffer.dtype);
}

Value Emitter::load(const Buffer &buffer, const View &view, const Place &place) {
  unsigned alignment = static_cast<unsigned>(rt::dtypeBytes(static_cast<rt::DType>(buffer.dtype)));
  Type type = storageType(buffer.dtype);
  if (isScattered(view, place.lanesAxis)) {
    // Lanes beyond the extent repeat its last element: they are not stored.
    Value last = add(extent(laneExtent_), constant(-1));
    return loadLaneByLane(buffer, place.lanes, [&](int64_t lane) {
      Place at = place;
      at.index[place.lanesAxis] =
          minimum(add(place.index[place.lanesAxis], constant(lane)), last);
      return address(buffer, indices(buffer, view, at));
    });
  }
  Value pointer = address(buffer, indices(buffer, view, place));
  bool contiguous = place.lanesAxis >= 0 && !view.empty() && view.back().axis == place.lanesAxis;
  if (!contiguous)
    return splat(toLanes(loadAs(type, pointer, alignment), buffer.dtype), place.lanes);
  return toLanes(loadAs(VectorType::get({place.lanes}, type), pointer, alignment), buffer.dtype);
}

/// A reshape that regroups extents: elements are found by their row-major number.
Value Emitter::loadReshaped(Value value, const View &view, const Place &place) {
  auto apply = value.getDefiningOp<ir::ApplyOp>();
  const Buffer &buffer = *plan_.bufferOf.lookup(apply.getOperand(0));
  const std::vector<Dim> &to = plan_.shapes->of(value), &from = buffer.shape;
  auto addressOf = [&](int64_t lane) {
    Place at = place;
    if (place.lanesAxis >= 0) {
      Value last = add(extent(laneExtent_), constant(-1));
      at.index[place.lanesAxis] =
          minimum(add(place.index[place.lanesAxis], constant(lane)), last);
    }
    Value number = constant(0);
    for (auto [axis, map] : llvm::enumerate(view))
      number = add(mul(number, extent(to[axis])), indexOf(map, at, buffer, 0));
    std::vector<Value> index(from.size());
    for (size_t axis = from.size(); axis-- > 0;) {
      Value size = extent(from[axis]);
      index[axis] = axis ? Value(arith::RemSIOp::create(b, number, size)) : number;
      if (axis)
        number = arith::DivSIOp::create(b, number, size);
    }
    return address(buffer, index);
  };
  return loadLaneByLane(buffer, place.lanes, addressOf);
}

void Emitter::store(const Root &root, Value lanes, const Place &place) {
  const Buffer &buffer = *root.buffer;
  unsigned alignment = static_cast<unsigned>(rt::dtypeBytes(static_cast<rt::DType>(buffer.dtype)));
  Value pointer = address(buffer, indices(buffer, root.view, place));
  Value stored = toStorage(lanes, buffer.dtype);
  if (place.lanesAxis < 0 || root.view.back().axis != place.lanesAxis) {
    stored = vector::ExtractOp::create(b, stored, ArrayRef<int64_t>{0});
    LLVM::StoreOp::create(b, stored, pointer, alignment);
    return;
  }
  if (!root.masked) {
    LLVM::StoreOp::create(b, stored, pointer, alignment);
    return;
  }
  LLVM::MaskedStoreOp::create(b, stored, pointer, inRange(place), alignment);
}

/// Which lanes lie before the end of the lanes axis.
Value Emitter::inRange(const Place &place) {
  auto type = VectorType::get({place.lanes}, i64_);
  SmallVector<int64_t> numbers;
  for (int64_t lane = 0; lane < place.lanes; ++lane)
    numbers.push_back(lane);
  Value lane = arith::ConstantOp::create(
      b, DenseElementsAttr::get(type, ArrayRef<int64_t>(numbers)));
  Value left = arith::SubIOp::create(b, extent(laneExtent_), place.index[place.lanesAxis]);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, lane, splat(left, place.lanes));
}

} // namespace sheaf::kernels
