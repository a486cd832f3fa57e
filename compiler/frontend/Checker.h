//===- Checker.h - From syntax trees to typed trees -------------*- C++ -*-===//
//
// Resolves names, infers and checks types and shapes, and checks that matches are exhaustive. The
// rules stand in docs/language.md.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKER_H
#define SHEAF_COMPILER_FRONTEND_CHECKER_H

#include "compiler/frontend/AST.h"
#include "compiler/frontend/CheckerTree.h"
#include "compiler/frontend/Diagnostics.h"
#include "compiler/frontend/Types.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sheaf {

struct CheckOptions {
  /// Values of declared dims given from outside (`--dim hidden=512`); they replace the file's.
  std::map<std::string, int64_t> dims;
  /// Whether a `dim` without a value is an error. If not, it is checked as a symbol; a Program
  /// cannot be generated then.
  bool requireDimValues = true;
  /// The function that a run begins with. It must exist and take and give first-class values.
  std::string entry = "main";
  /// Whether a file without the entry is an error.
  bool requireEntry = true;
};

/// A dim of the file. `value` is absent only if it has none in the file and none was given.
struct DeclaredDim {
  std::string name;
  std::optional<int64_t> value;
  SourceRange range;
};

/// A checked model with the files that it uses: everything that `generateProgram` and `sheaf check`
/// need. It refers to the `Module` and the `SourceFile` that it was made from; both must outlive
/// it.
class CheckedModule {
public:
  CheckedModule();
  CheckedModule(CheckedModule &&) noexcept;
  CheckedModule &operator=(CheckedModule &&) noexcept;
  ~CheckedModule();

  /// False if an error was reported.
  bool ok = false;
  std::unique_ptr<TypeContext> types;
  std::vector<DeclaredDim> dims; ///< in source order, like all below; files that are used follow
  std::vector<const DataInfo *> data;
  std::vector<const ParamInfo *> params; ///< outside of layers
  std::vector<const LetInfo *> lets;
  std::vector<const LayerInfo *> layers;
  std::vector<const FnInfo *> functions; ///< outside of layers

  /// Of the model's own file.
  const FnInfo *findFunction(const std::string &name) const;
  /// The names of all vocabularies that types of the file mention, sorted; "" is the default one.
  std::vector<std::string> vocabularies() const;
  /// `fn encode(t: Tree) -> (f32[hidden], f32[hidden])`
  std::string signature(const FnInfo &fn) const;

  struct Storage;
  std::unique_ptr<Storage> storage;
};

/// Checks what was parsed; `diags` is about its source. Reports every error it finds; the result is
/// complete only if `ok`.
CheckedModule check(const Module &module, const CheckOptions &options, Diagnostics &diags);

/// The dims of a model that have no value in it nor in `options`, in source order.
std::vector<std::string> dimsWithoutValue(const Module &module, const CheckOptions &options);

/// The number that a constant expression of literals, + - * / and names stands for. `lookup` gives
/// the values of names, also of other files (`shapes.h`).
std::optional<double>
evaluateNumber(const Expr &expr,
               const std::function<std::optional<double>(const std::string &)> &lookup);

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKER_H
