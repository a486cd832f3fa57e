//===- ProgramGenImpl.h - The generator class -------------------*- C++ -*-===//
//
// Behind ProgramGen.h, private to ProgramGen*.cpp.
//
// Instances. A function is generated once for each combination of type arguments, dims that are
// constants, layer instance and function arguments (`FnInstance`). Bodies wait in a queue, so calls
// need no recursion here. Calls among functions that call each other never make an instance for a
// new constant: what differs from the instance that the caller came from becomes per-instance
// (`?`), so there are finitely many. The checker has refused what would make endlessly many types
// or function arguments.
//
// Functions as values. A `StaticValue` is a layer or closure: a part known here (`StaticCode`) and
// the values it needs at run time (captured variables, the index of a picked layer). Passed to a
// function, the code is part of the instance and the values are extra arguments. A lambda given
// straight to `map` and the like is generated in place; any other becomes a function of its own.
//
// Keys. What may draw has a key, the first argument of its function. Each application of a function
// that draws gets one split from it by the number of the site in the source and, in loops, of the
// element; so does each draw. A lambda's key is that of its application, wherever it stands.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_PROGRAMGENIMPL_H
#define SHEAF_COMPILER_FRONTEND_PROGRAMGENIMPL_H

#include "compiler/frontend/Draws.h"
#include "compiler/frontend/ProgramGen.h"
#include "compiler/ir/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <deque>
#include <functional>
#include <set>

namespace sheaf {

class ProgramGenerator {
public:
  ProgramGenerator(const CheckedModule &checked, mlir::MLIRContext &context, Diagnostics &diags,
                   bool training);

  /// Without bodies the functions are only declared, and params left out.
  mlir::OwningOpRef<mlir::ModuleOp> run(const std::string &entry, bool bodies);

private:
  using Value = mlir::Value;
  using Type = mlir::Type;

  //===--------------------------------------------------------------------===//
  // Static values
  //===--------------------------------------------------------------------===//

  struct StaticCode;
  struct FnInstance;

  struct StaticValue {
    const StaticCode *code = nullptr;
    std::vector<Value> values;
  };

  /// What a layer or param is called, and what else it may be called in files of weights.
  struct StoredPath {
    std::string name;
    std::vector<std::string> others;
    /// Of a member; `also`: what files may call that.
    StoredPath member(const std::string &name, const std::vector<std::string> &also = {}) const;
  };
  struct LayerInstance {
    const LayerInfo *info = nullptr;
    std::vector<int64_t> dims;
    StoredPath path;
    std::map<const LetInfo *, const StaticCode *> lets;
    std::map<std::string, int64_t> symbols; ///< of its dims
  };

  /// What stands for the names of a generic context.
  struct Subst {
    std::map<TypeRef, Type> typeArgs;
    std::map<std::string, int64_t> dims;
    const LayerInstance *self = nullptr;
  };

  struct StaticCode {
    enum Kind { Layer, LayerList, LayerChoice, Closure } kind = Layer;
    unsigned id = 0;
    const LayerInstance *layer = nullptr;    ///< Layer
    std::vector<const StaticCode *> options; ///< LayerList, LayerChoice (one value: the index)
    // Closure: its values are those of `dims`, then `variables`, then `statics`, in order.
    const typed::LambdaExpr *lambda = nullptr;
    const Subst *subst = nullptr;
    std::vector<std::string> dims;
    std::vector<const typed::Variable *> variables;
    std::vector<std::pair<const typed::Variable *, const StaticCode *>> statics;
    std::vector<Type> valueTypes; ///< of all values, those of statics included
    FnInstance *origin = nullptr;
    bool draws = false; ///< Closure: whether it may, or one that it captured
  };

  struct FnInstance {
    const FnInfo *fn = nullptr;
    const Subst *subst = nullptr;
    std::vector<Type> typeArgs;
    std::vector<std::optional<int64_t>> dims;
    std::vector<const StaticCode *> statics; ///< of parameters that have one, else null
    std::vector<size_t> hidden;              ///< dims passed as leading int arguments
    FnInstance *parent = nullptr;            ///< that called it, in the same component
    bool hasKey = false;
    mlir::func::FuncOp func;
  };

  /// A lambda as a function of its own: a key if it draws, values of its code, its parameters.
  struct LambdaInstance {
    const StaticCode *code = nullptr;
    std::vector<const StaticCode *> statics; ///< of its parameters
    bool hasKey = false;
    mlir::func::FuncOp func;
  };

  /// A `loop` as a function that calls itself last: a key and the number of the round if one of
  /// its functions draws, the values of their codes, what it carries (of a tuple each field).
  struct LoopInstance {
    const typed::BuiltinExpr *expr = nullptr;
    const Subst *subst = nullptr;
    FnInstance *origin = nullptr;
    const StaticCode *condition = nullptr, *step = nullptr;
    bool hasKey = false;
    mlir::func::FuncOp func;
  };

  /// Where a per-instance dim is found: a value, or an extent of a tensor or the length of a list
  /// that a field path of `holder` leads to.
  struct DimSource {
    Value value;
    Value holder;
    std::vector<unsigned> path;
    unsigned axis = 0;
  };
  static DimSource known(Value value) { return {value, {}, {}, 0}; }

  /// What is visible where code is generated.
  struct Frame {
    const Subst *subst = nullptr;
    FnInstance *origin = nullptr;
    Value key; ///< null where nothing may draw
    std::map<const typed::Variable *, Value> values;
    std::map<const typed::Variable *, StaticValue> statics;
    std::map<std::string, DimSource> dims;
  };

  /// Dims that come up in a region are forgotten at its end.
  class RegionScope {
  public:
    explicit RegionScope(ProgramGenerator &gen)
        : gen(gen), saved(gen.frame->dims), point(gen.b.saveInsertionPoint()) {}
    ~RegionScope() {
      gen.frame->dims = std::move(saved);
      gen.b.restoreInsertionPoint(point);
    }
    RegionScope(const RegionScope &) = delete;

  private:
    ProgramGenerator &gen;
    std::map<std::string, DimSource> saved;
    mlir::OpBuilder::InsertPoint point;
  };

  /// What is generated is applied with this key. Goes with the arguments of the application: if
  /// nothing draws, neither the key nor the number of the element is left.
  class KeyScope {
  public:
    KeyScope(ProgramGenerator &gen, Value key)
        : gen(gen), key(key), saved(std::exchange(gen.frame->key, key)) {}
    ~KeyScope() {
      gen.frame->key = saved;
      if (key && key.use_empty())
        key.getDefiningOp()->erase();
    }
    KeyScope(const KeyScope &) = delete;

  private:
    ProgramGenerator &gen;
    Value key, saved;
  };

  /// New operations come from this place in the source.
  class At {
  public:
    At(ProgramGenerator &gen, SourceRange range)
        : gen(gen), savedRange(gen.range), savedLoc(gen.b.getLoc()) {
      gen.range = range;
      gen.b.setLoc(gen.locOf(range));
    }
    ~At() {
      gen.range = savedRange;
      gen.b.setLoc(savedLoc);
    }
    At(const At &) = delete;

  private:
    ProgramGenerator &gen;
    SourceRange savedRange;
    mlir::Location savedLoc;
  };

  //===--------------------------------------------------------------------===//
  // The module (ProgramGen.cpp)
  //===--------------------------------------------------------------------===//

  mlir::Location locOf(SourceRange where) const;
  mlir::StringAttr str(llvm::StringRef text) { return b.getStringAttr(text); }
  std::string uniqueSymbol(const std::string &name);
  /// Reports what cannot be generated; a value of any type stands for it.
  Value refuse(Type type, const std::string &message, const std::string &help = {});
  Value placeholder(Type type);

  void eraseUnused();
  void instantiateLets();
  const StaticCode *layerCode(const typed::Expr &expr, const LayerInstance *self,
                              const StoredPath &path);
  const LayerInstance *makeInstance(const LayerInfo &info, std::vector<int64_t> dims,
                                    const StoredPath &path);
  static StoredPath fileLetPath(const LetInfo &let);
  void emitParam(const ParamInfo &param, const LayerInstance *layer);
  void annotateEntry(const FnInstance &instance, mlir::func::FuncOp func);
  mlir::func::FuncOp makeEntry(FnInstance &instance, const std::string &name);
  void bindExtents(Value value, TypeRef type, std::map<std::string, Value> &bound,
                   const std::string &symbol);
  void checkExtents(Value value, TypeRef type, const std::string &what);
  bool entryIsPlain(const FnInfo &fn) const;

  //===--------------------------------------------------------------------===//
  // Types and extents (ProgramGenTypes.cpp)
  //===--------------------------------------------------------------------===//

  Type mlirType(TypeRef type) { return mlirType(type, *frame->subst); }
  Type mlirType(TypeRef type, const Subst &subst);
  /// Adds a string for each list in the type that is not inside data, in the order they are
  /// written: its length, "?" if any. Whether one is no "?".
  bool listLengths(TypeRef type, const Subst &subst, llvm::SmallVector<mlir::Attribute> &lengths);
  Type dataType(const DataInfo &data, const std::vector<Type> &args);
  std::string typeText(Type type) const;
  std::optional<int64_t> staticDim(const Dim &dim, const Subst &subst) const;
  std::optional<int64_t> staticDim(const Dim &dim) const { return staticDim(dim, *frame->subst); }
  Value dimValue(const Dim &dim);
  Value symbolValue(const std::string &symbol);
  /// An extent of a tensor, or the length of a list.
  Value extentOf(Value holder, unsigned axis);
  mlir::OpFoldResult extent(const Dim &dim);
  void bindOpened(Value value, const std::vector<typed::OpenedDim> &opened);
  Value follow(Value value, const std::vector<unsigned> &path);
  /// The value where this type is wanted: extents may become `?` or constants.
  Value coerce(Value value, Type type);
  Value constInt(int64_t value);
  ir::CheckOp checkToken(Value number, ir::TokenType type);
  Value guarded(ir::CheckOp check, Value value);
  Value constBool(bool value);

  //===--------------------------------------------------------------------===//
  // Expressions (ProgramGenExprs.cpp)
  //===--------------------------------------------------------------------===//

  Value gen(const typed::Expr &expr);
  Value genInner(const typed::Expr &expr);
  /// The value as this type.
  Value genAs(const typed::Expr &expr, Type type) { return coerce(gen(expr), type); }
  Value genNumber(const typed::NumberExpr &expr);
  Value genLocal(const typed::LocalExpr &expr);
  Value genParam(const typed::ParamExpr &expr);
  Value genConstant(const typed::ConstantExpr &expr);
  Value genScalar(const typed::ScalarExpr &expr);
  Value genCompare(typed::ScalarOp op, Value lhs, Value rhs);
  Value genLogic(const typed::ScalarExpr &expr);
  Value genApply(const typed::ApplyExpr &expr);
  Value genBlock(const typed::BlockExpr &expr);
  Value genIf(const typed::IfExpr &expr);
  Value genBranches(Value condition, Type type, const std::function<Value()> &thenBranch,
                    const std::function<Value()> &elseBranch);
  std::optional<int64_t> staticInt(const typed::Expr &expr) const;
  std::optional<bool> staticBool(const typed::Expr &expr) const;
  bool breaksEquality(const typed::Expr &condition) const;
  Value tuple(std::vector<Value> fields);
  Value get(Value tuple, unsigned index);

  Value genBuiltin(const typed::BuiltinExpr &expr);
  Value genLoop(const typed::BuiltinExpr &expr);
  Value genTailLoop(const typed::BuiltinExpr &expr);
  void generateTailLoop(LoopInstance &instance);
  llvm::SmallVector<Value> fieldsOf(Value value);
  Value genLayerLoop(const typed::BuiltinExpr &expr, const StaticValue &layers);
  /// Applies a function value to arguments, in place if it is a lambda of this frame. `key`: as
  /// `splitKey` gives it.
  Value applyFunction(const typed::Expr &function, const std::vector<Value> &args,
                      const std::vector<StaticValue> &statics, Value key);
  /// The key of a site of this frame, of element `index` if that is given; null without a key.
  Value splitKey(const typed::Expr &site, Value index = {});

  //===--------------------------------------------------------------------===//
  // Calls, functions as values, layers (ProgramGenCalls.cpp)
  //===--------------------------------------------------------------------===//

  Value genCall(const typed::CallExpr &expr);
  struct CallArgs {
    std::vector<bool> isStatic;
    std::vector<Value> values;        ///< null for static ones
    std::vector<StaticValue> statics; ///< empty for the others
  };
  Value callFunction(const typed::CallExpr &call, const CallArgs &args, const LayerInstance *self);
  const Subst *internSubst(Subst subst);
  /// An extent of a tensor, or the length of a list, in an argument or a field of it.
  struct ExtentPlace {
    unsigned param = 0;
    std::vector<unsigned> path;
    unsigned axis = 0;
  };
  std::optional<ExtentPlace> directExtent(const FnInfo &fn, const std::string &symbol) const;
  FnInstance *instanceOf(const FnInfo &fn, std::vector<Type> typeArgs,
                         std::vector<std::optional<int64_t>> dims, const LayerInstance *self,
                         std::vector<const StaticCode *> statics, FnInstance *requester);
  Type widen(Type known, Type now) const;
  Value naturalArgument(const FnInfo &fn, const IntExtent &extent, const std::vector<Value> &args);
  void generateBody(FnInstance &instance);
  Value callClosure(const StaticValue &closure, const std::vector<Value> &args,
                    const std::vector<StaticValue> &statics, Type result, Value drawnFrom);
  void generateLambda(LambdaInstance &instance);
  StaticValue genStatic(const typed::Expr &expr);
  StaticValue makeClosure(const typed::LambdaExpr &lambda);
  StaticValue pickLayer(const StaticValue &list, const typed::Expr &index);
  StaticValue mapOptions(const StaticValue &value,
                         const std::function<const StaticCode *(const StaticCode &)> &map);
  const StaticCode *intern(StaticCode code, const std::string &key);
  const StaticCode *choiceCode(std::vector<const StaticCode *> options);
  const StaticCode *listCode(std::vector<const StaticCode *> options);
  size_t valueCount(const StaticCode &code) const { return code.valueTypes.size(); }
  /// Makes the values of a static value, as they arrived in a function, visible in the frame.
  void bindStatics(const StaticCode &code, const std::vector<Value> &values);
  /// Generates for the layer that `value` is; for one picked at run time, a branch for each.
  Value withLayer(const StaticValue &value, Type type,
                  const std::function<Value(const StaticCode &)> &generate);
  Value choose(Value index, size_t low, size_t high, Type type,
               const std::function<Value(size_t)> &generate);
  bool isStatic(TypeRef type) const;
  /// Symbols of dims that generating an expression may need the values of.
  std::set<std::string> dimsUsed(const typed::Expr &expr) const;

  //===--------------------------------------------------------------------===//
  // Patterns (ProgramGenMatch.cpp)
  //===--------------------------------------------------------------------===//

  /// Binds the variables of a pattern that always matches.
  void bindPattern(const typed::Pattern &pattern, Value value);
  void bindVariable(const typed::Variable &variable, Value value);
  Value genMatch(const typed::MatchExpr &expr);
  struct Decision;
  struct MatchBuilder;
  struct MatchState;
  Value emitDecision(MatchState &state, const Decision &decision);
  Value emitLeaf(MatchState &state, const Decision &decision);
  Value emitSwitch(MatchState &state, const Decision &decision);

  const CheckedModule &checked;
  const Draws draws;
  TypeContext &types;
  mlir::MLIRContext &context;
  Diagnostics &diags;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::ImplicitLocOpBuilder b;
  SourceRange range;
  Frame *frame = nullptr;

  std::deque<Subst> substs;
  std::map<std::string, const Subst *> substsByKey;
  Subst fileSubst;
  std::deque<LayerInstance> layers;
  std::map<const LetInfo *, const StaticCode *> fileLets;
  Type emitted; ///< what the entry emits; null: nothing
  size_t paramCount = 0;
  int64_t guardCount = 0;

  std::deque<StaticCode> codes;
  std::map<std::string, const StaticCode *> codesByKey;
  std::deque<FnInstance> instances;
  std::map<std::string, FnInstance *> instancesByKey;
  std::deque<LambdaInstance> lambdas;
  std::map<std::string, LambdaInstance *> lambdasByKey;
  std::deque<LoopInstance> loops;
  std::map<std::string, LoopInstance *> loopsByKey;
  std::deque<typed::LambdaExpr> sharedArms;
  std::deque<std::function<void()>> pending;

  std::map<std::string, unsigned> symbolCounts;
  std::set<std::string> symbols;
  std::map<std::string, Type> dataByKey;
  mlir::Operation *lastData = nullptr;
  bool stopped = false;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_PROGRAMGENIMPL_H
