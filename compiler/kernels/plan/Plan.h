//===- Plan.h - What a kernel computes where --------------------*- C++ -*-===//
//
// A plan splits a block into stages. A stage is a loop nest over one iteration space that writes a
// few roots; everything between the roots and the buffers they read is computed on the way. Stages
// of one level are independent; a stage reads only buffers of lower levels.
//
// How a machine computes a stage is for its back end to say.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_KERNELS_PLAN_PLAN_H
#define SHEAF_COMPILER_KERNELS_PLAN_PLAN_H

#include "compiler/kernels/plan/Views.h"
#include "runtime/model/model.h"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sheaf::kernels {

inline rt::DType runtimeType(ops::DType dtype) { return static_cast<rt::DType>(dtype); }
/// The extent of an argument that is a list: how many elements it has.
inline Dim lengthOf(unsigned argument) { return Dim::symbol(std::to_string(argument) + ".0"); }
inline int64_t bytesOf(ops::DType dtype) { return rt::dtypeBytes(runtimeType(dtype)); }

/// Where a whole tensor is kept.
struct Buffer {
  enum Kind {
    Argument, ///< rows of the record's argument
    List,     ///< each element of an argument; the record names a table of their ids
    Weight,   ///< a parameter in the row space
    Result,   ///< reserved by the record
    Scratch,  ///< needed while a record runs, of extents that all records share
    Temporary ///< the same with per-instance extents
  } kind;
  mlir::Value value;
  ops::DType dtype;
  std::vector<Dim> shape;
  /// Argument, List: record word; Weight: number among the block's weights; Scratch: place among
  /// Plan::scratch; Result, Temporary: number among those of the record.
  unsigned index = 0;
  /// Weight: whether anything reads it as it is, beside products of weights.
  bool readAsIs = true;
  /// Scratch, Temporary: rows are not padded, so that its elements are one row for whoever
  /// regroups them.
  bool dense = false;
  /// The same elements with other extents, or those of a part of it: extents of the part, and where
  /// it begins along each axis.
  const Buffer *regroups = nullptr;
  std::vector<Dim> part = {}, partBegin = {};
  /// Temporary: the first stage that needs it, and the last.
  unsigned firstStage = 0, lastStage = 0;
  /// Temporary: number among Plan::rowBlocks, or -1. Then only the rows of a block are there, and
  /// of the first `blockAxes` axes the last one counts them.
  int rowBlock = -1;
  size_t blockAxes = 0;

  /// Whether it is needed while a record runs alone.
  bool isTemporary() const { return kind == Scratch || kind == Temporary; }

  /// The memory that it lies in.
  const Buffer &whole() const { return regroups ? regroups->whole() : *this; }

  /// What of it is there at a time, if a block has so many rows.
  std::vector<Dim> shapeInMemory(int64_t blockRows) const {
    if (rowBlock < 0)
      return shape;
    const Dim &all = shape[blockAxes - 1];
    std::vector<Dim> rows{all.isConstant() ? std::min(blockRows, all.constant()) : blockRows};
    rows.insert(rows.end(), shape.begin() + static_cast<int64_t>(blockAxes), shape.end());
    return rows;
  }
};

/// A run of the contracted axis: both operands are read from buffers.
struct ProductSegment {
  mlir::Value lhs, rhs;  ///< buffer-backed values
  View lhsView, rhsView; ///< over the product's index space
  Dim extent;            ///< of k
};

/// Rows [begin, end) of a weight that a product contracts over, and its first column; columns and
/// the first row of one that is transposed. A weight of more than two axes counts as the matrix of
/// all its rows.
struct WeightRun {
  unsigned weight; ///< number among the block's weights
  int64_t begin, end;
  int64_t column;
  bool transposed;
};

/// A product, or a sum of products into one accumulator, with a start value. Its index space is
/// that of its value with one more, last axis: k, which starts at 0 in every segment.
struct Product {
  mlir::Value value;                    ///< the tensor that the whole sum stands for
  std::vector<ProductSegment> segments; ///< in the order of the FMA chain
  /// Where the chain starts: a weight of rank 1, else a tensor like `value`; null for zero.
  mlir::Value start;
  bool bf16 = false;           ///< factors are rounded to bf16
  bool leavesOutZeros = false; ///< steps with a factor 0 are left out
  bool rowsAreRecords = false; ///< lhs is rank 1 and rhs of weights: records are the rows
  /// The right operand is made of runs of weights, one a segment, all from the same column on.
  bool ofWeights = false;
  std::vector<WeightRun> weights;
  unsigned method = 0; ///< PlanOptions::method
};

/// The columns of a product that a stage sums up, from `column` on, as many as the stage has.
struct Accumulator {
  const Product *product;
  int64_t column;

  /// The tensor in memory whose elements its chains start at, or null.
  mlir::Value startRow() const {
    mlir::Value start = product->start;
    return start && roleOf(start) != Role::Weight ? start : mlir::Value();
  }
};

/// Products of a stage that read the same rows.
struct ProductGroup {
  const Product *lead;
  std::vector<unsigned> accumulators; ///< indices into Stage::accumulators
};

/// A tensor written by a stage: `value` at the iteration index, stored into `buffer` at `view`.
struct Root {
  mlir::Value value;
  const Buffer *buffer;
  View view;             ///< over the stage's iteration space
  bool computed = false; ///< the buffer is where the value is kept: it cannot be read from there
};

/// A tensor that a stage reads from memory: at its own places, by the view; none: elsewhere.
struct Access {
  const Buffer *buffer;
  std::optional<View> view;
  bool reshaped; ///< the view is of what the tensor is reshaped to

  /// The same of the memory that the tensor lies in.
  Access ofWhole() const {
    if (!reshaped && !buffer->regroups)
      return *this;
    return {&buffer->whole(), std::nullopt, false};
  }
};

/// What of a stage ends with the columns that rows see: its last axis, the axis it contracts, or
/// that of the rows of its products.
enum class Seen { Nothing, Columns, Steps, Rows };

struct Stage {
  enum Kind { Loop, Products, Reduce } kind;
  int level = 0;
  std::vector<Dim> shape; ///< iteration space
  std::vector<Root> roots;
  std::vector<Access> reads; ///< also by what it computes along
  bool masks = false;        ///< it makes the left operand of products that leave out its zeros

  // Products
  unsigned method = 0; ///< of all its products
  bool rowsAreRecords = false;
  int rowAxis = -1; ///< else: the axis along which products share the right operand; -1: none
  std::vector<Accumulator> accumulators;
  std::vector<ProductGroup> groups;
  std::vector<const Buffer *> argumentRows; ///< that its roots read beside the products, in order
  int rowBlock = -1;                        ///< number among Plan::rowBlocks, or -1
  /// Of products that leave more than they read and are in no row block: why, for reports.
  std::string whole;
  /// Of a row block: products that contract its rows. Sums start at zero before the first rows, and
  /// go on with the next ones where they lie.
  bool sumsRows = false;
  Seen seen = Seen::Nothing; ///< of a row block with bounds
  /// What only a row block reads is computed along this axis as far as any of its rows sees
  /// columns. -1: none.
  int seenAxis = -1;
  int seenBy = -1; ///< number of that row block among Plan::rowBlocks
};

/// The last column that a row sees, or the first: a sum of ints that are the same all along the
/// row.
struct ColumnBound {
  struct Term {
    mlir::Value value;
    View view; ///< over the space of the scores, without its last axis
    bool subtracted;
  };
  std::vector<Term> terms;
  int64_t offset = 0;
  bool isLast;
};

/// Bools: where one is false, a row does not see a column.
struct ColumnMask {
  mlir::Value value;
  View view; ///< over the space of the scores
};

/// Stages that go on together, a few rows after the others: all of them compute these rows before
/// the first computes the next ones. What they leave each other is kept of these rows only.
/// Products that contract the rows add what these rows give (Stage::sumsRows).
struct RowBlock {
  std::vector<Dim> axes;       ///< that their spaces begin with; rows are places along the last one
  unsigned begin = 0, end = 0; ///< among the plan's stages
  /// What lies beyond one of these adds nothing to what is made of the row, and need not be there.
  std::vector<ColumnBound> bounds;
  /// Nor need columns that no row sees by one of these, which bounds do not tell.
  std::vector<ColumnMask> masks;
  std::vector<const Buffer *>
      limitsRead; ///< what both follow from; no stage may say that it reads it
  Dim columns;    ///< how many there are

  /// Whether anything may be left out.
  bool seesLess() const { return !bounds.empty() || !masks.empty(); }
};

/// A tensor that is made for a record: a result, which lies in rows that the record reserves, or a
/// temporary with per-instance extents.
struct RecordBuffer {
  ops::DType dtype;
  std::vector<Dim> shape;
};

/// What host code and the run time need to know of a block's records, whoever computes them.
struct RecordPlan {
  std::vector<rt::RecordWord> layout;    ///< what a record holds
  uint32_t words = 0;                    ///< 32-bit words of a record
  std::vector<RecordBuffer> results;     ///< reserved by each record, one after the other
  std::vector<RecordBuffer> temporaries; ///< needed while it runs, beside Plan::scratch
  std::vector<rt::FlopTerm> flop;
  std::vector<rt::FlopTerm> bytes; ///< of rows that a record reads and writes, without padding
  /// The work of each operator, for reports: FLOP of products, for the rest a few an element.
  std::vector<std::pair<mlir::Operation *, double>> work;
  double productWork = 0;   ///< of the same, that of products
  double alongRowsWork = 0; ///< of that, what is summed along rows
};

struct Plan {
  ir::BlockOp block;
  std::unique_ptr<BlockShapes> shapes;
  std::deque<Buffer> buffers;   ///< stable addresses
  std::deque<Buffer> regrouped; ///< what lies in one of these, with other extents
  llvm::DenseMap<mlir::Value, const Buffer *> bufferOf;
  std::deque<Product> products;
  llvm::DenseMap<mlir::Value, const Product *> productOf;
  std::vector<Stage> stages; ///< by levels, but for those of row blocks, which stand together
  std::vector<RowBlock> rowBlocks;
  llvm::DenseMap<mlir::Value, int> levels; ///< of every kept tensor
  std::vector<uint32_t> argumentWords;     ///< first record word of each argument
  std::vector<int64_t> scratch;            ///< bytes of each place for Scratch buffers, of a record
  RecordPlan records;

  /// Arguments come first among a block's, then weights.
  unsigned weightNumber(mlir::Value weight) const {
    ir::BlockOp of = block;
    return mlir::cast<mlir::BlockArgument>(weight).getArgNumber() -
           static_cast<unsigned>(of.getNumArgs());
  }
};

/// What a back end decides of a plan, and what may be left out (`--without`).
struct PlanOptions {
  /// How the back end computes a product: a number of its own, 0 for what it likes best to leave to
  /// a later stage. Asked of each product by itself, before it is joined with others. Products are
  /// joined, and share a stage, only where their numbers are equal. Must give the same number for
  /// the same product each time.
  std::function<unsigned(const Product &, const BlockShapes &)> method;
  bool fuse = true;             ///< compute operators of a block on the way, one after the other
  bool merge = true;            ///< compute products over the same input as one
  bool knowWeights = true;      ///< Product::ofWeights
  bool wideFactors = false;     ///< temporaries of factors in bf16 (isOfFactors) are in f32
  bool shareTemporaries = true; ///< what never lives at once shares memory
  int64_t blockRows = 0;        ///< most rows of a RowBlock at a time; 0: there are none
  bool skipUnseen = true;       ///< RowBlock::bounds
};

/// Plans a block.
std::unique_ptr<Plan> planBlock(ir::BlockOp block, const PlanOptions &options);

} // namespace sheaf::kernels

#endif // SHEAF_COMPILER_KERNELS_PLAN_PLAN_H
