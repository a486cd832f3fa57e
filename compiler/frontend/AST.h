//===- AST.h - The syntax tree --------------------------------*- C++ -*-===//
//
// The syntax tree of a model's files, as they were written: nothing is resolved or desugared.
//
// There are four families of nodes: declarations, expressions, patterns and types. Each family has
// a base with a `kind`; `node->is<CallExpr>()` asks, `node->as<CallExpr>()` gives a pointer or
// null, `node->to<CallExpr>()` is for when the kind is known. A `Module` owns all its nodes in one
// flat arena: nodes point at each other with plain pointers, never at null unless the field says
// so, and destroying a module needs no recursion. No path from a declaration down through its
// expressions is longer than `maxNesting`, so walking a tree recursively is safe.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_AST_H
#define SHEAF_COMPILER_FRONTEND_AST_H

#include "compiler/frontend/Source.h"
#include "runtime/model/dtypes.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sheaf {

/// The greatest height of an expression and the greatest nesting the parser accepts.
inline constexpr uint32_t maxNesting = 500;

struct Decl;
struct Expr;
struct Pattern;
struct TypeExpr;

/// A name with the place where it is written.
struct Identifier {
  std::string name;
  SourceRange range;
};

struct Node {
  SourceRange range;
  /// Dense and unique in the module, in order of creation: an index for side tables.
  uint32_t id = 0;

  Node() = default;
  Node(const Node &) = delete;
  Node &operator=(const Node &) = delete;
  virtual ~Node() = default;
};

/// The common part of the four families.
template <typename KindT> struct KindedNode : Node {
  const KindT kind;

  template <typename T> bool is() const { return kind == T::Kind; }
  /// This node as a T, or null if it is of another kind.
  template <typename T> const T *as() const {
    return is<T>() ? static_cast<const T *>(this) : nullptr;
  }
  /// This node as a T. The caller knows that it is one.
  template <typename T> const T &to() const { return static_cast<const T &>(*this); }

protected:
  explicit KindedNode(KindT kind) : kind(kind) {}
};

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

enum class TypeExprKind { Tensor, Token, Host, List, Tuple, Function, Named, Error };

struct TypeExpr : KindedNode<TypeExprKind> {
protected:
  using KindedNode::KindedNode;
};

template <TypeExprKind K> struct TypeExprOf : TypeExpr {
  static constexpr TypeExprKind Kind = K;
  TypeExprOf() : TypeExpr(K) {}
};

/// One extent in `f32[n, 4*h, ?]`. The expression is made of names, names of other files
/// (`shapes.h`), integers, + - * / % and unary minus only. Null means `?`, an extent that differs
/// from element to element.
///
/// `*rows` stands for any number of extents; its expression is the name.
struct DimExpr {
  const Expr *expr = nullptr;
  bool isPack = false;
  SourceRange range;

  bool isUnknown() const { return expr == nullptr; }
};

using ElemKind = rt::DType;

/// `f32[n, h]`; bare `f32` and `f32[]` have rank 0. Bare `bool` is a host type, `bool[]` a tensor.
struct TensorTypeExpr : TypeExprOf<TypeExprKind::Tensor> {
  ElemKind element = ElemKind::F32;
  std::vector<DimExpr> dims;
};

/// `token`, `token<word>`, `token[n]`, `token<word>[n]`. With `dims` it is a tensor of tokens,
/// without it is a host value.
struct TokenTypeExpr : TypeExprOf<TypeExprKind::Token> {
  std::optional<Identifier> vocabulary; ///< absent: the default vocabulary
  std::optional<std::vector<DimExpr>> dims;
};

enum class HostTypeKind { Int, Float, Bool };

/// `int`, `float` and bare `bool`.
struct HostTypeExpr : TypeExprOf<TypeExprKind::Host> {
  HostTypeKind host = HostTypeKind::Int;
};

/// `list<T>`, `list<T>[n]`.
struct ListTypeExpr : TypeExprOf<TypeExprKind::List> {
  const TypeExpr *element = nullptr;
  std::optional<DimExpr> length;
};

/// `(A, B)`, or `()` for unit. Never exactly one element.
struct TupleTypeExpr : TypeExprOf<TypeExprKind::Tuple> {
  std::vector<const TypeExpr *> elements;
};

/// `(A, B) -> C`. The grammar allows it wherever a type may stand.
struct FunctionTypeExpr : TypeExprOf<TypeExprKind::Function> {
  std::vector<const TypeExpr *> params;
  const TypeExpr *result = nullptr;
};

/// A user's data type, a type variable, or a layer: `Tree`, `Rose<f32[h]>`, `T`, `trees.Tree`.
struct NamedTypeExpr : TypeExprOf<TypeExprKind::Named> {
  std::optional<Identifier> file; ///< the `as` name of the file that declares it
  Identifier name;
  std::vector<const TypeExpr *> args;
};

/// Stands where a type could not be parsed; an error has been reported.
struct ErrorTypeExpr : TypeExprOf<TypeExprKind::Error> {};

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

enum class PatternKind { Wildcard, Binding, Int, Bool, Tuple, Constructor, List, Cons, Error };

struct Pattern : KindedNode<PatternKind> {
protected:
  using KindedNode::KindedNode;
};

template <PatternKind K> struct PatternOf : Pattern {
  static constexpr PatternKind Kind = K;
  PatternOf() : Pattern(K) {}
};

/// `_`
struct WildcardPattern : PatternOf<PatternKind::Wildcard> {};

/// A name that does not begin with a capital letter.
struct BindingPattern : PatternOf<PatternKind::Binding> {
  std::string name;
};

/// `3`, `-1`
struct IntPattern : PatternOf<PatternKind::Int> {
  int64_t value = 0;
};

/// `true`, `false`
struct BoolPattern : PatternOf<PatternKind::Bool> {
  bool value = false;
};

/// `(a, b)`, or `()`. Never exactly one element.
struct TuplePattern : PatternOf<PatternKind::Tuple> {
  std::vector<const Pattern *> elements;
};

/// `Node(l, r)`, bare `Leaf`, or `trees.Leaf`: a name that begins with a capital letter.
struct ConstructorPattern : PatternOf<PatternKind::Constructor> {
  std::optional<Identifier> file; ///< the `as` name of the file that declares it
  Identifier name;
  std::vector<const Pattern *> args;
  /// Whether parentheses were written: `Leaf()` as against `Leaf`.
  bool hasArgList = false;
};

/// `[]`, `[a, b]`: a list of exactly this length.
struct ListPattern : PatternOf<PatternKind::List> {
  std::vector<const Pattern *> elements;
};

/// `x :: xs`
struct ConsPattern : PatternOf<PatternKind::Cons> {
  const Pattern *head = nullptr;
  const Pattern *tail = nullptr;
};

/// Stands where a pattern could not be parsed; an error has been reported.
struct ErrorPattern : PatternOf<PatternKind::Error> {};

/// A parameter of a function or lambda. `type` is null only where a lambda leaves it out.
struct FnParam {
  const Pattern *pattern = nullptr;
  const TypeExpr *type = nullptr;
};

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

enum class ExprKind {
  IntLiteral,
  FloatLiteral,
  BoolLiteral,
  StringLiteral,
  Name,
  Unary,
  Binary,
  Call,
  Field,
  Index,
  List,
  Tuple,
  Block,
  If,
  Match,
  Lambda,
  Error
};

struct Expr : KindedNode<ExprKind> {
  /// 1 for a leaf, else one more than the highest child. At most `maxNesting`.
  uint32_t height = 1;

protected:
  using KindedNode::KindedNode;
};

template <ExprKind K> struct ExprOf : Expr {
  static constexpr ExprKind Kind = K;
  ExprOf() : Expr(K) {}
};

/// Never negative: `-1` is a unary minus on `1`.
struct IntLiteralExpr : ExprOf<ExprKind::IntLiteral> {
  int64_t value = 0;
};

/// Finite and never negative.
struct FloatLiteralExpr : ExprOf<ExprKind::FloatLiteral> {
  double value = 0;
};

struct BoolLiteralExpr : ExprOf<ExprKind::BoolLiteral> {
  bool value = false;
};

/// Escapes are already replaced. Strings are for arguments of initialisers only.
struct StringLiteralExpr : ExprOf<ExprKind::StringLiteral> {
  std::string value;
};

/// A variable, function, param, dim, layer instance, or a constructor or layer (by its capital).
struct NameExpr : ExprOf<ExprKind::Name> {
  std::string name;
};

enum class UnaryOp { Negate, Not };

struct UnaryExpr : ExprOf<ExprKind::Unary> {
  UnaryOp op = UnaryOp::Negate;
  const Expr *operand = nullptr;
};

/// From the loosest to the tightest: Or; And; the comparisons (not associative); Cons (to the
/// right); Add, Sub; Mul, Div, Mod, MatMul.
enum class BinaryOp { Or, And, Eq, Ne, Lt, Le, Gt, Ge, Cons, Add, Sub, Mul, Div, Mod, MatMul };

struct BinaryExpr : ExprOf<ExprKind::Binary> {
  BinaryOp op = BinaryOp::Add;
  SourceRange opRange;
  const Expr *lhs = nullptr;
  const Expr *rhs = nullptr;
};

/// An argument, `x` or `axis=0`. Named arguments follow the positional ones.
struct Argument {
  std::optional<Identifier> name;
  const Expr *value = nullptr;
};

/// `f(x)`, `layer.run(x)` (the callee is a field), `Node(l, r)` and `LSTM(a, b)` (the callee is a
/// name with a capital letter).
struct CallExpr : ExprOf<ExprKind::Call> {
  const Expr *callee = nullptr;
  std::vector<Argument> args;
  /// Calls of a module are numbered from 0 in the order of their opening parentheses. Printing and
  /// parsing again gives the same numbers.
  uint32_t siteId = 0;
};

/// `layer.w`, or a name of a file that is used `as` another: `trees.depth`.
struct FieldExpr : ExprOf<ExprKind::Field> {
  const Expr *base = nullptr;
  Identifier field;
};

/// One place between the brackets of `x[i, a:b, :]`. An index has only `index`; a slice has none
/// of the three, or `begin`, or `end`, or both of these.
struct IndexItem {
  bool isSlice = false;
  const Expr *index = nullptr;
  const Expr *begin = nullptr; ///< null: from the start
  const Expr *end = nullptr;   ///< null: to the end
  SourceRange range;
};

struct IndexExpr : ExprOf<ExprKind::Index> {
  const Expr *base = nullptr;
  std::vector<IndexItem> items; ///< at least one
};

/// `[a, b]`, `[]`
struct ListExpr : ExprOf<ExprKind::List> {
  std::vector<const Expr *> elements;
};

/// `(a, b)`, or `()`. Never exactly one element.
struct TupleExpr : ExprOf<ExprKind::Tuple> {
  std::vector<const Expr *> elements;
};

/// A statement of a block: a `let`, a `check`, or a call that is made for what it does.
struct Stmt {
  enum class Kind { Let, Check, Do };

  Kind kind = Kind::Let;
  SourceRange range;
  const Pattern *pattern = nullptr;   ///< of a let
  const TypeExpr *type = nullptr;     ///< of a let; null if not written
  const Expr *value = nullptr;        ///< the value of a let, the condition of a check, the call
  std::optional<std::string> message; ///< of a check
};

/// `{ let x = a; check c; e }`. Also the two arms of an `if`.
struct BlockExpr : ExprOf<ExprKind::Block> {
  std::vector<Stmt> stmts;
  const Expr *result = nullptr;
};

/// `thenExpr` is a block; `elseExpr` is a block or, for `else if`, another IfExpr.
struct IfExpr : ExprOf<ExprKind::If> {
  const Expr *condition = nullptr;
  const Expr *thenExpr = nullptr;
  const Expr *elseExpr = nullptr;
};

struct MatchArm {
  const Pattern *pattern = nullptr;
  const Expr *guard = nullptr; ///< null if there is none
  const Expr *body = nullptr;
  SourceRange range;
};

struct MatchExpr : ExprOf<ExprKind::Match> {
  const Expr *scrutinee = nullptr;
  std::vector<MatchArm> arms; ///< at least one, unless an error was reported
  /// From `match` to the scrutinee's end: the place to say that a match is not exhaustive.
  SourceRange headRange;
};

/// `|x, (a, b)| body`
struct LambdaExpr : ExprOf<ExprKind::Lambda> {
  std::vector<FnParam> params;
  const Expr *body = nullptr;
};

/// Stands where an expression could not be parsed; an error has been reported.
struct ErrorExpr : ExprOf<ExprKind::Error> {};

/// Calls `visit(const Expr &)` on each direct child, in source order (for statements, arms and
/// arguments included; dims inside types and patterns are not children).
template <typename Visitor> void forEachChild(const Expr &expr, Visitor &&visit);

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

enum class DeclKind { Use, Dim, Data, Param, Fn, Let, Layer, Check };

struct Decl : KindedNode<DeclKind> {
  Identifier name;

protected:
  using KindedNode::KindedNode;
};

template <DeclKind K> struct DeclOf : Decl {
  static constexpr DeclKind Kind = K;
  DeclOf() : Decl(K) {}
};

/// `use "lib/lstm.sheaf" as lstm`. The name is what stands after `as`, or empty.
struct UseDecl : DeclOf<DeclKind::Use> {
  std::string path;
  SourceRange pathRange;
  std::optional<size_t> file; ///< the number of the file among those of the source
  std::string problem;        ///< why there is none
};

/// `config "n_embd"`: a member of the config.json beside the weights.
struct ConfigMember {
  std::string name;
  SourceRange range;
};

/// `dim hidden = 256`. `dim a = 1, b = 2` makes two. `dim n = config "n_embd" else 768`.
struct DimDecl : DeclOf<DeclKind::Dim> {
  std::vector<ConfigMember> config; ///< the first that is there counts
  const Expr *value = nullptr;      ///< null if it has no default
};

struct DataField {
  Identifier name;
  const TypeExpr *type = nullptr;
};

struct DataConstructor {
  Identifier name; ///< begins with a capital letter
  std::vector<DataField> fields;
  SourceRange range;
};

/// `data Rose<T> = Rose(value: T, children: list<Rose<T>>)`
struct DataDecl : DeclOf<DeclKind::Data> {
  std::vector<Identifier> typeParams;
  std::vector<DataConstructor> constructors; ///< at least one, unless an error was reported
};

/// `zeros`, `normal(0.1)`, `uniform(lo=-1, hi=1)`: which names exist is the checker's business.
struct Initializer {
  Identifier name;
  std::vector<Argument> args;
  SourceRange range;
};

/// What a param or layer is also called in files of weights: `as "gamma" | "g"`.
struct StoredNames {
  std::vector<std::string> names;
  SourceRange range;
};

/// `param w : f32[n, m] = glorot as "weight"`
struct ParamDecl : DeclOf<DeclKind::Param> {
  const TypeExpr *type = nullptr;
  Initializer init;
  StoredNames stored;
};

/// `fn f<T>(x: T, (h, c): (A, B)) -> R emits E = body`. In functions each parameter has a type.
struct FnDecl : DeclOf<DeclKind::Fn> {
  std::vector<Identifier> typeParams;
  std::vector<FnParam> params;
  const TypeExpr *result = nullptr; ///< null if not written
  const TypeExpr *emits = nullptr;  ///< null if it emits nothing
  const Expr *body = nullptr;
};

/// `let forward = LSTM(hidden, hidden) as "lstm"` outside functions, or a constant:
/// `let eps = config "layer_norm_eps" else 1e-5`.
struct LetDecl : DeclOf<DeclKind::Let> {
  const TypeExpr *type = nullptr;   ///< null if not written
  std::vector<ConfigMember> config; ///< the first that is there counts
  const Expr *value = nullptr;
  StoredNames stored;
};

/// `check config "hidden_act" else "gelu" == "gelu" | "gelu_new", "message"`. It has no name.
struct CheckDecl : DeclOf<DeclKind::Check> {
  /// A value that a member may have, as it is written.
  struct Value {
    std::variant<std::monostate, bool, double, std::string> value; ///< the first is null
    SourceRange range;
  };
  std::vector<ConfigMember> config; ///< the first that is there counts
  std::optional<Value> absent;      ///< what it is where none is there, instead of null
  std::vector<Value> values;        ///< what it may be
  std::string message;
};

/// `layer Name(dim, dim) { ... }`
struct LayerDecl : DeclOf<DeclKind::Layer> {
  std::vector<Identifier> dimParams;
  /// In source order: ParamDecl, LetDecl and FnDecl only.
  std::vector<const Decl *> members;
};

//===----------------------------------------------------------------------===//
// Module
//===----------------------------------------------------------------------===//

/// Owns nodes of any kind.
class AstArena {
public:
  explicit AstArena(size_t firstId = 0) : firstId(firstId) {}

  template <typename T> T *make(SourceRange range) {
    auto node = std::make_unique<T>();
    T *result = node.get();
    result->range = range;
    result->id = static_cast<uint32_t>(firstId + nodes.size());
    nodes.push_back(std::move(node));
    return result;
  }

  /// How many ids are given.
  size_t size() const { return firstId + nodes.size(); }

private:
  size_t firstId;
  std::vector<std::unique_ptr<Node>> nodes;
};

/// A model's file and those that it uses, parsed. Movable; node addresses stay the same.
struct Module {
  std::vector<const Decl *> decls;             ///< of the model's own file, in source order
  std::vector<std::vector<const Decl *>> used; ///< of each other file of the source
  size_t fileCount() const { return 1 + used.size(); }
  const std::vector<const Decl *> &declsOf(size_t file) const {
    return file == 0 ? decls : used[file - 1];
  }

  /// The same declarations, to be changed; the nodes are those of this one, which must outlive it.
  Module overlay() const { return {decls, used, callSiteCount, AstArena(arena.size())}; }

  uint32_t callSiteCount = 0; ///< every CallExpr::siteId is below it
  AstArena arena;
};

//===----------------------------------------------------------------------===//
// Implementation detail
//===----------------------------------------------------------------------===//

template <typename Visitor> void forEachChild(const Expr &expr, Visitor &&visit) {
  auto visitIfAny = [&](const Expr *child) {
    if (child)
      visit(*child);
  };
  switch (expr.kind) {
  case ExprKind::IntLiteral:
  case ExprKind::FloatLiteral:
  case ExprKind::BoolLiteral:
  case ExprKind::StringLiteral:
  case ExprKind::Name:
  case ExprKind::Error:
    return;
  case ExprKind::Unary:
    visit(*expr.to<UnaryExpr>().operand);
    return;
  case ExprKind::Binary:
    visit(*expr.to<BinaryExpr>().lhs);
    visit(*expr.to<BinaryExpr>().rhs);
    return;
  case ExprKind::Call:
    visit(*expr.to<CallExpr>().callee);
    for (const Argument &arg : expr.to<CallExpr>().args)
      visit(*arg.value);
    return;
  case ExprKind::Field:
    visit(*expr.to<FieldExpr>().base);
    return;
  case ExprKind::Index:
    visit(*expr.to<IndexExpr>().base);
    for (const IndexItem &item : expr.to<IndexExpr>().items) {
      visitIfAny(item.index);
      visitIfAny(item.begin);
      visitIfAny(item.end);
    }
    return;
  case ExprKind::List:
    for (const Expr *element : expr.to<ListExpr>().elements)
      visit(*element);
    return;
  case ExprKind::Tuple:
    for (const Expr *element : expr.to<TupleExpr>().elements)
      visit(*element);
    return;
  case ExprKind::Block:
    for (const Stmt &stmt : expr.to<BlockExpr>().stmts)
      visit(*stmt.value);
    visit(*expr.to<BlockExpr>().result);
    return;
  case ExprKind::If:
    visit(*expr.to<IfExpr>().condition);
    visit(*expr.to<IfExpr>().thenExpr);
    visit(*expr.to<IfExpr>().elseExpr);
    return;
  case ExprKind::Match:
    visit(*expr.to<MatchExpr>().scrutinee);
    for (const MatchArm &arm : expr.to<MatchExpr>().arms) {
      visitIfAny(arm.guard);
      visit(*arm.body);
    }
    return;
  case ExprKind::Lambda:
    visit(*expr.to<LambdaExpr>().body);
    return;
  }
}

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_AST_H
