//===- EmitScans.cpp - Running sums, and sums of rows by number -----------===//

#include "compiler/kernels/cpu/Emitter.h"
#include "compiler/ops/Lanes.h"

using namespace mlir;

namespace sheaf::kernels::cpu {

/// Lanes are neighbours on the innermost axis; along the axis of the sums each is stored.
void Emitter::scanSums(const Stage &stage) {
  const Root &root = stage.roots.front();
  auto apply = root.value.getDefiningOp<ir::ApplyOp>();
  Value operand = apply.getOperand(0);
  const std::vector<Dim> &space = plan_.shapes->of(operand);
  int64_t axis = apply.getAttrs().getAs<IntegerAttr>("axis").getInt();
  bool reverse = apply.getAttrs().getAs<IntegerAttr>("reverse").getInt() != 0;
  laneExtent_ = space.back();
  auto vectorType = VectorType::get({kLoopLanes}, laneType(dtypeOf(operand)));

  std::vector<Dim> outer(space.begin(), space.end() - 1);
  outer.erase(outer.begin() + axis);
  std::vector<Value> index;
  nest(outer, index, [&] {
    loop(constant(0), extent(space.back()), kLoopLanes, [&](Value column) {
      Value count = extent(space[static_cast<size_t>(axis)]);
      Value zero = arith::ConstantOp::create(b, b.getZeroAttr(vectorType));
      auto along = scf::ForOp::create(b, constant(0), count, constant(1), ValueRange{zero});
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(along.getBody());
      Value at = along.getInductionVar();
      if (reverse)
        at = arith::SubIOp::create(b, add(count, constant(-1)), at);
      Place place;
      place.lanesAxis = static_cast<int>(space.size()) - 1;
      place.index = index;
      place.index.insert(place.index.begin() + axis, at);
      place.index.push_back(column);
      Scope scope;
      scope.stage = &stage;
      scope.place = &place;
      Value x = evaluate(operand, identityView(space.size()), scope);
      Value sum = ops::lanes::add(b, along.getRegionIterArg(0), x);
      store(stage, root, sum, place);
      scf::YieldOp::create(b, sum);
    });
  });
}

/// Row after row is added to the one of the result that its number names, unless there is none.
void Emitter::addRows(const Stage &stage) {
  const Root &root = stage.roots.front();
  auto apply = root.value.getDefiningOp<ir::ApplyOp>();
  Value operand = apply.getOperand(0);
  const Buffer &numbers = *plan_.bufferOf.lookup(apply.getOperand(1));
  const std::vector<Dim> &space = plan_.shapes->of(operand), &sums = plan_.shapes->of(root.value);
  laneExtent_ = space.back();
  auto vectorType = VectorType::get({kLoopLanes}, laneType(dtypeOf(operand)));
  int last = static_cast<int>(space.size()) - 1;
  auto columns = [&](std::vector<Value> &index, llvm::function_ref<void(Place &)> body) {
    loop(constant(0), extent(space.back()), kLoopLanes, [&](Value column) {
      Place place;
      place.lanesAxis = last;
      place.index = index;
      place.index.push_back(column);
      body(place);
    });
  };

  std::vector<Value> index;
  nest(ArrayRef(sums).drop_back(), index, [&] {
    columns(index, [&](Place &place) {
      store(stage, root, arith::ConstantOp::create(b, b.getZeroAttr(vectorType)), place);
    });
  });
  loop(constant(0), extent(space.front()), 1, [&](Value k) {
    Value number = loadElement(numbers, address(numbers, {k}));
    if (number.getType() != i64_)
      number = arith::ExtSIOp::create(b, i64_, number);
    // As unsigned numbers, negative ones are beyond every extent.
    Value exists =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, number, extent(sums.front()));
    auto branch = scf::IfOp::create(b, exists);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    std::vector<Value> row{k};
    nest(ArrayRef(space).drop_front().drop_back(), row, [&] {
      columns(row, [&](Place &place) {
        Scope scope;
        scope.stage = &stage;
        scope.place = &place;
        Value x = evaluate(operand, identityView(space.size()), scope);
        Place to = place;
        to.index.front() = number;
        Value sum = load(*root.buffer, root.view, to);
        store(stage, root, ops::lanes::add(b, sum, x), to);
      });
    });
  });
}

} // namespace sheaf::kernels::cpu
