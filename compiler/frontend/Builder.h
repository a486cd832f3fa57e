//===- Builder.h - Models that a program builds -----------------*- C++ -*-===//
//
// What a front end other than the text uses: it makes the tree that the parser makes, with places
// in the files of who builds it, and the same checker tells what is wrong, with the same messages.
// Other programs reach it by include/sheaf/builder.h: a form that is added here is added there, in
// runtime/compile/built.h and in compiler/api/built.cpp.
//
//     ModelBuilder b("scale.cpp");
//     auto vector = b.tensor(rt::DType::F32, {"hidden"});
//     b.dim("hidden", b.number(4));
//     b.param("w", vector, "zeros");
//     b.fn("main", {{"x", vector}}, vector, b.binary(BinaryOp::Mul, b.name("x"), b.name("w")));
//     SourceFile source = std::move(b).finish();
//     Diagnostics diags(source);
//     auto compiled = driver::compile(source, options, diags);
//
// A place that is not given is the line of the C++ source that calls. An expression stands in one
// place of a model; types may be used again. Nodes belong to the builder, then to the source.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_BUILDER_H
#define SHEAF_COMPILER_FRONTEND_BUILDER_H

#include "compiler/frontend/Parser.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <source_location>
#include <string>
#include <variant>
#include <vector>

namespace sheaf {

/// Where something is built: a file, and what of it, the end after the last character.
struct BuildPlace {
  std::string file;
  LineColumn begin, end;

  BuildPlace(std::string file, LineColumn begin, LineColumn end)
      : file(std::move(file)), begin(begin), end(end) {}
  BuildPlace(std::source_location at)
      : file(at.file_name()), begin{at.line(), at.column()}, end{at.line(), at.column() + 1} {}
};

/// What few functions have.
struct BuiltFnOptions {
  std::vector<std::string> typeParams;
  const TypeExpr *emits = nullptr;
};

class ModelBuilder {
public:
  using Place = BuildPlace;
  using Here = std::source_location;
  using E = const Expr *;
  using T = const TypeExpr *;
  using P = const Pattern *;

  /// `name` stands for the whole in messages, and is where files that are used are looked for.
  explicit ModelBuilder(std::string name);

  /// The text of a file that places are in, so that messages show its lines. Before its first
  /// place. Throws UserError for one that is too large, or comes too late.
  void addText(const std::string &file, std::string text);

  //===--------------------------------------------------------------------===//
  // Types
  //===--------------------------------------------------------------------===//

  /// An extent: a dim or a number, an expression of them, `?`, or `*rows`.
  struct Extent {
    Extent(const char *dim) : dim(dim) {}
    Extent(std::string dim) : dim(std::move(dim)) {}
    Extent(int value) : value(value) {}
    Extent(int64_t value) : value(value) {}
    Extent(E expr) : expr(expr) {}
    static Extent unknown() { return Extent(E(nullptr)); }
    static Extent pack(std::string name) {
      Extent extent(std::move(name));
      extent.isPack = true;
      return extent;
    }

    std::string dim;
    std::optional<int64_t> value;
    E expr = nullptr;
    bool isPack = false;
  };

  T tensor(rt::DType element, const std::vector<Extent> &dims, Place at = Here::current());
  T token(const std::string &vocabulary = {}, Place at = Here::current());
  T tokens(const std::vector<Extent> &dims, const std::string &vocabulary = {},
           Place at = Here::current());
  T host(HostTypeKind kind, Place at = Here::current());
  T listOf(T element, Place at = Here::current());
  T listOf(T element, const Extent &length, Place at = Here::current());
  T tupleOf(std::vector<T> elements, Place at = Here::current());
  T functionOf(std::vector<T> params, T result, Place at = Here::current());
  /// A data type, a type parameter or a layer; `file` is what a file is used as.
  T named(const std::string &name, std::vector<T> args = {}, const std::string &file = {},
          Place at = Here::current());

  //===--------------------------------------------------------------------===//
  // Patterns
  //===--------------------------------------------------------------------===//

  P any(Place at = Here::current());
  P bind(const std::string &name, Place at = Here::current());
  P matchNumber(int64_t value, Place at = Here::current());
  P matchTruth(bool value, Place at = Here::current());
  P matchTuple(std::vector<P> elements, Place at = Here::current());
  P construct(const std::string &constructor, std::vector<P> args, const std::string &file = {},
              Place at = Here::current());
  P matchList(std::vector<P> elements, Place at = Here::current());
  P cons(P head, P tail, Place at = Here::current());

  //===--------------------------------------------------------------------===//
  // Expressions
  //===--------------------------------------------------------------------===//

  E number(int64_t value, Place at = Here::current());
  E number(int value, Place at = Here::current()) { return number(int64_t{value}, at); }
  E number(double value, Place at = Here::current());
  E truth(bool value, Place at = Here::current());
  E text(const std::string &value, Place at = Here::current());
  E name(const std::string &name, Place at = Here::current());
  E unary(UnaryOp op, E operand, Place at = Here::current());
  E binary(BinaryOp op, E lhs, E rhs, Place at = Here::current());

  /// An argument; those with names follow those without.
  struct Arg {
    Arg(E value) : value(value) {}
    Arg(std::string name, E value) : name(std::move(name)), value(value) {}
    std::string name;
    E value;
  };
  E call(E callee, const std::vector<Arg> &args, Place at = Here::current());
  E call(const std::string &callee, const std::vector<Arg> &args, Place at = Here::current());
  E field(E base, const std::string &name, Place at = Here::current());

  /// One place between the brackets of `x[i, a:b]`.
  struct Index {
    Index(E index) : index(index) {}
    static Index slice(E begin, E end) {
      Index index(nullptr);
      index.begin = begin;
      index.end = end;
      return index;
    }
    E index, begin = nullptr, end = nullptr; ///< without an index a slice
  };
  E index(E base, const std::vector<Index> &items, Place at = Here::current());
  E list(std::vector<E> elements, Place at = Here::current());
  E tuple(std::vector<E> elements, Place at = Here::current());

  Stmt let(P pattern, E value, T type = nullptr, Place at = Here::current());
  Stmt let(const std::string &name, E value, T type = nullptr, Place at = Here::current());
  Stmt check(E condition, std::optional<std::string> message = {}, Place at = Here::current());
  /// A call for what it does.
  Stmt run(E call, Place at = Here::current());
  E block(std::vector<Stmt> statements, E result, Place at = Here::current());
  E ifElse(E condition, E then, E otherwise, Place at = Here::current());

  struct Arm {
    P pattern;
    E body;
    E guard = nullptr;
  };
  E match(E scrutinee, const std::vector<Arm> &arms, Place at = Here::current());

  struct Param {
    Param(const char *name, T type = nullptr) : name(name), type(type) {}
    Param(std::string name, T type = nullptr) : name(std::move(name)), type(type) {}
    Param(P pattern, T type = nullptr) : pattern(pattern), type(type) {}
    std::string name; ///< or a pattern
    P pattern = nullptr;
    T type;
  };
  E lambda(const std::vector<Param> &params, E body, Place at = Here::current());

  //===--------------------------------------------------------------------===//
  // Declarations
  //===--------------------------------------------------------------------===//

  using Names = std::vector<std::string>;

  /// All that a file declares, or, with `as`, that under its name.
  void use(const std::string &file, const std::string &as = {}, Place at = Here::current());
  /// `config`: members of the config.json beside weights, the first of which that is there counts.
  void dim(const std::string &name, E value = nullptr, const Names &config = {},
           Place at = Here::current());

  struct Constructor {
    std::string name;
    std::vector<std::pair<std::string, T>> fields;
  };
  void data(const std::string &name, const std::vector<Constructor> &constructors,
            const Names &typeParams = {}, Place at = Here::current());
  /// `stored`: what files of weights call it besides.
  void param(const std::string &name, T type, const std::string &initializer,
             const std::vector<Arg> &args = {}, const Names &stored = {},
             Place at = Here::current());
  /// Without a `result` its type is that of the body.
  void fn(const std::string &name, const std::vector<Param> &params, T result, E body,
          const BuiltFnOptions &options = {}, Place at = Here::current());
  /// A layer, or a constant.
  void constant(const std::string &name, E value, T type = nullptr, const Names &config = {},
                const Names &stored = {}, Place at = Here::current());
  /// `members` declares params, constants and functions, which become the layer's.
  void layer(const std::string &name, const Names &dims, const std::function<void()> &members,
             Place at = Here::current());

  /// What a member of the config.json must be for the model to compute as it says: one of `values`,
  /// or, where it is not there, `absent` must be.
  using ConfigValue = std::variant<std::monostate, bool, double, std::string>; ///< or null
  void checkConfig(const Names &config, const std::vector<ConfigValue> &values,
                   const std::string &message, const std::optional<ConfigValue> &absent = {},
                   Place at = Here::current());

  /// The model. What cannot be said in the language is among its errors.
  SourceFile finish(const FileResolver &resolver = {}) &&;

private:
  SourceRange rangeOf(const Place &place);
  size_t hostOf(const std::string &file);
  /// A name, which is reported if it is none. `capital`: that of what.
  Identifier identifier(const std::string &name, SourceRange range, const char *capital = nullptr);
  void report(SourceRange range, std::string message, std::string help = {});
  template <typename Node> Node *make(SourceRange range) {
    return module().arena.template make<Node>(range);
  }
  Module &module() { return syntax_->module; }
  E finished(Expr *expr);
  DimExpr dimExpr(const Extent &extent, const Place &at);
  std::vector<DimExpr> dimExprs(const std::vector<Extent> &extents, const Place &at);
  std::vector<Argument> arguments(const std::vector<Arg> &args, SourceRange range);
  std::vector<FnParam> params(const std::vector<Param> &params, const Place &at);
  std::vector<Identifier> identifiers(const Names &names, SourceRange range, const char *capital);
  void declare(Decl *decl);
  E asBlock(E expr);
  /// Numbers calls in the order of their parentheses, and reports what stands in two places.
  void settle(const Expr &expr, std::set<const Expr *> &met);
  void settle(const Decl &decl, std::set<const Expr *> &met);

  std::shared_ptr<Syntax> syntax_ = std::make_shared<Syntax>();
  std::deque<SourceText> hosts_;
  std::map<std::string, size_t> hostNumbers_;
  UsedNames uses_;
  std::vector<UseDecl *> useDecls_;
  std::vector<const Decl *> *decls_; ///< of the file, or of the layer that is being made
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_BUILDER_H
