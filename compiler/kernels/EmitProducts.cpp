//===- EmitProducts.cpp - Register-tiled products with fused epilogues ----===//
//
// A tile is a few rows by a few vectors of columns; its accumulators stay in registers while k
// runs (EmitRuns.cpp), are then put into scratch, and one epilogue loop over the tile's rows
// computes everything that follows and writes it. Every element is one chain of multiply-adds over
// ascending k, whatever the tile.
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/Emitter.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace sheaf::kernels {
namespace {

/// Whether nothing follows the products but storing them in whole vectors. Then a tile stores them
/// from its registers; the processor's tiles are stored by themselves.
bool onlyStores(const Stage &stage, int64_t tileVectors) {
  const Dim &width = stage.shape.back();
  return stage.sums != Sums::Tiles && width.isConstant() && !stage.takesTurns &&
         width.constant() % (stage.lanes * tileVectors) == 0 &&
         llvm::all_of(stage.roots, [&](const Root &root) {
           return !root.masked && root.transposedBegin < 0 &&
                  llvm::any_of(
                      stage.accumulators,
                      [&](const Accumulator &a) {
                        return a.product->value == root.value && a.column == 0;
                      });
         });
}

} // namespace

Value Emitter::panelCount(const Stage &stage) {
  int64_t columns = stage.lanes * stage.tileVectors;
  Value width = extent(stage.shape.back());
  return b.createOrFold<arith::DivSIOp>(add(width, constant(columns - 1)), constant(columns));
}

/// Splits `count` rows into tiles whose sizes differ by one at most (6 is 3 + 3, not 5 + 1); into
/// whole ones and a rest where they are the processor's, which take as long with fewer rows. Few
/// rows are one tile of several panels.
void Emitter::emitTiles(const Stage &stage, Value count, const TileSteps &steps, Value panelBegin,
                        Value panelEnd) {
  Value most = constant(stage.tileRows);
  Value tiles = b.createOrFold<arith::DivSIOp>(add(count, constant(stage.tileRows - 1)), most);
  Value some = b.createOrFold<arith::MaxSIOp>(tiles, constant(1));
  Value small = b.createOrFold<arith::DivSIOp>(count, some);
  Value larger = b.createOrFold<arith::RemSIOp>(count, some);
  using ForEach = llvm::function_ref<void(llvm::function_ref<void(const Tile &)>)>;
  auto inOrder = [&](ForEach tile) {
    tile(steps.begin);
    forTurns(stage, [&](ArrayRef<Turn> turns) {
      tile([&](const Tile &now) { steps.compute(now, turns); });
    });
    tile(steps.finish);
  };
  // Panels are counted as they are walked: `place` is how many were before.
  Value panels = b.createOrFold<arith::SubIOp>(panelEnd, panelBegin);
  auto panelAt = [&](Value place, int64_t together) {
    Value there = add(panelBegin, place);
    if (!stage.serpentine)
      return there;
    // Where fewer are left, some that were walked are again.
    Value end = arith::SubIOp::create(b, panelEnd, add(place, constant(together)));
    Value back = arith::MaxSIOp::create(b, end, panelBegin);
    return b.createOrFold<arith::SelectOp>(walksBack_, back, there);
  };
  // The next pass begins at the first panel, or where this one ends.
  auto following = [&](Value place, int64_t together) {
    Value next = add(place, constant(together));
    Value isThere = isLess(next, panels), otherwise = stage.serpentine ? place : constant(0);
    return panelAt(b.createOrFold<arith::SelectOp>(isThere, next, otherwise), together);
  };
  Value done = constant(0);
  auto inPanels = [&](int64_t together, Value end) {
    // Where fewer are left the last is taken again; there are no columns for it.
    Value last = arith::SubIOp::create(b, panelEnd, constant(1));
    loop(done, end, together, [&](Value place) {
      Value panel = panelAt(place, together);
      SmallVector<Value, 4> taken{panel};
      for (int64_t i = 1; i < together; ++i)
        taken.push_back(minimum(add(panel, constant(i)), last));
      Tile tile{constant(0), count, constant(0), taken, following(place, together), scratch_};
      inOrder([&](auto step) { step(tile); });
      steps.finishPanels(tile);
    });
    done = end;
  };
  if (stage.fewRows) {
    Value rest = arith::RemSIOp::create(b, panels, constant(Stage::kPanelsOfOneRow));
    Value whole = arith::SubIOp::create(b, panels, rest);
    Value isOne = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, count, constant(1));
    inPanels(Stage::kPanelsOfOneRow, arith::SelectOp::create(b, isOne, whole, constant(0)));
    Value areFew = arith::AndIOp::create(b, isLess(constant(0), count),
                                         isLess(count, constant(stage.fewRows + 1)));
    inPanels(stage.panelsAtOnce(), arith::SelectOp::create(b, areFew, panels, constant(0)));
  }
  auto tileAt = [&](Value number, Value panel, Value next, Value sums) {
    if (stage.sums == Sums::Tiles) {
      Value first = mul(number, most);
      Value rows = minimum(most, arith::SubIOp::create(b, count, first));
      return Tile{first, rows, number, {panel}, next, sums};
    }
    Value isLarger = isLess(number, larger);
    Value rows = add(small, b.createOrFold<arith::ExtUIOp>(i64_, isLarger));
    Value first = add(mul(number, small), minimum(number, larger));
    return Tile{first, rows, number, {panel}, next, sums};
  };
  loop(done, panels, 1, [&](Value place) {
    Value panel = panelAt(place, 1), next = following(place, 1);
    loop(constant(0), tiles, stage.tilesAtOnce, [&](Value begin) {
      if (stage.tilesAtOnce == 1) {
        Tile tile = tileAt(begin, panel, next, scratch_);
        return inOrder([&](auto step) { step(tile); });
      }
      Value end = minimum(add(begin, constant(stage.tilesAtOnce)), tiles);
      inOrder([&](auto step) {
        loop(begin, end, 1, [&](Value number) {
          Value before = arith::SubIOp::create(b, number, begin);
          Value sums = bytes(scratch_, mul(before, constant(4 * stage.sumsOfTile())));
          step(tileAt(number, panel, next, sums));
        });
      });
    });
    steps.finishPanels(Tile{constant(0), count, constant(0), {panel}, next, scratch_});
  });
}

/// The start values of a panel's columns: for each view `tileVectors` vectors.
Value Emitter::startsOf(const Stage &stage, Value panel) {
  int64_t views = llvm::count_if(stage.startViews, [](int v) { return v >= 0; });
  Value starts = atEntry([&] { return loadAs(pointer_, bytes(weights_, 8 * stage.startUse), 8); });
  return bytes(starts, mul(panel, constant(views * stage.tileVectors * stage.lanes * 4)));
}

/// A vector of the tensor that an accumulator's chains start at, in the current record; beyond the
/// last column another one, whose sums are not stored.
Value Emitter::startOfRow(const Stage &stage, const Accumulator &accumulator,
                          std::vector<Value> index, Value column, const Turn &turn) {
  int64_t width = stage.shape.back().constant();
  if (width % (stage.lanes * stage.tileVectors) != 0)
    column = minimum(column, constant((width - 1) / stage.lanes * stage.lanes));
  Place place;
  place.lanes = stage.lanes;
  place.index = std::move(index);
  // The turn's columns are further on.
  if (turn.number)
    column = add(column, mul(turn.number, constant(turn.columns)));
  place.index.push_back(column);
  place.lanesAxis = static_cast<int>(place.index.size()) - 1;
  View view = identityView(place.index.size());
  view.back().offset = accumulator.column;
  return load(*plan_.bufferOf.lookup(accumulator.startRow()), view, place);
}

/// Row by row, the vectors of the group's accumulators.
SmallVector<Value> Emitter::startValues(const Stage &stage, const Turn &turn, int64_t rows,
                                        const Tile &tile,
                                        llvm::function_ref<std::vector<Value>(int64_t)> enterRow) {
  auto type = VectorType::get({stage.lanes}, f32_);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  SmallVector<Value> starts;
  if (stage.startUse >= 0)
    for (Value panel : tile.panels)
      starts.push_back(
          turn.further(*this, startsOf(stage, panel), stage.tileVectors * stage.lanes * 4));
  SmallVector<Value> row;
  for (unsigned a : turn.accumulators)
    for (int64_t v = 0; v < tile.vectors(stage); ++v) {
      if (stage.startViews[a] < 0) {
        row.push_back(zero);
        continue;
      }
      int64_t place = stage.startViews[a] * stage.tileVectors + v % stage.tileVectors;
      Value from = starts[static_cast<size_t>(v / stage.tileVectors)];
      row.push_back(loadAs(type, bytes(from, place * stage.lanes * 4), 4));
    }
  SmallVector<Value> sums;
  for (int64_t i = 0; i < rows; ++i)
    sums.append(row);
  if (!stage.startsAtRows())
    return sums;
  for (int64_t i = 0, number = 0; i < rows; ++i) {
    std::vector<Value> index = enterRow(i);
    for (unsigned a : turn.accumulators)
      for (int64_t v = 0; v < tile.vectors(stage); ++v, ++number) {
        if (!stage.accumulators[a].startRow())
          continue;
        Value panel = tile.panels[static_cast<size_t>(v / stage.tileVectors)];
        Value column = add(mul(panel, constant(stage.lanes * stage.tileVectors)),
                           constant(v % stage.tileVectors * stage.lanes));
        sums[static_cast<size_t>(number)] =
            startOfRow(stage, stage.accumulators[a], index, column, turn);
      }
  }
  return sums;
}

Value Emitter::Turn::further(Emitter &emitter, Value pointer, int64_t accumulatorBytes) const {
  if (!number)
    return pointer;
  return emitter.bytes(pointer, emitter.mul(number, emitter.constant(accumulatorBytes)));
}

/// All groups' accumulators, if they do not take turns. Turns are one loop in the code, as far as
/// accumulators and start values go on by one each.
void Emitter::forTurns(const Stage &stage, llvm::function_ref<void(ArrayRef<Turn>)> body) {
  if (!stage.takesTurns)
    return body(llvm::map_to_vector(stage.groups, Turn::of));
  for (const ProductGroup &group : stage.groups) {
    ArrayRef<unsigned> all = group.accumulators;
    for (size_t first = 0, end; first < all.size(); first = end) {
      int start = stage.startViews[all[first]];
      auto accumulator = [&](size_t i) { return stage.accumulators[all[i]]; };
      int64_t columns =
          first + 1 < all.size() ? accumulator(first + 1).column - accumulator(first).column : 0;
      Value row = accumulator(first).startRow();
      auto goesOn = [&](size_t i) {
        unsigned further = static_cast<unsigned>(i - first);
        return all[i] == all[first] + further &&
               stage.startViews[all[i]] ==
                   (start < 0 ? start : start + static_cast<int>(further)) &&
               accumulator(i).startRow() == row &&
               (!row || accumulator(i).column == accumulator(first).column + columns * further);
      };
      for (end = first + 1; end < all.size() && goesOn(end);)
        ++end;
      loop(constant(0), constant(static_cast<int64_t>(end - first)), 1, [&](Value number) {
        body(Turn{&group, all.slice(first, 1), static_cast<int64_t>(first), number, columns});
      });
    }
  }
}

/// Computes the turns' sums of one tile and stores its products, or leaves its accumulators in
/// scratch, row by row, when more is to be done. `enterRow` makes row i's record current and gives
/// its index, without the column.
void Emitter::emitTile(const Stage &stage, int64_t rows, const Tile &tile, ArrayRef<Turn> turns,
                       llvm::function_ref<std::vector<Value>(int64_t)> enterRow) {
  int64_t vectors = tile.vectors(stage);
  int64_t across = static_cast<int64_t>(stage.accumulators.size()) * vectors;
  int k = static_cast<int>(stage.shape.size());
  Value column = mul(tile.panels.front(), constant(stage.lanes * stage.tileVectors));
  std::vector<Value> sums(static_cast<size_t>(rows * across));
  bool stores = onlyStores(stage, vectors);
  auto compute = [&](const Turn &turn) {
    const ProductGroup &group = *turn.group;
    /// Where the group's accumulators are among all.
    SmallVector<size_t> places;
    for (int64_t row = 0; row < rows; ++row)
      for (unsigned a : turn.accumulators)
        for (int64_t v = 0; v < vectors; ++v)
          places.push_back(static_cast<size_t>(row * across + a * vectors + v));
    SmallVector<Value> own = startValues(stage, turn, rows, tile, enterRow);

    ArrayRef<ProductSegment> segments = group.lead->segments;
    std::vector<SmallVector<Operand>> lefts(segments.size());
    if (!stage.factorRow)
      for (auto [segment, left] : llvm::zip(segments, lefts))
        for (int64_t row = 0; row < rows; ++row) {
          Place place;
          place.index = enterRow(row);
          place.index.insert(place.index.end(), {column, constant(0)});
          left.push_back(operandAt(segment.lhs, segment.lhsView, place, k));
        }
    if (stage.factorRow)
      own = emitPackedPairs(stage, turn, tile, rows, own);
    else if (group.weightUse >= 0)
      own = emitPacked(stage, turn, tile, lefts, own);
    else
      for (size_t s = 0; s < segments.size(); ++s) {
        SmallVector<Operand> rights;
        for (unsigned a : group.accumulators) {
          const ProductSegment &segment = stage.accumulators[a].product->segments[s];
          Place place;
          place.index = enterRow(0);
          place.index.insert(place.index.end(),
                             {add(column, constant(stage.accumulators[a].column)), constant(0)});
          place.lanesAxis = k - 1;
          rights.push_back(operandAt(segment.rhs, segment.rhsView, place, k));
        }
        if (stage.sums == Sums::Pairs) {
          own = emitPairsInPlace(stage, extent(segments[s].extent), lefts[s], rights, own);
          continue;
        }
        auto right = [&](size_t vector, At k) { return rightLanes(stage, rights, vector, k); };
        own = emitChain(lefts[s], extent(segments[s].extent), own, stage.lanes,
                        /*packed=*/false, right);
      }
    Value scratch = turn.further(*this, tile.sums, vectors * stage.lanes * 4);
    for (auto [place, sum] : llvm::zip(places, own))
      if (stores)
        sums[place] = sum;
      else
        LLVM::StoreOp::create(b, sum, bytes(scratch, place * stage.lanes * 4), 4);
  };
  llvm::for_each(turns, compute);
  if (!stores)
    return;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<Value> index = enterRow(row);
    for (int64_t v = 0; v < vectors; ++v) {
      std::vector<Value> own;
      for (int64_t a = 0; a < static_cast<int64_t>(stage.accumulators.size()); ++a)
        own.push_back(sums[static_cast<size_t>(row * across + a * vectors + v)]);
      writeVector(stage, index, add(column, constant(v * stage.lanes)), std::move(own));
    }
  }
}

/// Computes and stores one vector of each root, with as many lanes as those of `accumulators`, the
/// products there: `column` is its first.
void Emitter::writeVector(const Stage &stage, std::vector<Value> index, Value column,
                          std::vector<Value> accumulators) {
  Place place;
  place.lanes = cast<VectorType>(accumulators.front().getType()).getNumElements();
  place.index = std::move(index);
  place.index.push_back(column);
  place.lanesAxis = static_cast<int>(place.index.size()) - 1;
  Scope scope;
  scope.stage = &stage;
  scope.place = &place;
  scope.accumulators = std::move(accumulators);
  writeRoots(stage, scope);
}

/// What follows the products, for one row of a tile: `row` counts inside the tile.
void Emitter::emitEpilogue(const Stage &stage, const Tile &tile, Value row,
                           std::vector<Value> index) {
  int64_t most = tile.vectors(stage), together = 1;
  // What follows products is one long chain of operations: two vectors hide each other's waiting.
  const Dim &columns = stage.shape.back();
  if (most * stage.lanes % kLoopLanes == 0 && columns.isConstant() &&
      columns.constant() % kLoopLanes == 0)
    together = kLoopLanes / stage.lanes;
  auto type = VectorType::get({together * stage.lanes}, f32_);
  int64_t across = static_cast<int64_t>(stage.accumulators.size()) * most;
  Value sums = bytes(tile.sums, mul(row, constant(across * stage.lanes * 4)));
  Value column = mul(tile.panels.front(), constant(stage.lanes * stage.tileVectors));
  auto vectorAt = [&](Value v, Value at) {
    tilePlace_ = {&tile, add(tile.first, row), mul(v, constant(stage.lanes))};
    std::vector<Value> accumulators;
    for (size_t a = 0; a < stage.accumulators.size(); ++a) {
      Value from = bytes(sums, static_cast<int64_t>(a) * most * stage.lanes * 4);
      accumulators.push_back(loadAs(type, bytes(from, mul(v, constant(stage.lanes * 4))), 4));
    }
    writeVector(stage, index, at, std::move(accumulators));
  };
  if (most == together) {
    vectorAt(constant(0), column);
    return;
  }
  Value left = arith::SubIOp::create(b, extent(stage.shape.back()), column);
  Value vectors =
      arith::DivSIOp::create(b, add(left, constant(stage.lanes - 1)), constant(stage.lanes));
  loop(constant(0), minimum(vectors, constant(most)), together,
       [&](Value v) { vectorAt(v, add(column, mul(v, constant(stage.lanes)))); });
}

/// What follows the products of a tile: `indexOfRow` takes a row's number inside of it.
void Emitter::emitEpilogues(const Stage &stage, const Tile &tile, EnterRow indexOfRow) {
  if (onlyStores(stage, tile.vectors(stage)))
    return;
  emitApart([&] {
    loop(constant(0), tile.rows, 1, [&](Value row) {
      std::vector<Value> index = indexOfRow(row);
      emitEpilogue(stage, tile, row, std::move(index));
    });
  });
}

/// One branch for each number of rows a tile may have.
void Emitter::forRows(const Stage &stage, const Tile &tile,
                      llvm::function_ref<void(int64_t)> body) {
  int64_t least = 1, most = stage.tileRows;
  if (tile.panels.size() > 1)
    most = tile.panels.size() > static_cast<size_t>(stage.panelsAtOnce()) ? 1 : stage.fewRows;
  else if (stage.fewRows)
    least = (most + 1) / 2;
  if (std::optional<int64_t> known = stage.knownRows(); known && *known > 0)
    least = *known / llvm::divideCeil(*known, most);
  if (least == most)
    return body(least);
  SmallVector<int64_t> cases;
  for (int64_t i = least; i < most; ++i)
    cases.push_back(i);
  Value index = arith::IndexCastOp::create(b, b.getIndexType(), tile.rows);
  auto choose =
      scf::IndexSwitchOp::create(b, TypeRange{}, index, cases, static_cast<unsigned>(cases.size()));
  auto fill = [&](Region &region, int64_t count) {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&region);
    body(count);
    scf::YieldOp::create(b);
  };
  for (auto [i, region] : llvm::enumerate(choose.getCaseRegions()))
    fill(region, cases[i]);
  fill(choose.getDefaultRegion(), most);
}

/// Tiles whose rows may belong to different records.
void Emitter::emitTilesOfRecords(const Stage &stage, Value count, EnterRow enter, Value panelBegin,
                                 Value panelEnd) {
  auto begin = [&](const Tile &tile) {
    if (!stage.rowsAreRecords)
      return;
    prefetch(stage, tile, enter);
    prefetchStarts(stage, tile, count, enter);
  };
  auto compute = [&](const Tile &tile, ArrayRef<Turn> turns) {
    if (stage.sums == Sums::Tiles)
      emitHardwareTiles(stage, tile, enter);
    else
      emitTileOfRows(stage, tile, turns, enter);
  };
  auto finish = [&](const Tile &tile) {
    emitEpilogues(stage, tile, [&](Value row) { return enter(add(tile.first, row)); });
  };
  auto finishPanels = [&](const Tile &tile) { emitTransposed(stage, tile, enter); };
  emitTiles(stage, count, {begin, compute, finish, finishPanels}, panelBegin, panelEnd);
}

void Emitter::emitTileOfRows(const Stage &stage, const Tile &tile, ArrayRef<Turn> turns,
                             EnterRow enter) {
  forRows(stage, tile, [&](int64_t many) {
    std::vector<Record> entered(many);
    std::vector<std::vector<Value>> indices(many);
    for (int64_t i = 0; i < many; ++i) {
      indices[i] = enter(add(tile.first, constant(i)));
      entered[i] = std::move(record_);
    }
    int64_t current = -1;
    emitTile(stage, many, tile, turns, [&](int64_t i) {
      if (current >= 0)
        entered[current] = std::move(record_);
      record_ = std::move(entered[i]);
      current = i;
      return indices[i];
    });
  });
}

/// Emits code that becomes a function of its own. Epilogues are full of constants, for which the
/// register allocator would push accumulators out of the loops over k that stand in the same
/// function.
void Emitter::emitApart(llvm::function_ref<void()> body) {
  auto region = scf::ExecuteRegionOp::create(b, TypeRange());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&region.getRegion().emplaceBlock());
  body();
  scf::YieldOp::create(b);
  apart_.push_back(region);
}

void Emitter::moveApart(scf::ExecuteRegionOp region) {
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(region.getRegion(), used);
  SmallVector<Value> given;
  for (Value value : used)
    if (!value.getDefiningOp<arith::ConstantOp>())
      given.push_back(value);

  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(module_.getBody());
  auto function = func::FuncOp::create(b, kernel_.symbol + ".epilogue" + std::to_string(moved_++),
                                       b.getFunctionType(TypeRange(ValueRange(given)), {}));
  function.setPrivate();
  function->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  IRMapping map;
  map.map(given, entry->getArguments());
  for (Value value : used)
    if (Operation *constant = value.getDefiningOp<arith::ConstantOp>())
      b.clone(*constant, map);
  for (Operation &op : region.getRegion().front().without_terminator())
    b.clone(op, map);
  func::ReturnOp::create(b);
  b.setInsertionPoint(region);
  func::CallOp::create(b, function, given);
  region.erase();
}

/// How many rows the current record has in a stage: all places of its space but the columns.
Value Emitter::rowsOfRecord(const Stage &stage) {
  Value rows = constant(1);
  for (const Dim &dim : ArrayRef(stage.shape).drop_back()) {
    Value size = extent(dim);
    rows = atRecord([&] { return mul(rows, size); });
  }
  return rows;
}

/// Lists the rows of all records in scratch, as many at a time as one pass takes: for each the
/// number of its record and its place among the record's rows.
void Emitter::emitPasses(const Stage &stage, Value begin, Value end,
                         llvm::function_ref<void(Value rows, EnterRow enter)> pass) {
  Value table = atEntry([&] { return bytes(scratch_, plan_.accumulatorBytes); });
  auto enter = [&](Value row) {
    Value entry = bytes(table, mul(row, constant(kRowEntryBytes)));
    enterRecord(loadAs(i64_, entry, 8), begin);
    Value place = loadAs(i64_, bytes(entry, 8), 8);
    // Innermost axis first.
    std::vector<Value> index(stage.shape.size() - 1);
    for (size_t axis = index.size(); axis-- > 1;) {
      Value size = extent(stage.shape[axis]);
      index[axis] = arith::RemSIOp::create(b, place, size);
      place = arith::DivSIOp::create(b, place, size);
    }
    index[0] = place;
    return index;
  };
  auto listRun = [&](ValueRange now) {
    enterRecord(now[0], begin);
    Value left = arith::SubIOp::create(b, rowsOfRecord(stage), now[1]);
    Value room = arith::SubIOp::create(b, constant(stage.passRows), now[2]);
    Value run = minimum(left, room);
    loop(constant(0), run, 1, [&](Value i) {
      Value entry = bytes(table, mul(add(now[2], i), constant(kRowEntryBytes)));
      LLVM::StoreOp::create(b, now[0], entry, 8);
      LLVM::StoreOp::create(b, add(now[1], i), bytes(entry, 8), 8);
    });
    Value isDone = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, run, left);
    Value record = add(now[0], arith::ExtUIOp::create(b, i64_, isDone));
    Value row = arith::SelectOp::create(b, isDone, constant(0), add(now[1], run));
    scf::YieldOp::create(b, ValueRange{record, row, add(now[2], run)});
  };
  // State: the record, its first row that is not listed; inside, rows listed.
  forPasses({begin, constant(0)}, end, [&](ValueRange state) {
    ValueRange listed = loopWhile(
        {state[0], state[1], constant(0)},
        [&](ValueRange now) {
          // The records that the pass may take rows of.
          Value last = stage.passOfOneRecord ? add(state[0], constant(1)) : end;
          Value more = arith::AndIOp::create(b, isLess(now[0], last),
                                             isLess(now[2], constant(stage.passRows)));
          scf::ConditionOp::create(b, more, now);
        },
        listRun);
    pass(listed[2], enter);
    return SmallVector<Value>(listed.take_front(2));
  });
}

void Emitter::emitProducts(const Stage &stage, Value begin, Value end) {
  if (stage.rowsAreRecords) {
    // Panels outermost: a panel of weights stays in cache while all rows of the chunk pass.
    Value panelBegin = constant(0), panelEnd = panelCount(stage);
    if (kernel_.panels > 0) {
      Value each = constant(stage.panelsAtOnce());
      panelEnd = minimum(mul(panelEnd_, each), panelEnd);
      panelBegin = mul(panelBegin_, each);
    }
    Value count = arith::SubIOp::create(b, end, begin);
    auto enter = [&](Value row) {
      enterRecord(add(begin, row), begin);
      return std::vector<Value>();
    };
    emitFactorRows(stage, count, enter);
    if (stage.library)
      return emitForeign(stage, count, enter);
    return emitTilesOfRecords(stage, count, enter, panelBegin, panelEnd);
  }
  if (stage.rowsOfAllRecords) {
    emitPasses(stage, begin, end, [&](Value rows, EnterRow enter) {
      emitFactorRows(stage, rows, enter);
      if (stage.library)
        return emitForeign(stage, rows, enter);
      emitTilesOfRecords(stage, rows, enter, constant(0), panelCount(stage));
    });
    return;
  }

  bool several = stage.rowAxis >= 0;
  forEachRecord(begin, end, [&] {
    std::vector<Value> outer;
    SmallVector<MatrixAhead> ahead = matricesAhead(stage);
    nest(ArrayRef(stage.shape).drop_back(several ? 2 : 1), outer, [&] {
      Value count = several ? extent(stage.shape[stage.rowAxis]) : constant(1);
      auto indexOfRow = [&](const Tile &tile, Value row) {
        std::vector<Value> index = outer;
        if (several)
          index.push_back(add(tile.first, row));
        return index;
      };
      auto compute = [&](const Tile &tile, ArrayRef<Turn> turns) {
        forRows(stage, tile, [&](int64_t many) {
          emitTile(stage, many, tile, turns,
                   [&](int64_t row) { return indexOfRow(tile, constant(row)); });
        });
      };
      auto finish = [&](const Tile &tile) {
        emitEpilogues(stage, tile, [&](Value row) { return indexOfRow(tile, row); });
      };
      emitTiles(stage, count,
                {[&](const Tile &tile) { ask(ahead, tile); }, compute, finish, [](const Tile &) {}},
                constant(0), panelCount(stage));
    });
  });
}

} // namespace sheaf::kernels
