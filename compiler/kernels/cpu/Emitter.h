//===- Emitter.h - Emits one planned kernel ---------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_KERNELS_CPU_EMITTER_H
#define SHEAF_COMPILER_KERNELS_CPU_EMITTER_H

#include "compiler/kernels/cpu/Layout.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sheaf::kernels::cpu {

/// Emits a kernel as a function of KernelFn's signature in MLIR's vector, scf, arith, math and
/// llvm (pointers, loads, stores) dialects.
class Emitter {
public:
  Emitter(const Kernel &kernel, const rt::Target &target, mlir::ModuleOp module);
  void run();

private:
  using Value = mlir::Value;

  /// Values of one record, emitted once where the record is entered.
  struct Record {
    Value words; ///< address of its words
    Value number;
    Value inChunk;                   ///< its number in the chunk, for scratch
    mlir::Operation *here = nullptr; ///< values of the record are inserted before this
    llvm::DenseMap<const Buffer *, Value> bases;
    llvm::DenseMap<const Buffer *, std::vector<Value>> strides;
    std::map<std::string, Value> symbols;
    llvm::DenseMap<Value, Value> scalars;
    llvm::SmallVector<std::pair<HostPosition, Value>, 0> positions;
  };
  /// A place in an iteration space. `lanesAxis` runs over vectors that start at its index; -1 when
  /// the space is one element.
  struct Place {
    std::vector<Value> index;
    int lanesAxis = -1;
    int64_t lanes = kLoopLanes;
    int64_t lane = 0; ///< which of the vector's it is, of a place of one of them
  };
  /// What evaluating expressions of one place shares.
  struct Scope {
    const Stage *stage = nullptr;
    const Place *place = nullptr;
    mlir::Operation *row = nullptr; ///< stands before the loop over the lanes axis, if there is one
    std::vector<Value> accumulators;
    llvm::DenseMap<Value, llvm::SmallVector<std::pair<View, Value>, 1>> known;
    /// The lanes of a value at a view, or null.
    Value find(Value value, const View &view) const;
  };

  /// The rows of a row block that its stages are computing.
  struct BlockRows {
    const RowBlock *of;
    std::vector<Value> outer; ///< places along the axes before that of the rows
    Value begin, end;
    llvm::DenseMap<const Buffer *, Value> bases; ///< of its tensors, from a row 0 that is not there
    mlir::Operation *here;                       ///< these are inserted before this
    /// The columns that one of the rows sees, and as many beside them as are computed with them;
    /// null: all.
    Value from = {}, until = {};
    Value ranges = {}; ///< so many ranges of these, in scratch; null: all of them
  };
  std::optional<BlockRows> blockRows_;
  bool inGroup_ = false; ///< the stages that are being emitted are a RecordGroup's
  Value handedOn_;       ///< bytes of temporaries of the chunk that are no group's own

  /// Where an operand of a product is, and the bytes from one k to the next.
  struct Operand {
    Value pointer, stride;
    const Buffer *buffer;
  };

  // EmitStages.cpp
  void emitChunks(llvm::function_ref<void(Value begin, Value end)> stages);
  void forPasses(llvm::ArrayRef<Value> start, Value end,
                 llvm::function_ref<llvm::SmallVector<Value>(mlir::ValueRange)> pass);
  void emitStages(unsigned from, unsigned to, Value begin, Value end);
  void emitStage(const Stage &stage, Value begin, Value end);
  void emitLoopOfRecord(const Stage &stage);
  void emitLoop(const Stage &stage, Value begin, Value end);
  void emitReduce(const Stage &stage, Value begin, Value end);
  void reduceLast(const Stage &stage, const std::vector<Dim> &space);
  void reduceOuter(const Stage &stage, const std::vector<Dim> &space, int64_t axis);
  void writeRoots(const Stage &stage, Scope &scope);
  void forEachRecord(Value begin, Value end, llvm::function_ref<void()> body);
  std::vector<std::pair<Value, Value>> rangesOf(llvm::ArrayRef<Dim> extents);
  void nest(llvm::ArrayRef<std::pair<Value, Value>> ranges, std::vector<Value> &index,
            llvm::function_ref<void()> body);
  void nest(llvm::ArrayRef<Dim> extents, std::vector<Value> &index,
            llvm::function_ref<void()> body);
  void nestInBlock(const Stage &stage, llvm::ArrayRef<Dim> extents, std::vector<Value> &index,
                   llvm::function_ref<void()> body);

  // EmitRowBlocks.cpp
  void emitRowBlock(const RowBlock &block, Value begin, Value end);
  Value baseInBlock(const Buffer &buffer);
  void findSeen(const RowBlock &block);
  std::pair<Value, Value> seenBy(const RowBlock &block, llvm::ArrayRef<Value> outer, Value row);
  std::pair<Value, Value> seenByRows(const RowBlock &block, llvm::ArrayRef<Value> outer,
                                     Value begin, Value end, std::pair<Value, Value> most,
                                     llvm::function_ref<void(Value, Value, Value)> note);
  std::pair<Value, Value> seenByAll(const RowBlock &block);
  std::pair<Value, Value> wholeRuns(Value from, Value until, Value columns);
  Value findRanges(const RowBlock &block, std::pair<Value, Value> places,
                   std::pair<Value, Value> columns,
                   llvm::function_ref<std::vector<Value>(Value place)> indexOf);
  Value seesAny(const RowBlock &block, std::vector<Value> index, Value first);
  bool matters(const RowBlock &block, size_t axis) const;
  Value rangeEntry(Value number);
  std::pair<Value, Value> rangeAt(Value number);
  bool hasRanges(const Stage &stage, Seen axis) const;
  void forSeen(const Stage &stage, Seen axis, Value extent,
               llvm::function_ref<void(Value from, Value until)> body);
  llvm::SmallVector<Value>
  inRanges(const Stage &stage, Seen axis, std::pair<Value, Value> of, llvm::ArrayRef<Value> start,
           llvm::function_ref<llvm::SmallVector<Value>(Value from, Value until,
                                                       llvm::ArrayRef<Value> state)>
               body);
  void forRanges(const Stage &stage,
                 llvm::function_ref<void(llvm::ArrayRef<std::pair<Value, Value>>)> body);
  std::pair<Value, Value> seenOf(const Stage &stage, Seen axis, Value extent);
  std::pair<Value, Value> stepsOf(const Stage &stage, const ProductSegment &segment);
  Value seenEntry(Value row);
  std::pair<Value, Value> stepsOfTile(const Stage &stage, const ProductSegment &segment,
                                      Value firstRow, int64_t rows);
  void startSums(const Stage &stage, llvm::ArrayRef<Value> outer);

  // EmitSelection.cpp
  struct RowOfPlaces;
  RowOfPlaces rowOfPlaces(const Stage &stage, Place &place);
  void selectTop(const Stage &stage);
  void sortPlaces(const Stage &stage);

  // EmitScans.cpp
  void scanSums(const Stage &stage);
  void addRows(const Stage &stage);

  // EmitTiles.cpp
  struct Tile {
    Value first, rows;                  ///< its rows among those that the panels pass over
    Value number;                       ///< its number among the tiles of those rows
    llvm::SmallVector<Value, 4> panels; ///< its columns: one panel, or several side by side
    Value following;                    ///< the panel that comes next
    Value sums;                         ///< its accumulators in scratch, row by row
    /// Vectors of an accumulator.
    int64_t vectors(const Stage &stage) const {
      return static_cast<int64_t>(panels.size()) * stage.tileVectors;
    }
  };
  /// Accumulators of a group that run over k together: all, or where they take turns one. Then the
  /// turn is `number` after that of `accumulators`, which is the group's number `first`.
  struct Turn {
    const ProductGroup *group;
    llvm::ArrayRef<unsigned> accumulators;
    int64_t first;
    Value number;        ///< or null
    int64_t columns = 0; ///< from those of a turn to those of the next
    /// Of all accumulators together.
    static Turn of(const ProductGroup &group) { return {&group, group.accumulators, 0, {}}; }
    /// Where the turn's begin, if those of `accumulators` are at `pointer` and each accumulator has
    /// so many bytes.
    Value further(Emitter &emitter, Value pointer, int64_t accumulatorBytes) const;
  };
  void forTurns(const Stage &stage, llvm::function_ref<void(llvm::ArrayRef<Turn> together)> body);
  /// What is done for each tile. Where accumulators take turns, each step and each turn is done
  /// for several tiles before the next.
  struct TileSteps {
    llvm::function_ref<void(const Tile &)> begin;
    llvm::function_ref<void(const Tile &, llvm::ArrayRef<Turn>)> compute;
    llvm::function_ref<void(const Tile &)> finish;
    /// When all tiles of these panels are done; the tile is of all rows.
    llvm::function_ref<void(const Tile &)> finishPanels;
  };
  void emitProducts(const Stage &stage, Value begin, Value end);
  /// Makes a row of the tiles current, counted from the first of the pass, and gives its index
  /// without the column.
  using EnterRow = llvm::function_ref<std::vector<Value>(Value row)>;
  void emitTilesOfRecords(const Stage &stage, Value count, EnterRow enter, Value panelBegin,
                          Value panelEnd);
  void emitTileOfRows(const Stage &stage, const Tile &tile, llvm::ArrayRef<Turn> turns,
                      EnterRow enter);
  void forRows(const Stage &stage, const Tile &tile, llvm::function_ref<void(int64_t)> body);
  Value rowsOfRecord(const Stage &stage);
  void emitPasses(const Stage &stage, Value begin, Value end,
                  llvm::function_ref<void(Value rows, EnterRow enter)> pass);
  void emitTiles(const Stage &stage, Value count, const TileSteps &steps, Value panelBegin,
                 Value panelEnd);

  // EmitBlocks.cpp
  /// Columns of a product that are computed before the next ones.
  struct ColumnsBlock {
    Value packs;  ///< whether the right operand's are packed, as far as they go; else they are all
    Value panels; ///< where they are then, with all steps
    Value origin; ///< the first that is packed
    Value begin, end;
    Value choose(mlir::ImplicitLocOpBuilder &b, Value packed, Value lying) const;
  };
  /// Of large products that are being emitted.
  llvm::DenseMap<unsigned, ColumnsBlock> columnsOf_; ///< by number of the stage
  /// Its right operand: where column 0 and step 0 would be, and how far it is to the next ones.
  struct RightInBlock {
    Value begin, columnBytes, stepBytes;
    Operand lying; ///< where nothing is packed
    Value at(Emitter &emitter, Value column, Value step) const;
  };
  /// Some steps of such a product, for some rows.
  struct StepsBlock {
    Blocking::Run run;
    ColumnsBlock columns;
    Value begin, end;      ///< of the steps
    Value isFirst;         ///< whether they are the first of their group for these rows
    Value isLast;          ///< whether no steps of any run follow; null: some always do
    Value sums, sumsBytes; ///< of each tile, one after the other; 0 where there is one run
    Value left;            ///< packed rows of the left operand
    Value firstPanel;
    llvm::SmallVector<RightInBlock, 2> rights; ///< of each accumulator of the group
  };
  std::optional<StepsBlock> stepsBlock_;
  unsigned numberOf(const Stage &stage) const;
  Value packingPlace(size_t place);
  Value isWorthPacking(const Stage &stage, llvm::ArrayRef<Value> outer, Value rows);
  void forColumns(const Stage &stage, llvm::ArrayRef<Value> outer, Value packs, bool several,
                  llvm::function_ref<void(const ColumnsBlock &)> body);
  void forPanels(const Stage &stage, const ColumnsBlock *columns,
                 llvm::function_ref<void(const Stage &of, Value first, Value last)> body);
  void forPackedColumns(const Stage &stage, const ColumnsBlock &all,
                        llvm::function_ref<void(const ColumnsBlock &)> body);
  void packColumns(const Stage &stage, llvm::ArrayRef<Value> outer, const ColumnsBlock &columns);
  Value packedPanel(const Stage &of, const ColumnsBlock &columns, const Blocking::Run &run,
                    size_t accumulator, Value column);
  Value packedRows(const Stage &stage, const Tile &tile);
  void forStepsBlocks(const Stage &stage, llvm::ArrayRef<Value> outer, const ColumnsBlock &columns,
                      Value firstPanel, Value rows,
                      llvm::function_ref<void(Value rowBegin, Value rows)> body);
  llvm::SmallVector<Value> sumsOfStepsBefore(const Stage &stage, const Tile &tile,
                                             llvm::ArrayRef<size_t> places,
                                             llvm::ArrayRef<Value> start);
  bool computes(const Stage &stage, const Turn &turn) const;
  void afterLastSteps(llvm::function_ref<void()> body);
  void beforeLastSteps(llvm::function_ref<void()> body);
  void askForPanel(const Stage &stage, const Tile &tile);
  Tile enterBlock(const Stage &stage, const Tile &tile,
                  llvm::function_ref<std::vector<Value>()> firstRow);
  Tile withSums(const Stage &stage, const Tile &tile);
  void packRows(const Stage &stage, const Tile &tile, const std::vector<Value> &index);
  llvm::SmallVector<Operand> leftsInBlock(const Stage &stage, const Tile &tile,
                                          const Operand &first, int64_t rows);
  RightInBlock rightInBlock(const Stage &stage, llvm::ArrayRef<Value> outer,
                            const ColumnsBlock &columns, const Blocking::Run &run,
                            size_t accumulator);
  void inRowBlock(const RowBlock &block, llvm::ArrayRef<Value> outer,
                  llvm::function_ref<void()> body);

  // EmitProducts.cpp
  void emitTile(const Stage &stage, int64_t rows, const Tile &tile, llvm::ArrayRef<Turn> turns,
                llvm::function_ref<std::vector<Value>(int64_t row)> enterRow);
  Operand operandAt(Value value, const View &view, const Place &place, int k);
  Operand rightAt(const Stage &stage, const ProductSegment &segment, const Place &place, int k,
                  bool lies);
  /// A step of a run over k. The loop is unrolled: the first step of the turn, and how many before
  /// it there are in the turn. Apart, since what is constant costs no instruction.
  struct At {
    Value turn;
    int64_t step;
    int64_t half = 0; ///< of a step in two halves
  };
  /// An address of a run's first step of a turn, from that of its first turn.
  struct Walk {
    Value from, stride; ///< bytes a step
    Value at;
  };
  llvm::SmallVector<Walk> walks_; ///< of the loop of a run that is being emitted
  mlir::scf::ForOp carryWalks(mlir::scf::ForOp loop, llvm::ArrayRef<Walk> walks);
  Value numberOf(At at);
  Value along(Value pointer, Value stride, At at);
  Value leftLanes(const Operand &operand, At k, int64_t lanes);
  Value rightLanes(const Stage &stage, llvm::ArrayRef<Operand> rights, size_t vector, At k);
  /// What the rows and the vectors of a step of a run over k contribute.
  struct Step {
    size_t rows, vectors;
    bool packed; ///< the right operand is packed weights
    llvm::function_ref<Value(size_t row, At at)> left;
    llvm::function_ref<Value(size_t vector, At at)> right;
    llvm::function_ref<Value(Value left, Value right, Value sum)> add;
    /// Asks for lines of memory that are needed later, at every so many steps; may be null.
    llvm::function_ref<void(At at)> ask = {};
    int64_t askEvery = 1;
    int64_t halves = 1; ///< of a step, one after the other for all sums
  };
  void emitStep(const Step &step, At at, llvm::MutableArrayRef<Value> sums);
  llvm::SmallVector<Value> emitRun(const Step &step, Value steps, llvm::ArrayRef<Value> sums);
  llvm::SmallVector<Value> emitChain(llvm::ArrayRef<Operand> rows, Value extent,
                                     llvm::ArrayRef<Value> sums, int64_t lanes, bool packed,
                                     llvm::function_ref<Value(size_t vector, At k)> right,
                                     llvm::function_ref<void(At k)> ask = {}, int64_t askEvery = 1);
  llvm::SmallVector<Value> emitPacked(const Stage &stage, const Turn &turn, const Tile &tile,
                                      llvm::ArrayRef<llvm::SmallVector<Operand>> lefts,
                                      llvm::ArrayRef<Value> sums);
  /// The packed panels of a group's weights that a tile takes, and the lines that it asks for of
  /// the next one.
  struct Panel {
    llvm::SmallVector<Value, 2> weights;
    Value lines;
  };
  Panel panelOf(const Turn &turn, const Tile &tile, int64_t stepBytes, int64_t steps,
                int64_t askedAStep);

  // EmitAhead.cpp
  /// A row of a record that comes later, which the loop over one of this record asks for.
  struct RowAhead {
    const Buffer *buffer;
    Value base;
  };
  /// The requests for the rows of a buffer, the loop that makes them, and how well it hides them.
  struct Asking {
    mlir::Block *loop = nullptr;
    int worth = -1;
    llvm::SmallVector<mlir::LLVM::Prefetch, 4> requests;
  };
  llvm::DenseMap<const Buffer *, Asking> asking_;
  llvm::SmallVector<RowAhead> rowsAhead(llvm::ArrayRef<Dim> shape);
  void ask(llvm::ArrayRef<RowAhead> rows, const Place &place, bool reduces);
  /// A matrix of the next record: so many lines of it each tile asks for.
  struct MatrixAhead {
    Value base;
    int64_t lines, tilesOfPanel;
  };
  llvm::SmallVector<MatrixAhead> matricesAhead(const Stage &stage);
  void ask(llvm::ArrayRef<MatrixAhead> matrices, const Tile &tile);
  void prefetch(const Stage &stage, const Tile &tile, EnterRow enter);
  void prefetchStarts(const Stage &stage, const Tile &tile, Value count, EnterRow enter);

  // EmitTransposed.cpp
  llvm::SmallVector<Value> transposeBlock(llvm::ArrayRef<Value> rows);
  void forBlocks(Value rows, llvm::function_ref<Value(Value row)> addressOf,
                 llvm::function_ref<void(Value row)> block,
                 llvm::function_ref<void(Value row)> alone);
  static bool liesTransposed(const Stage &stage, const ProductSegment &segment);
  void emitFactorBlocks(const Stage &stage, const ProductSegment &segment, int64_t begin,
                        Value rows, EnterRow enter, llvm::function_ref<void(Value row)> alone);
  Value transposedRow(const Stage &stage, const Root &root, const Tile &tile, Value row);
  void emitTransposed(const Stage &stage, const Tile &tile, EnterRow indexOfRow);
  /// The tile of the epilogue that is being emitted, its row among those that the panels pass over,
  /// and the vector's place in the row.
  struct TilePlace {
    const Tile *tile = nullptr;
    Value row, begin;
  } tilePlace_;

  // EmitTurned.cpp
  llvm::SmallVector<Value> transposeLanes(llvm::SmallVector<Value> rows);
  llvm::SmallVector<Value> eitherWay(const Stage &stage, mlir::TypeRange types,
                                     llvm::function_ref<llvm::SmallVector<Value>(bool lies)> body);
  llvm::SmallVector<Value> emitTurnedChain(const Stage &stage, const Operand &left, Value first,
                                           Value end, const std::vector<Value> &index, Value column,
                                           llvm::ArrayRef<Value> sums);
  void emitTurned(const Stage &stage);
  void emitTurned(const Stage &stage, llvm::ArrayRef<std::pair<Value, Value>> ranges);

  // EmitFactors.cpp
  Value toFactors(Value lanes);
  Value addPair(Value left, Value right, Value sum);
  void flushing(const Stage &stage, llvm::function_ref<void()> body);
  bool flushes(const Stage &stage) const;
  bool flushing_ = false;
  Value floatStates_[2]; ///< of the processor, in memory: subnormal numbers are kept, or flushed
  Value addRoundedProduct(Value left, Value right, Value sum);
  Value addRoundedProductInDoubles(Value left, Value right, Value sum);
  Value factorRows();
  void emitFactorRows(const Stage &stage, Value rows, EnterRow enter);
  llvm::SmallVector<Value> emitPackedPairs(const Stage &stage, const Turn &turn, const Tile &tile,
                                           int64_t rows, llvm::ArrayRef<Value> sums);
  /// An operand, and the bytes from one pair of k to the next.
  struct InPairs : Operand {
    Value pairStride;
  };
  llvm::SmallVector<InPairs> inPairs(llvm::ArrayRef<Operand> operands);
  bool isWide(const Operand &operand) const;
  Value wideFactor(Value at, Value stride, At step, bool isWhole,
                   llvm::function_ref<Value(Value from)> load);
  Value stepOf(Value pairs, At step);
  int64_t halvesOfStep() const;
  Value addStep(Value left, Value right, Value sum);
  Value joinStep(At step, bool isWhole, llvm::function_ref<Value(bool upper)> factors);
  Value leftPair(const InPairs &operand, At step, bool isWhole, int64_t lanes);
  Value rightPair(const InPairs &operand, At step, int64_t column, bool isWhole, int64_t lanes);
  llvm::SmallVector<Value> emitPairsInPlace(const Stage &stage, Value extent,
                                            llvm::ArrayRef<Operand> lefts,
                                            llvm::ArrayRef<Operand> rights,
                                            llvm::ArrayRef<Value> sums);
  Value withoutZeroFactors(const Operand &left, const Operand &right, Value extent, Value sum);
  void emitHardwareTiles(const Stage &stage, const Tile &tile, EnterRow enter);
  void emitHardwareTiles(const Stage &stage, const Tile &tile, int64_t high);
  void configureTiles();
  void tileCall(llvm::StringRef name, llvm::ArrayRef<int64_t> registers,
                llvm::ArrayRef<Value> operands = {});

  // EmitForeign.cpp
  void emitForeign(const Stage &stage, Value rows, EnterRow enter);

  void emitEpilogues(const Stage &stage, const Tile &tile, EnterRow indexOfRow);
  void emitEpilogue(const Stage &stage, const Tile &tile, Value row, std::vector<Value> index);
  Value withoutZeros(const Stage &stage, const Accumulator &accumulator, std::vector<Value> index,
                     Value column, Value sums);
  void writeVector(const Stage &stage, std::vector<Value> index, Value column,
                   std::vector<Value> accumulators);
  void emitApart(llvm::function_ref<void()> body);
  void moveApart(mlir::scf::ExecuteRegionOp region);
  Value startsOf(const Stage &stage, Value panel);
  llvm::SmallVector<Value>
  startValues(const Stage &stage, const Turn &turn, int64_t rows, const Tile &tile,
              llvm::function_ref<std::vector<Value>(int64_t row)> enterRow);
  Value sumsBefore(const Stage &stage, const Accumulator &accumulator, const Place &place);
  Value startOfRow(const Stage &stage, const Accumulator &accumulator, std::vector<Value> index,
                   Value column, const Turn &turn);
  Value panelCount(const Stage &stage);

  // EmitValues.cpp
  Value evaluate(Value value, const View &view, Scope &scope, bool computed = false);
  Value emitElementwise(Value value, const View &view, Scope &scope);
  Value emitFold(Value value, const View &view, Scope &scope);
  /// From the tensor at `base`, or where the buffer is.
  Value load(const Buffer &buffer, const View &view, const Place &place, Value base = {});
  Value loadMirrored(const Buffer &buffer, const View &view, const Place &place,
                     llvm::function_ref<Value(const Place &lane)> address);
  Value loadApart(const Buffer &buffer, Value pointer, Value stride, const Place &place);
  Value strideOf(const Buffer &buffer, const View &view, int axis);
  Value loadReshaped(Value value, const View &view, const Place &place);
  Value loadAcrossRows(const Buffer &buffer, Value first, Value number, Value rows,
                       const Place &place);
  Value loadAlongRows(const Buffer &buffer, Value pointer, Value column, const Place &place);
  Value loadLaneByLane(const Buffer &buffer, const Place &place,
                       llvm::function_ref<Value(const Place &lane)> address);
  void store(const Stage &stage, const Root &root, Value lanes, const Place &place);
  void storeLaneByLane(const Root &root, Value stored, const Place &place);
  Value inRange(const Place &place);
  Value laneNumbers(mlir::Type element, int64_t lanes);
  bool isComputedAlong(Value value, const View &view, const Scope &scope);
  Value fill(Value value, const View &view, const Place &place);

  // EmitAddresses.cpp
  void enterRecord(Value record, Value chunkBegin);
  /// Emits with so much later a record, or the last one, as the current record: its addresses.
  void withRecordAhead(int64_t ahead, llvm::function_ref<void()> body);
  Value atRecord(llvm::function_ref<Value()> make);
  Value atEntry(llvm::function_ref<Value()> make);
  Value granule(Value id);
  Value temporaryBase(const Buffer &buffer);
  Value base(const Buffer &buffer);
  const std::vector<Value> &strides(const Buffer &buffer);
  std::vector<Value> regroupedStrides(const Buffer &buffer);
  const Buffer *regrouped(Value reshape);
  Value sizeOf(llvm::ArrayRef<RecordBuffer> buffers);
  Value temporaryEntry();
  Value rowBytes(const Dim &innermost, ops::DType dtype, bool apart = false);
  Value rowBytes(const Buffer &buffer);
  Value address(const Buffer &buffer, llvm::ArrayRef<Value> index);
  /// The same in a tensor that lies like the buffer, from `pointer` on.
  Value addressFrom(Value pointer, const Buffer &buffer, llvm::ArrayRef<Value> index);
  Value held(Value number, Value last);
  Value positionOf(const HostPosition &position);
  Value indexOf(const AxisMap &map, const Place &place);
  Value pickedAt(const AxisMap &map, const Place &place);
  bool needPlaces(const View &view, Scope &scope, llvm::function_ref<Value(Value, View)> need);
  std::vector<Value> indices(const View &view, const Place &place);
  Value extent(const Dim &dim);
  Value divisor(const Dim &dim);
  Value symbol(const std::string &name);
  Value scalar(Value value);
  Value word(unsigned index, bool wide);

  // Small builders.
  Value constant(int64_t v);
  Value add(Value a, Value c);
  Value mul(Value a, Value c);
  Value minimum(Value a, Value c);
  Value isLess(Value a, Value c);
  Value bytes(Value pointer, Value offset);
  Value bytes(Value pointer, int64_t offset);
  Value splat(Value element, int64_t lanes);
  Value loadAs(mlir::Type type, Value pointer, int64_t alignment);
  Value loadElement(const Buffer &buffer, Value pointer);
  Value multiplyAdd(Value a, Value c, Value sum);
  Value toLanes(Value stored, ops::DType dtype);
  Value toStorage(Value lanes, ops::DType dtype);
  mlir::Type storageType(ops::DType dtype);
  mlir::Type laneType(ops::DType dtype);
  /// A place before what is emitted next, for code that is found to belong there.
  mlir::Operation *marker();
  /// scf.for over [lo, hi) with a body that builds through `b`.
  void loop(Value lo, Value hi, int64_t step, llvm::function_ref<void(Value)> body);
  /// scf.if without results.
  void when(Value condition, llvm::function_ref<void()> body);
  /// scf.while from `start`; `before` ends in scf.condition, `after` in scf.yield. Gives the last
  /// state.
  mlir::ValueRange loopWhile(mlir::ValueRange start,
                             llvm::function_ref<void(mlir::ValueRange)> before,
                             llvm::function_ref<void(mlir::ValueRange)> after);

  mlir::ImplicitLocOpBuilder b;
  const Kernel &kernel_;
  const Layout &layout_;
  const Plan &plan_;
  const rt::Target &target_;
  mlir::ModuleOp module_;
  mlir::Type i64_, f32_, pointer_;
  Value records_, begin_, end_, panelBegin_, panelEnd_, rows_, weights_, scratch_;
  /// Whether the pass over panels that is being emitted goes last to first; null: none does.
  Value walksBack_;
  mlir::Operation *entry_ = nullptr;
  llvm::DenseMap<int64_t, Value> constants_;
  llvm::DenseMap<unsigned, Value> weightAddresses_;
  Record record_;
  std::deque<Buffer> regroupedBuffers_;
  llvm::DenseMap<Value, const Buffer *> regroupedOf_;
  std::vector<mlir::scf::ExecuteRegionOp> apart_; ///< to be moved into functions
  int moved_ = 0;
  mlir::Operation *row_ = nullptr; ///< Scope::row of the expression that is being emitted
  /// What indices name, as in that row.
  struct Picked {
    Value index;
    View view;
    Dim size;
    Value place;
    bool names(const AxisMap &map) const {
      return index == map.index && view == *map.indexView && size == map.indexed;
    }
  };
  llvm::SmallVector<Picked> picked_;
  /// Of the load that is being emitted: what is named by indices that no memory holds, in vectors.
  llvm::SmallVector<Picked> placesOnTheWay_;
  mlir::Operation *pickedRow_ = nullptr;
  Dim laneExtent_ = 1; ///< extent of the lanes axis of the space being emitted
};

} // namespace sheaf::kernels::cpu

#endif // SHEAF_COMPILER_KERNELS_CPU_EMITTER_H
