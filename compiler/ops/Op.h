//===- Op.h - The operator record -------------------------------*- C++ -*-===//
//
// One record per tensor operator is the only place that knows it: how it is
// called, its shape rule, its reference, how it is batched, its gradient and
// cost. The type checker, the verifier of the Program dialect, the oracle, the
// kernel generator, the passes and the derivation of gradients all read this record;
// none of them names an operator. What they make is in Make.h.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_OPS_OP_H
#define SHEAF_COMPILER_OPS_OP_H

#include "compiler/ops/Dim.h"
#include "runtime/model/dtypes.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mlir {
class Value;
class ValueRange;
class Operation;
class ImplicitLocOpBuilder;
} // namespace mlir

namespace sheaf::ops {

//===----------------------------------------------------------------------===//
// Types, as shape rules see them
//===----------------------------------------------------------------------===//

using rt::DType;
using rt::dtypeName;
using rt::isFloat;

/// A tensor type. `vocab` is set for token tensors (`token<word>[n]` is i32 with vocab "word";
/// the default vocabulary is the empty string).
struct TensorType {
  DType dtype = DType::F32;
  std::vector<Dim> dims;
  std::optional<std::string> vocab;
  bool operator==(const TensorType &) const = default;
  std::string str() const; ///< source form: `f32[n, 2*hidden]`
};

/// Host scalars that operators accept beside tensors.
enum class HostKind { Int, Float, Bool, Token };

/// What an operand is: a tensor or a host scalar. Lists of tensors (for `stack`) have
/// `isList` set and give the element type.
struct OperandType {
  std::variant<TensorType, HostKind> type;
  bool isList = false;
  std::optional<int64_t> number = {}; ///< of a host int that is known when the model is checked
  std::optional<Dim> length = {};     ///< of a list, if that is known
  bool uniform = true;                ///< of a list: all elements have the same extents
  std::string vocab = {};             ///< of a host token
  const TensorType *tensor() const { return std::get_if<TensorType>(&type); }
  const HostKind *host() const { return std::get_if<HostKind>(&type); }
  std::string str() const;
};

/// A compile-time argument: an int (axis, count), a number (epsilon), an extent, or the extents
/// of an `Extents` parameter.
using Attr = std::variant<int64_t, double, Dim, std::vector<Dim>>;
/// By parameter name. A parameter left out of the call is either absent (then the rule takes its
/// default) or there with its default; optional parameters have no default and are then absent.
using Attrs = std::map<std::string, Attr>;

//===----------------------------------------------------------------------===//
// Signatures: how a call in the source becomes operands and attributes
//===----------------------------------------------------------------------===//

enum class ParamKind {
  Tensor,  ///< a tensor, or a host int/float/bool that is promoted to a rank-0 tensor
  Index,   ///< a host int or token, or an i32/i64/token tensor
  Tensors, ///< zero or more tensors: takes all remaining positional arguments (concat)
  List,    ///< a host list of tensors (stack)
  Extent,  ///< an extent or a host int (slice's start): an attribute when constant, else an operand
  Extents, ///< all remaining positional arguments as extents (zeros, reshape)
  Static,  ///< a compile-time int (axis, count): becomes an attribute
  Number,  ///< a compile-time float (epsilon): becomes an attribute
  Key,     ///< the key of a draw, a host int and the last operand: calls do not write it, the front
           ///< end makes it from the place of the call
};

struct Param {
  std::string name;
  ParamKind kind;
  std::optional<Attr> defaultValue = {}; ///< for Static, Number and Extent
  bool optional = false;        ///< may be left out though it has no default (the axis of `sum`)
  std::string leftOut = "none"; ///< what that means, in words
};

//===----------------------------------------------------------------------===//
// Shape rules
//===----------------------------------------------------------------------===//

/// What a shape rule may ask about extents. The type checker answers strictly (equal only if
/// proven); the IR verifier, which has lost names, answers leniently (different only if proven).
class DimOracle {
public:
  virtual ~DimOracle() = default;
  virtual bool same(const Dim &a, const Dim &b) const = 0;
  /// The number an extent stands for, when it is known at compile time.
  virtual std::optional<int64_t> value(const Dim &d) const = 0;
  /// a / b when exact; nullopt otherwise.
  virtual std::optional<Dim> quotient(const Dim &a, const Dim &b) const = 0;
  /// a / b rounded down, of a that is not negative; an extent of its own when it has no name.
  virtual Dim floorQuotient(const Dim &a, int64_t b) const {
    if (auto known = value(a))
      return Dim(*known / b);
    return a.dividedBy(Dim(b)).value_or(Dim::fresh());
  }
};

/// Result types, or a message in source terms that names both sides. `operand` points at the
/// operand to blame (-1: the call). Dynamic extents in results that no operand determines come
/// from Extent parameters.
struct ShapeResult {
  std::vector<TensorType> types;
  std::string error; ///< empty on success
  std::string help;
  int operand = -1;
  /// Extents that are not proven to be equal, when that is all that is wrong.
  std::optional<std::pair<Dim, Dim>> unproven = {};
  static ShapeResult ok(TensorType t) { return {{std::move(t)}, {}, {}, -1}; }
  static ShapeResult fail(std::string message, int operand = -1, std::string help = {}) {
    return {{}, std::move(message), std::move(help), operand};
  }
};

using ShapeRule =
    std::function<ShapeResult(std::span<const OperandType>, const Attrs &, const DimOracle &)>;

//===----------------------------------------------------------------------===//
// The reference
//===----------------------------------------------------------------------===//

/// The arithmetic a reference computes in: every scalar result passes through `round`.
struct Arithmetic {
  virtual ~Arithmetic() = default;
  virtual double round(double) const = 0; ///< to f32, or to f64 (identity)
  /// To bf16 as factors of bf16 products are (rt::floatToFactor), where narrow types are rounded.
  virtual double roundFactor(double x) const { return x; }
  /// The same for many at once, for speed.
  virtual void roundAll(std::span<double> values) const {
    for (double &value : values)
      value = round(value);
  }
};

/// A dense row-major tensor of the oracle. Ints and bools are exact in doubles (|i| < 2^53).
struct RefTensor {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<double> data;
  bool host = false; ///< a host scalar as a rank-0 tensor
  int64_t key = 0;   ///< of a host int: all its 64 bits
  int64_t size() const;
};

/// Operands by reference: a table of embeddings is not copied to take a row of it.
class RefTensors {
public:
  RefTensors(std::vector<const RefTensor *> tensors) : tensors_(std::move(tensors)) {}
  RefTensors(const std::vector<RefTensor> &tensors) {
    for (const RefTensor &tensor : tensors)
      tensors_.push_back(&tensor);
  }
  const RefTensor &operator[](size_t i) const { return *tensors_[i]; }
  size_t size() const { return tensors_.size(); }

private:
  std::vector<const RefTensor *> tensors_;
};

/// `results` come in with dtype and shape set and data sized; the reference fills the data.
/// Host scalars arrive as rank-0 tensors, a list operand as consecutive operands. Returns a
/// message when the values are wrong (an index out of range), else the empty string.
using Reference = std::function<std::string(const RefTensors &operands, const Attrs &,
                                            const Arithmetic &, std::span<RefTensor> results)>;

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

/// Of an operator with ints or bools in its results that follow from floats: how near they are to
/// others.
struct Decision {
  size_t result = 0; ///< which one holds them
  /// How far element `at` of the result is from being `value`: the least change that does it of the
  /// two numbers that meet there, each by that much, in units of max(1, the greater |number|).
  /// Infinite when none does. Of elements that are taken one after the other (top_k) the others
  /// are what they are.
  std::function<double(const RefTensors &operands, const Attrs &, const RefTensor &result,
                       size_t at, double value)>
      distance;
  /// The least and the greatest value that a small change may make of an element.
  std::function<std::pair<double, double>(const RefTensors &operands, const Attrs &,
                                          const RefTensor &result, size_t at)>
      range;
  /// Makes it so, other elements and results included. Empty: it concerns no others.
  std::function<void(const RefTensors &operands, const Attrs &, std::span<RefTensor *const> results,
                     size_t at, double value)>
      take = {};
};

//===----------------------------------------------------------------------===//
// Batch rules: what the kernel generator does with the operator
//===----------------------------------------------------------------------===//

/// Elementwise with broadcasting: emits the result of one vector of lanes. Operands and result
/// are `vector<VLx...>` of the compute type (f32 for all floats, i32/i64, or i1 for bool). The
/// lanes of a host operand (internal operators only) have its own type: f64, i64 or i1. The lanes
/// of a bf16 or f16 result are not rounded yet: whoever calls rounds them when it stores them.
using EmitLanes = std::function<mlir::Value(mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;
struct Elementwise {
  /// What a comparison says of its operands.
  enum class Comparison { Equal, Unequal, Less, AtMost, Greater, AtLeast };
  EmitLanes emit = {};
  bool addition = false;    ///< a + b: products and biases that meet here share one accumulator
  bool selects = false;     ///< the first operand says of which of the two others an element is
  bool subtraction = false; ///< a - b
  bool magnitude = false;   ///< |a|
  bool identity = false;    ///< a
  std::optional<Comparison> comparison = {};
  bool exponential = false; ///< e to the power a
  bool factor = false;      ///< a, rounded to bf16 as factors of bf16 products are
};

/// `emit` of a tensor and each element of a list of such tensors, from left to right.
struct Fold {
  EmitLanes emit;
};

/// A reduction along attribute `axis`, in the lane order that docs/numerics.md fixes, or something
/// else that takes elements along an axis in an order of its own.
struct Reduction {
  /// Top: the places of the `k` greatest along the last axis, which becomes k long.
  /// Sort: the places of all elements along the last axis, from the least, or from the greatest if
  /// `descending` is 1; of equals the first first.
  /// Scan: the sums up to each element along an axis that is not the last.
  /// AddRows: the rows of the first operand are added to those of the result that the second names.
  enum Kind { Sum, Max, Min, ArgMax, Top, Sort, Scan, AddRows } kind;
};

/// Pure data movement, done by addressing wherever the reader allows it.
struct Movement {
  enum Kind {
    Concat,
    Split,
    Slice,
    Transpose,
    Reshape,
    Broadcast,
    Stack,
    Gather,
    TakeAlong,
    Element,
    Flip
  } kind;
};

/// A product: contracts the last axis of the first operand with the last but one (or only) axis
/// of the second; leading axes are batch axes. `bf16`: its factors are rounded to bf16, as
/// docs/numerics.md has it. `leavesOutZeros`: 0 times anything, infinities and NaN too, adds
/// nothing.
struct Product {
  bool bf16 = false;
  bool leavesOutZeros = false;
};

/// Constant: a tensor whose elements are all attribute `value`. Iota: i32[n], 0 1 2 ...
struct Fill {
  enum Kind { Constant, Iota } kind = Constant;
};

/// Rewritten into simpler operators before blocks are formed. Returns the replacement values.
using ExpandRule =
    std::function<std::vector<mlir::Value>(mlir::ImplicitLocOpBuilder &, mlir::Operation *apply)>;
struct Expand {
  ExpandRule rewrite;
};

/// The rows of the second operand copied after those of the first, in place where there is room:
/// the host makes the records that copy.
struct AppendRows {};

/// Done by the host as address arithmetic: no kernel, no record (`table[i]`, `rows`, some rows of a
/// tensor that is handed on).
struct HostAddress {
  enum Kind { Row, Rows, Part } kind;
};

using BatchRule = std::variant<Elementwise, Fold, Reduction, Movement, Product, Fill, AppendRows,
                               Expand, HostAddress>;

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// One application in a block that is differentiated, and the gradients of its results.
struct GradientCall;

/// Makes the gradients of the operands, each of its operand's shape and element type, of operators
/// that blocks may hold. Null where no gradient goes: host scalars, ints, operands not wanted.
using GradientRule =
    std::function<std::vector<mlir::Value>(mlir::ImplicitLocOpBuilder &, const GradientCall &)>;

/// How an operator is differentiated.
struct Gradient {
  enum Kind {
    Unstated,  ///< nobody has said; the operators' tests do not let it pass
    Rule,      ///< by `rule`
    Expansion, ///< as what its Expand rule makes of it
    Rows,      ///< it moves whole rows: the backward pass finds them by their ids
    None,      ///< nothing goes through: ints, bools, steps, draws
    Untrained  ///< the pass that makes it does nothing in training, or comes after gradients
  } kind = Unstated;
  GradientRule rule = {};
};

//===----------------------------------------------------------------------===//
// The record and its table
//===----------------------------------------------------------------------===//

struct Op {
  std::string name;    ///< as written in a call; infix operators have names too (`add`, `matmul`)
  std::string summary; ///< for docs and `sheaf help operators`
  std::vector<Param> params;
  ShapeRule shape;
  Reference reference;
  BatchRule batch;
  /// Product FLOP of one application for the given operand and result shapes (0: not a product).
  std::function<double(std::span<const std::vector<int64_t>> operands)> productFlop;
  Gradient gradient = {}; ///< of training (Gradient.h)
  std::optional<Decision> decision = {};
  std::string_view family = {}; ///< by OpTable
  bool internal = false;        ///< made by passes only; not callable from source
  /// The operator that takes its place where products compute in bf16 (the pass autocast). Empty:
  /// it stays as it is.
  std::string bf16Form = {};
  /// The same in attention, where both factors are the instance's own.
  std::string bf16OwnForm = {};
  /// Of a product in bf16: the operator that gives the same where its operands hold rounded factors
  /// (the pass round-factors).
  std::string ofFactors = {};
  /// How far kernels may be from the reference, in units in the last place of an f32: of functions
  /// that kernels compute by polynomials (docs/numerics.md). 1: what is rounded once.
  double ulps = 1;
  /// Stands for its first operand unless the program is made for training.
  bool trainingOnly = false;
  /// Is its first operand, and ends gradients.
  bool stopsGradient = false;
  /// Static parameters whose names begin with `axis` count the axes of the result, which has one
  /// more than the first operand (stack, expand_dims), instead of those of the first operand.
  bool axisOfResult = false;
  /// The element type that a host scalar takes as this operand; null: that of the first tensor
  /// operand, or f32, i64, bool for float, int, bool when all operands are host scalars.
  std::function<DType(std::span<const OperandType>, size_t operand)> promotion = {};

  /// Whether it draws random numbers: it has a parameter of kind Key.
  bool draws() const;
  /// How it is called, with what parameters are when they are left out: `softmax(x, axis=-1)`.
  std::string signature() const;
  /// The element type that host scalar `operand` is promoted to.
  DType promoted(std::span<const OperandType> operands, size_t operand) const;
};

/// The attributes of a call with defaults filled in and negative axes counted from the front, as
/// `sheaf.apply` wants them. Only for calls that the shape rule accepts.
Attrs canonicalAttrs(const Op &op, std::span<const OperandType> operands, Attrs attrs);

/// The operator that applies one of two tensors to a tensor and each element of a list (Folds.cpp),
/// if there is such a one.
std::string foldOf(std::string_view operation);

/// All operators, sorted by name. Built once, immutable.
class OpTable {
public:
  static const OpTable &get();
  const Op *find(std::string_view name) const;
  std::span<const Op> all() const { return ops_; }

private:
  OpTable();
  std::vector<Op> ops_;
};

} // namespace sheaf::ops

#endif // SHEAF_COMPILER_OPS_OP_H
