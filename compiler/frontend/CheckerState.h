//===- CheckerState.h - What the parts of the checker share -----*- C++ -*-===//
//
// Private to Checker*.cpp: what is checked, what is visible at the place that is being checked, and
// the nodes that are made.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERSTATE_H
#define SHEAF_COMPILER_FRONTEND_CHECKERSTATE_H

#include "compiler/frontend/Checker.h"

#include <deque>
#include <optional>
#include <set>
#include <variant>

namespace sheaf {

struct CheckedModule::Storage {
  std::vector<std::unique_ptr<typed::Expr>> exprs;
  std::deque<typed::Pattern> patterns;
  std::deque<typed::Variable> variables;
  std::deque<DataInfo> data;
  std::deque<ParamInfo> params;
  std::deque<LetInfo> lets;
  std::deque<FnInfo> fns;
  std::deque<LayerInfo> layers;
  std::set<std::string> vocabularies;
};

struct CheckerState {
  using E = typed::Expr *;

  CheckerState(const Module &module, const CheckOptions &options, Diagnostics &diags,
               CheckedModule &out)
      : module(module), options(options), diags(diags), out(out), types(*out.types),
        dims(out.types->dims), storage(*out.storage) {}

  //===--------------------------------------------------------------------===//
  // Names
  //===--------------------------------------------------------------------===//

  struct DimRef {
    Dim dim;
  };
  struct ConstructorRef {
    const DataInfo *data;
    unsigned index;
  };
  /// A file that is used `as` this name.
  struct FileRef {
    size_t number;
  };
  using Global =
      std::variant<DimRef, ParamInfo *, LetInfo *, FnInfo *, LayerInfo *, ConstructorRef, FileRef>;
  struct Named {
    Global what;
    SourceRange range;
  };

  /// What a file declares, and what can be named in it: that, and what the files declare that it
  /// uses without `as`.
  struct FileScope {
    std::map<std::string, Named> declared, visible;
    std::map<std::string, DataInfo *> declaredTypes, visibleTypes;
  };

  struct Local {
    std::string name;
    std::variant<typed::Variable *, Dim> what;
  };

  /// What is being checked, and what is visible there.
  struct Context {
    size_t file = 0;
    FnInfo *fn = nullptr;
    const LayerInfo *layer = nullptr;
    std::map<std::string, TypeRef> typeParams;
    std::map<std::string, size_t> ranks; ///< how many extents `*rows` stands for
    std::vector<Local> locals;
    /// Symbols that stand for values of this function, in the order they came up.
    std::vector<std::string> opened;
    /// Fields with `?` extents that were taken from variables: taken again, they have the same
    /// extents.
    struct OpenedField {
      const typed::Variable *variable;
      std::string field;
      TypeRef type;
      std::vector<typed::OpenedDim> opened;
    };
    std::vector<OpenedField> fields;
  };

  /// Names and assumptions made in it end with it.
  class Scope {
  public:
    explicit Scope(CheckerState &state)
        : state(state), locals(state.context->locals.size()), fields(state.context->fields.size()),
          assumptions(state.dims.assumptionMark()) {}
    ~Scope() {
      state.context->locals.resize(locals);
      state.context->fields.resize(fields);
      state.dims.dropAssumptions(assumptions);
    }
    Scope(const Scope &) = delete;

  private:
    CheckerState &state;
    size_t locals, fields;
    DimContext::AssumptionMark assumptions;
  };

  const Local *findLocal(const std::string &name) const;
  /// Whether a dim has a number in each instance of the layer around.
  bool knownInLayer(const Dim &dim) const;
  /// For what is declared there.
  Context contextAt(SourceRange range) const {
    Context result;
    result.file = diags.file().numberOf(range.begin);
    return result;
  }
  const FileScope &fileScope() const { return scopes[context->file]; }
  const std::string &fileName(size_t number) const { return diags.file().file(number).name(); }
  /// What was written there, or would be written for what was built.
  std::string written(const Expr &expr) const;
  const Named *findGlobal(const std::string &name) const;
  /// Whether a name is a member of the layer around, which hides what files declare.
  bool isLayerMember(const std::string &name) const;
  /// The file that `base` qualifies names by, in `base.name`.
  std::optional<size_t> qualifier(const Expr &base) const;
  std::optional<size_t> qualifier(const std::string &name) const;
  /// What `base.name` is where `base` is a file; what there is not is reported.
  const Named *findMember(size_t file, const Identifier &name);
  const Named *findMember(size_t file, const std::string &name) const;
  std::optional<Dim> findDim(const std::string &name) const;
  bool declare(const Identifier &name, Global what);
  /// `did you mean 'x'?` for a name that is close to one that could stand there; else empty.
  std::string suggest(const std::string &name, const std::vector<std::string> &candidates) const;
  /// A name that a file which is used by a name of its own declares, or one of these.
  std::string suggestName(const std::string &name,
                          const std::vector<std::string> &candidates) const;
  std::vector<std::string> visibleDims() const;
  std::vector<std::string> visibleTypes() const;
  /// What a name stands for outside functions, also one of another file: `shapes.h`.
  const Named *findConstant(const std::string &name) const;
  /// The number that a name stands for: a dim's, or that of a `let` outside functions which is made
  /// of numbers.
  std::optional<double> constantNumber(const std::string &name);

  //===--------------------------------------------------------------------===//
  // Nodes
  //===--------------------------------------------------------------------===//

  template <typename T> T *make(SourceRange range, TypeRef type) {
    auto node = std::make_unique<T>();
    T *result = node.get();
    result->range = range;
    result->type = type;
    storage.exprs.push_back(std::move(node));
    return result;
  }
  E error(SourceRange range) { return make<typed::ErrorExpr>(range, types.error()); }
  E fail(SourceRange range, std::string message, std::string help = {});
  bool isError(TypeRef type) const { return types.resolve(type)->is(TypeKind::Error); }
  E makeBuiltin(typed::Builtin builtin, std::vector<const typed::Expr *> args, SourceRange range,
                TypeRef type);

  const Module &module;
  const CheckOptions &options;
  Diagnostics &diags;
  CheckedModule &out;
  TypeContext &types;
  DimContext &dims;
  CheckedModule::Storage &storage;

  std::vector<FileScope> scopes; ///< by file
  std::map<std::string, DeclaredDim *> declaredDims;
  std::map<std::string, SourceRange> openedAt; ///< by fresh symbol: the value whose extent it is
  Context *context = nullptr;
  unsigned constantDepth = 0; ///< constants that are looked up
  size_t errorPatterns = 0;   ///< that the parser has reported, met so far
};

/// A part of the checker: what it takes of the state is at hand by name.
class CheckerPart {
protected:
  using E = CheckerState::E;
  using Named = CheckerState::Named;
  using Local = CheckerState::Local;
  using Context = CheckerState::Context;

  explicit CheckerPart(CheckerState &state)
      : state(state), diags(state.diags), types(state.types), dims(state.dims),
        storage(state.storage), context(state.context) {}

  template <typename T> T *make(SourceRange range, TypeRef type) {
    return state.make<T>(range, type);
  }
  E error(SourceRange range) { return state.error(range); }
  E fail(SourceRange range, std::string message, std::string help = {}) {
    return state.fail(range, std::move(message), std::move(help));
  }
  bool isError(TypeRef type) const { return state.isError(type); }

  CheckerState &state;
  Diagnostics &diags;
  TypeContext &types;
  DimContext &dims;
  CheckedModule::Storage &storage;
  CheckerState::Context *&context;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERSTATE_H
