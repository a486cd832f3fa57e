//===- CheckerTree.h - The typed tree ---------------------------*- C++ -*-===//
//
// What the checker makes of a syntax tree: names are resolved, operators are chosen, types are
// known, generic calls carry their arguments. `Program` generation reads nothing else.
//
// Types and dims in the tree may still hold variables; `TypeContext::zonk` and
// `DimContext::resolve` replace them.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERTREE_H
#define SHEAF_COMPILER_FRONTEND_CHECKERTREE_H

#include "compiler/frontend/AST.h"
#include "compiler/frontend/Types.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sheaf {

struct FnInfo;
struct LetInfo;
struct ParamInfo;

namespace typed {

struct Expr;

//===----------------------------------------------------------------------===//
// Variables and patterns
//===----------------------------------------------------------------------===//

/// A `?` extent of a value got a name where the value came to hand: `symbol` is extent `axis` of
/// the tensor, or the length of the list, that field path `path` of the value's tuples leads to.
struct OpenedDim {
  std::string symbol;
  std::vector<unsigned> path;
  unsigned axis = 0;
};

struct Variable {
  std::string name;
  TypeRef type = nullptr;
  /// Of an int variable: the symbol that stands for its value in extents. Empty if there is none.
  std::string dimSymbol;
  /// Of an int variable that was bound to an extent: that extent, which is used instead.
  std::optional<Dim> dim;
  /// Of a variable of function or layer type: the `let`'s value. Null for a parameter.
  const Expr *staticValue = nullptr;
  SourceRange range;
};

enum class PatternKind { Wildcard, Bind, Int, Bool, Tuple, Constructor, Nil, Cons };

/// List patterns `[a, b]` are Cons(a, Cons(b, Nil)).
struct Pattern {
  PatternKind kind = PatternKind::Wildcard;
  SourceRange range;
  TypeRef type = nullptr;
  std::vector<OpenedDim> opened; ///< of the value that meets this pattern
  Variable *variable = nullptr;  ///< Bind
  int64_t value = 0;             ///< Int, Bool
  std::optional<int64_t> length; ///< Cons, Nil: of the lists that meet this pattern, if known
  unsigned constructor = 0;      ///< Constructor: its index
  std::vector<Pattern *> args;   ///< Tuple, Constructor: fields; Cons: head and tail
};

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

enum class ExprKind {
  Error,
  Number,
  Bool,
  Local,
  DimValue,
  Param,
  Constant,
  Function,
  Lambda,
  LayerSelf,
  LayerLet,
  LayerNew,
  LayerList,
  LayerIndex,
  LayerSlice,
  Call,
  Apply,
  Scalar,
  Builtin,
  Construct,
  Tuple,
  List,
  Block,
  If,
  Match,
  Open
};

struct Expr {
  const ExprKind kind;
  SourceRange range;
  TypeRef type = nullptr;

  virtual ~Expr() = default;
  bool is(ExprKind k) const { return kind == k; }
  template <typename T> const T *as() const {
    return kind == T::Kind ? static_cast<const T *>(this) : nullptr;
  }
  template <typename T> const T &to() const { return static_cast<const T &>(*this); }

protected:
  explicit Expr(ExprKind kind) : kind(kind) {}
};

template <ExprKind K> struct ExprOf : Expr {
  static constexpr ExprKind Kind = K;
  ExprOf() : Expr(K) {}
};

/// Stands where an error was reported.
struct ErrorExpr : ExprOf<ExprKind::Error> {};

/// A literal; its type says whether it is an int or a float.
struct NumberExpr : ExprOf<ExprKind::Number> {
  int64_t integer = 0; ///< of an integer literal
  double number = 0;
};

struct BoolExpr : ExprOf<ExprKind::Bool> {
  bool value = false;
};

/// A variable. Of a function or layer type it is known when the program is generated.
struct LocalExpr : ExprOf<ExprKind::Local> {
  Variable *variable = nullptr;
};

/// An extent as an int.
struct DimValueExpr : ExprOf<ExprKind::DimValue> {
  Dim dim;
};

/// A param: of the file (`layer` is null) or of a layer instance.
struct ParamExpr : ExprOf<ExprKind::Param> {
  const ParamInfo *param = nullptr;
  const Expr *layer = nullptr;
};

/// The value of a `let` outside functions that is no layer.
struct ConstantExpr : ExprOf<ExprKind::Constant> {
  const LetInfo *let = nullptr;
  const Expr *layer = nullptr;
};

/// A named function, with what its type parameters and dims stand for here.
struct FunctionExpr : ExprOf<ExprKind::Function> {
  const FnInfo *fn = nullptr;
  const Expr *layer = nullptr; ///< the instance, for a function of a layer
  std::vector<TypeRef> typeArgs;
  std::vector<Dim> dimArgs;
};

struct LambdaExpr : ExprOf<ExprKind::Lambda> {
  std::vector<Pattern *> params;
  std::vector<TypeRef> paramTypes; ///< as callers pass them, `?` included
  TypeRef resultType = nullptr;    ///< as callers get it
  const Expr *body = nullptr;
  const FnInfo *enclosing = nullptr;
};

/// The instance whose function this is.
struct LayerSelfExpr : ExprOf<ExprKind::LayerSelf> {};
/// A layer, or list of layers, made by a `let`: of the file, or of an instance.
struct LayerLetExpr : ExprOf<ExprKind::LayerLet> {
  const LetInfo *let = nullptr;
  const Expr *layer = nullptr;
};
/// `LSTM(a, b)`
struct LayerNewExpr : ExprOf<ExprKind::LayerNew> {
  const LayerInfo *info = nullptr;
  std::vector<Dim> dims;
};
/// `[A(), B()]`, repeated `repeat` times.
struct LayerListExpr : ExprOf<ExprKind::LayerList> {
  std::vector<const Expr *> elements;
  const Expr *repeated = nullptr; ///< instead of elements: a list to repeat
  Dim repeat = 1;
};
struct LayerIndexExpr : ExprOf<ExprKind::LayerIndex> {
  const Expr *list = nullptr;
  const Expr *index = nullptr;
};
/// `layers[a:b]` (null: open) or `reverse(layers)`.
struct LayerSliceExpr : ExprOf<ExprKind::LayerSlice> {
  const Expr *list = nullptr;
  const Expr *begin = nullptr;
  const Expr *end = nullptr;
  bool reversed = false;
};

/// A call of a named function, a lambda or a variable of function type.
struct CallExpr : ExprOf<ExprKind::Call> {
  const Expr *callee = nullptr;
  std::vector<const Expr *> args;
  uint32_t siteId = 0;
};

/// A tensor operator. Several results make a tuple.
struct ApplyExpr : ExprOf<ExprKind::Apply> {
  const ops::Op *op = nullptr;
  std::vector<const Expr *> operands;
  ops::Attrs attrs;
  std::vector<ops::TensorType> results;
  /// Ints computed here that the attributes' extents mention.
  std::vector<std::pair<std::string, const Expr *>> extents;
};

enum class ScalarOp {
  Neg,
  Not,
  Add,
  Sub,
  Mul,
  Div,
  Mod,
  FloorDiv, ///< of ints, rounded down
  FloorMod, ///< what that leaves, with the divisor's sign
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  And,
  Or,
  Min,
  Max,
  Abs,
  Sqrt,
  Exp,
  Log,
  Pow,
  Floor,
  Ceil,
  Convert
};

/// Arithmetic of host scalars. Operands have one type; Convert goes from the operand's to its own.
struct ScalarExpr : ExprOf<ExprKind::Scalar> {
  ScalarOp op = ScalarOp::Add;
  std::vector<const Expr *> operands;
};

enum class Builtin {
  Map,    ///< f, list
  Fold,   ///< f, init, list
  Scan,   ///< f, init, list
  Filter, ///< f, list
  Loop,   ///< condition, step, start
  Zip,    ///< lists
  ZipShortest,
  Range, ///< lo, hi
  Enumerate,
  Reverse,
  Len,       ///< of a list (also of layers)
  Append,    ///< list, element
  Concat,    ///< lists
  Cons,      ///< head, tail
  ListGet,   ///< list, index
  ListSlice, ///< list, begin or null, end or null
  Rows,
  Read, ///< tensor
  Emit  ///< value, converted to what the function emits
};

struct BuiltinExpr : ExprOf<ExprKind::Builtin> {
  Builtin builtin = Builtin::Len;
  std::vector<const Expr *> args;
};

struct ConstructExpr : ExprOf<ExprKind::Construct> {
  unsigned constructor = 0; ///< of the type's data
  std::vector<const Expr *> args;
};

struct TupleExpr : ExprOf<ExprKind::Tuple> {
  std::vector<const Expr *> elements;
};

struct ListExpr : ExprOf<ExprKind::List> {
  std::vector<const Expr *> elements;
};

/// `let pattern = value`, also for a call that is made for what it does, or, without a pattern,
/// `check value`.
struct Stmt {
  const Pattern *pattern = nullptr;
  const Expr *value = nullptr;
  TypeRef type = nullptr; ///< of a let: what the value is converted to before it meets the pattern
  std::string message;    ///< of a check
  SourceRange range;
};

struct BlockExpr : ExprOf<ExprKind::Block> {
  std::vector<Stmt> stmts;
  const Expr *result = nullptr;
};

struct IfExpr : ExprOf<ExprKind::If> {
  const Expr *condition = nullptr;
  const Expr *thenExpr = nullptr;
  const Expr *elseExpr = nullptr;
};

struct MatchArm {
  const Pattern *pattern = nullptr;
  const Expr *guard = nullptr;
  const Expr *body = nullptr;
};

struct MatchExpr : ExprOf<ExprKind::Match> {
  const Expr *scrutinee = nullptr;
  std::vector<MatchArm> arms;
};

/// The inner value, whose `?` extents get names.
struct OpenExpr : ExprOf<ExprKind::Open> {
  const Expr *inner = nullptr;
  std::vector<OpenedDim> opened;
};

} // namespace typed

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

struct DataInfo {
  struct Field {
    std::string name;
    TypeRef type = nullptr;
  };
  struct Constructor {
    std::string name;
    std::vector<Field> fields;
    SourceRange range;
  };
  std::string name;
  const DataDecl *decl = nullptr;
  std::vector<TypeRef> typeParams;
  std::vector<Constructor> constructors;
};

/// A dim that a function's arguments bind.
struct DimParam {
  std::string name;
  std::string symbol;
};

/// An int parameter that an extent of the result mentions.
struct IntExtent {
  std::string symbol;
  size_t param = 0;
};

/// Extents may mention declared dims and the dims of the enclosing layer.
struct ParamInfo {
  std::string name;
  const ParamDecl *decl = nullptr;
  const LayerInfo *layer = nullptr;
  TypeRef type = nullptr;
  std::string init;
  std::vector<const Expr *> initArgs;          ///< see evaluateNumber
  std::map<std::string, double> initConstants; ///< the constants that they name
};

struct LetInfo {
  std::string name;
  const LetDecl *decl = nullptr;
  const LayerInfo *layer = nullptr;
  TypeRef type = nullptr;
  const typed::Expr *value = nullptr;
  /// A layer or list of layers; else a value.
  bool isLayer = false;
};

/// A function whose parameters have extents `*rows` is no function yet: each call asks for the one
/// with as many extents as its arguments have.
struct FnInfo {
  std::string name;    ///< `step`; for messages and symbols `LSTM.step` is `qualifiedName`
  bool isUsed = false; ///< declared in a file that the model uses
  std::string qualifiedName;
  const FnDecl *decl = nullptr;
  const LayerInfo *layer = nullptr;
  std::vector<TypeRef> typeParams;
  std::vector<DimParam> dims;
  std::vector<IntExtent> intExtents;
  std::vector<TypeRef> paramTypes; ///< as callers see them
  std::vector<typed::Pattern *> params;
  TypeRef result = nullptr; ///< as callers see it
  TypeRef emits = nullptr;  ///< null if it emits nothing
  const typed::Expr *body = nullptr;
  std::vector<std::string> packs; ///< names of such extents, of one that is no function yet
  /// Of that, the functions that were asked for; the first is there always, to be checked.
  std::vector<FnInfo *> expansions;
  const FnInfo *generic = nullptr;     ///< what this is an expansion of
  std::map<std::string, size_t> ranks; ///< of an expansion: how many extents a name stands for
  SourceRange expandedAt;              ///< the call that asked first
  bool isRefused = false;              ///< an error in the body has been reported
  /// Functions that call each other have the same number; `recursive` if this one can reach itself.
  unsigned component = 0;
  bool recursive = false;
};

struct LayerInfo {
  std::string name;
  const LayerDecl *decl = nullptr;
  std::vector<DimParam> dims;
  std::vector<ParamInfo *> params; ///< in source order, like the two below
  std::vector<LetInfo *> lets;
  std::vector<FnInfo *> fns;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERTREE_H
