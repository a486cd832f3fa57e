//===- EmitTiles.cpp - Which tiles of a stage of products, in which order -===//
//
// Rows come from one record or from many; they are divided into tiles, and panels of columns pass
// over them. What a tile computes is in EmitProducts.cpp.
//
//===----------------------------------------------------------------------===//

#include "compiler/kernels/cpu/Emitter.h"

using namespace mlir;

namespace sheaf::kernels::cpu {

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

/// One branch for each number of rows a tile may have.
void Emitter::forRows(const Stage &stage, const Tile &tile,
                      llvm::function_ref<void(int64_t)> body) {
  int64_t least = 1, most = stage.tileRows;
  if (tile.panels.size() > 1)
    most = tile.panels.size() > static_cast<size_t>(stage.panelsAtOnce()) ? 1 : stage.fewRows;
  else if (stage.fewRows)
    least = (most + 1) / 2;
  // Blocks of rows leave fewer for their last tile.
  if (std::optional<int64_t> known = stage.knownRows(); known && *known > 0 && !stage.blocking)
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
  Value table = atEntry([&] { return bytes(scratch_, layout_.accumulatorBytes); });
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
    if (layout_.code.panels > 0) {
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
    // The rows of a tile are those of the block, unless the block has axes before them.
    bool ofBlock = several && blockRows_ && !stage.sumsRows &&
                   blockRows_->of->axes.size() + 1 == stage.shape.size();
    nestInBlock(stage, ArrayRef(stage.shape).drop_back(several ? 2 : 1), outer, [&] {
      Value firstRow = constant(0), count = constant(1);
      auto indexOfRow = [&](const Tile &tile, Value row) {
        std::vector<Value> index = outer;
        if (several)
          index.push_back(add(firstRow, add(tile.first, row)));
        return index;
      };
      auto emitRows = [&](const Stage &of, Value rows, Value first, Value last) {
        auto compute = [&](const Tile &next, ArrayRef<Turn> turns) {
          Tile tile = enterBlock(of, next, [&] { return indexOfRow(next, constant(0)); });
          forRows(of, tile, [&](int64_t many) {
            emitTile(of, many, tile, turns,
                     [&](int64_t row) { return indexOfRow(tile, constant(row)); });
          });
        };
        auto finish = [&](const Tile &done) {
          Tile tile = withSums(of, done);
          afterLastSteps(
              [&] { emitEpilogues(of, tile, [&](Value row) { return indexOfRow(tile, row); }); });
        };
        emitTiles(
            of, rows,
            {[&](const Tile &tile) { ask(ahead, tile); }, compute, finish, [](const Tile &) {}},
            first, last);
      };
      std::optional<ColumnsBlock> columns;
      auto emitBlocks = [&](const Stage &of, const ColumnsBlock &block, Value first, Value last) {
        Value begin = firstRow;
        forStepsBlocks(of, outer, block, first, count, [&](Value rowBegin, Value rows) {
          firstRow = add(begin, rowBegin);
          emitRows(of, rows, first, last);
        });
        firstRow = begin;
      };
      auto emitPanels = [&](const Stage &of, Value first, Value last) {
        if (!columns)
          return emitRows(of, count, first, last);
        if (of.blocking->runs.size() == 1)
          return emitBlocks(of, *columns, first, last);
        // Else the groups of a tile are computed together.
        auto either = scf::IfOp::create(b, columns->packs, /*withElseRegion=*/true);
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(either.thenBlock());
        ColumnsBlock packed = *columns;
        packed.packs = arith::ConstantOp::create(b, b.getBoolAttr(true));
        emitBlocks(of, packed, first, last);
        b.setInsertionPointToStart(either.elseBlock());
        emitRows(of, count, first, last);
      };
      // Panels of a width, from those of the first column to be computed to those of the last.
      Value width = extent(stage.shape.back());
      auto emitSeen = [&](const Stage &of, Value first, Value last) {
        forSeen(stage, Seen::Columns, width, [&](Value from, Value until) {
          if (until == width)
            return emitPanels(of, first, last);
          int64_t columns = of.lanes * of.tileVectors;
          Value begin = arith::DivSIOp::create(b, from, constant(columns));
          Value end =
              arith::DivSIOp::create(b, add(until, constant(columns - 1)), constant(columns));
          Value firstSeen = arith::MaxSIOp::create(b, first, begin);
          emitPanels(of, firstSeen, arith::MaxSIOp::create(b, firstSeen, minimum(last, end)));
        });
      };
      auto emitColumns = [&] { forPanels(stage, columns ? &*columns : nullptr, emitSeen); };
      auto emitBlock = [&](const ColumnsBlock &block) {
        columns = block;
        emitColumns();
      };
      auto emitAll = [&] {
        if (!stage.blocking)
          return emitColumns();
        if (blockRows_) {
          ColumnsBlock block = columnsOf_.lookup(numberOf(stage));
          return stage.blocking->packsWhole ? forPackedColumns(stage, block, emitBlock)
                                            : emitBlock(block);
        }
        forColumns(stage, outer, isWorthPacking(stage, outer, count), /*several=*/true, emitBlock);
      };
      if (ofBlock) {
        firstRow = blockRows_->begin;
        count = arith::SubIOp::create(b, blockRows_->end, firstRow);
        emitAll();
      } else if (several) {
        forSeen(stage, Seen::Rows, extent(stage.shape[stage.rowAxis]),
                [&](Value from, Value until) {
                  firstRow = from;
                  count = b.createOrFold<arith::SubIOp>(until, from);
                  emitAll();
                });
      } else {
        emitAll();
      }
    });
  });
}

} // namespace sheaf::kernels::cpu
