//===- CheckerImpl.h - The checker class ------------------------*- C++ -*-===//
//
// Behind Checker.h, private to Checker*.cpp.
//
// Order: names, dims, data types, signatures, lets, bodies, and last what needs the call graph. A
// function without a result type is checked when its type is first asked for.
//
// Errors: what went wrong has type Error, which agrees with everything, so one mistake gives one
// message.
//
// Dims: every dim has a symbol of its own in the whole file (`n`, `n'2`), so no two dims of one
// name are mistaken for each other. A callee's dims become variables at each call. A `?` extent
// gets a fresh symbol when its value comes to hand (`open`); where that symbol would leave the arm
// or lambda it was made in, the extent becomes `?` again (`close`).
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_CHECKERIMPL_H
#define SHEAF_COMPILER_FRONTEND_CHECKERIMPL_H

#include "compiler/frontend/Checker.h"

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
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

class Checker {
public:
  Checker(const Module &module, const CheckOptions &options, Diagnostics &diags, CheckedModule &out)
      : module(module), options(options), diags(diags), out(out), types(*out.types),
        dims(out.types->dims), storage(*out.storage) {}

  void run();

private:
  using E = typed::Expr *;

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
    explicit Scope(Checker &checker)
        : checker(checker), locals(checker.context->locals.size()),
          fields(checker.context->fields.size()), assumptions(checker.dims.assumptionMark()) {}
    ~Scope() {
      checker.context->locals.resize(locals);
      checker.context->fields.resize(fields);
      checker.dims.dropAssumptions(assumptions);
    }
    Scope(const Scope &) = delete;

  private:
    Checker &checker;
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
  const std::string &fileName(size_t number) const { return diags.file().files()[number].name(); }
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
  /// For a name that is no value: what another language's word is here, or one that is like it.
  /// A name that a file which is used by a name of its own declares, or one of these.
  std::string suggestName(const std::string &name,
                          const std::vector<std::string> &candidates) const;
  std::string suggestValue(const std::string &name) const;
  std::vector<std::string> visibleValues() const;
  std::vector<std::string> visibleDims() const;
  std::vector<std::string> visibleTypes() const;

  //===--------------------------------------------------------------------===//
  // Declarations (CheckerDecls.cpp)
  //===--------------------------------------------------------------------===//

  void collectNames();
  void collectName(const Decl &decl);
  /// Refuses what a file that is used cannot have.
  void refuseParam(const Decl &decl, const std::string &what);
  // Files (CheckerFiles.cpp).
  /// Whether all files that are used are there.
  bool linkFiles();
  void linkUse(size_t file, const UseDecl &use);
  void checkFileCycles();
  std::string nameOfType(const std::string &name) const;
  void clash(const UseDecl &use, const std::string &name, SourceRange first, SourceRange second);
  void collectLayer(LayerInfo &layer);
  void checkDims();
  std::optional<int64_t> valueOfDim(const DeclaredDim &declared, const DimDecl &decl);
  void checkData();
  void checkDataIsRegular();
  void checkDataIsFinite();
  void checkLayerHeads();
  void checkParam(ParamInfo &param);
  void checkSignature(FnInfo &fn);
  std::optional<double> constantNumber(const std::string &name);
  const Named *findConstant(const std::string &name) const;
  void checkLets();
  void checkLet(LetInfo &let);
  void checkLayerCycles();
  void checkBody(FnInfo &fn);
  /// The result type is known; checks the body if it takes that. False: it cannot be known.
  bool needResult(FnInfo &fn, SourceRange use);
  void checkEntry();
  void checkCallGraph();
  /// Constants must not draw.
  void checkConstants();
  bool wrapsParameter(const typed::Expr *function) const;

  //===--------------------------------------------------------------------===//
  // Types and dims as written (CheckerTypes.cpp)
  //===--------------------------------------------------------------------===//

  enum class NewDims {
    Refuse,   ///< a dim must be known
    Quantify, ///< it becomes a dim of the function being declared
    Bind      ///< it becomes a variable, to be bound to what a value brings
  };
  struct TypeScope {
    NewDims newDims = NewDims::Refuse;
    /// Names made so far: symbols (Quantify) or variables (Bind).
    std::map<std::string, Dim> made = {};
    std::map<std::string, SourceRange> madeAt = {};
    bool allowUnknown = true;
    bool allowFunction = false; ///< at the top
    bool allowLayer = false;    ///< at the top
  };
  TypeRef convertType(const TypeExpr &expr, TypeScope &scope);
  TypeRef convertInner(const TypeExpr &expr, TypeScope &scope);
  TypeRef convertNamed(const NamedTypeExpr &expr, TypeScope &scope);
  std::optional<Dim> convertDim(const DimExpr &expr, TypeScope &scope);
  /// The extents that `*rows` stands for; an error makes none.
  std::optional<std::vector<Dim>> convertPack(const DimExpr &expr, TypeScope &scope);
  std::optional<Dim> evaluateDim(const Expr &expr, TypeScope &scope);
  std::optional<Dim> combineDims(BinaryOp op, const Dim &a, const Dim &b, SourceRange range);
  bool withinLimits(TypeRef type, SourceRange range);

  //===--------------------------------------------------------------------===//
  // Expressions (CheckerExprs.cpp, Expectations, Parts, Branches, Lambdas, Extents)
  //===--------------------------------------------------------------------===//

  /// What a value must be. `what` is the subject of the message: "the condition of 'if'".
  /// The help where what a fold gives is not of its start value's type.
  static constexpr std::string_view oneAccumulator =
      "the start value and every result must have one type";

  struct Expectation {
    TypeRef type;
    std::string what;
    std::string help = {};
    TypeContext::Postponed *postponed = nullptr;
    /// Of a function whose result type is to be found: what would suit.
    TypeRef resultHint = nullptr;
    /// Of such a function: whether extents of its result that are equal stay so (tiedDim).
    bool keepsTies = false;
  };

  /// An argument: as written, or already typed (a function value is called with such).
  struct Arg {
    const Expr *syntax = nullptr;
    E typed = nullptr;
    SourceRange range;
    const Identifier *name = nullptr;
  };

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

  /// The typed expression; `hint` is what would suit (may be null). Its type has no open `?`.
  E infer(const Expr &expr, TypeRef hint = nullptr);
  E inferInner(const Expr &expr, TypeRef hint);
  /// The typed expression, which fits the expectation.
  E check(const Expr &expr, const Expectation &expected);
  bool isLiteralOf(const Expr &expr, TypeRef type) const;
  E literalAs(const Expr &expr, TypeRef type);
  E literalsAs(const Expr &expr, E value, TypeRef type);
  TypeRef withLiteralsOf(const Expr &expr, TypeRef type, TypeRef next);
  E checkArg(const Arg &arg, const Expectation &expected);
  E inferArg(const Arg &arg, TypeRef hint = nullptr);
  /// Requires the type of something typed.
  E require(E value, const Expectation &expected);
  void reportMismatch(SourceRange range, const Expectation &expected, TypeRef actual);
  std::string compareInNumbers(TypeRef expected, TypeRef actual) const;
  std::string openedExtentHelp(TypeRef want, TypeRef have) const;
  std::string lengthHelp(TypeRef want, TypeRef have) const;
  /// The axis of two tensors where two unnamed extents differ, the first; both types print alike.
  std::optional<size_t> axisOfOtherExtent(TypeRef want, TypeRef have) const;

  E inferName(const NameExpr &name);
  /// The value of what files declare; null if it has none as it stands.
  E globalValue(const Named &named, const std::string &name, SourceRange range);
  E paramValue(const ParamInfo &info, E layer, SourceRange range);
  E letValue(LetInfo &info, E layer, SourceRange range);
  E inferUnary(const UnaryExpr &expr, TypeRef hint);
  E inferBinary(const BinaryExpr &expr, TypeRef hint);
  E inferHostBinary(const BinaryExpr &expr, E lhs, E rhs);
  bool isExtent(const typed::Expr &expr) const;
  E floatOf(E value);
  E inferIndex(const IndexExpr &expr);
  /// What to write for an index or bound that counts from the end, as in `x[:-1]`.
  std::string fromTheEndHelp(const IndexExpr &expr, const IndexItem &item,
                             const std::string &length) const;
  E indexList(const IndexExpr &expr, E base);
  E indexLayers(const IndexExpr &expr, E base);
  E indexTensor(const IndexExpr &expr, E base);
  E inferField(const FieldExpr &expr);
  E inferList(const ListExpr &expr, TypeRef hint);
  E inferTuple(const TupleExpr &expr, TypeRef hint);
  E inferBlock(const BlockExpr &expr, const Expectation *expected, TypeRef hint);
  void checkLetStmt(const Stmt &stmt, typed::BlockExpr &block);
  void checkCheckStmt(const Stmt &stmt, typed::BlockExpr &block);
  /// Takes what comparisons of extents say, of a condition that holds or does not. `certain`: it
  /// has been checked.
  void assumeComparisons(const typed::Expr &condition, bool holds, bool certain);
  bool isNatural(const typed::Expr &expr);
  TypeRef joinBranches(const std::vector<TypeRef> &branches, const std::vector<SourceRange> &ranges,
                       const std::string &what);
  void finishLambda(typed::LambdaExpr &lambda, const Expr &syntax, E body, TypeRef result,
                    const Expectation &expected, size_t mark);
  E inferIf(const IfExpr &expr, const Expectation *expected, TypeRef hint);
  E inferMatch(const MatchExpr &expr, const Expectation *expected, TypeRef hint);
  E checkLambda(const LambdaExpr &expr, const Expectation &expected);
  E inferStandaloneLambda(const LambdaExpr &expr);
  /// A named function, operator, constructor or method where a function value is wanted: becomes a
  /// lambda that calls it.
  E expandFunctionName(const Expr &expr, const Expectation &expected);
  bool namesFunction(const Expr &expr) const;
  E inferFunctionName(const Expr &expr);

  /// Replaces open `?` extents by fresh symbols.
  TypeRef open(TypeRef type, std::vector<typed::OpenedDim> &opened);
  TypeRef open(TypeRef type, std::vector<typed::OpenedDim> &opened, std::vector<unsigned> &path,
               std::map<std::string, Dim> &tied);
  E opened(E value);
  /// Makes extents `?` that mention symbols opened since `mark`.
  /// With `ties`, those outside of lists and data that are equal stay so (tiedDim).
  TypeRef close(TypeRef type, size_t mark, bool ties = false);
  /// What a value of type `actual` is under the annotation: its `?` keep what is known of the
  /// value.
  TypeRef mergeAnnotation(TypeRef annotation, TypeRef actual);
  /// Makes the names that an annotation introduces visible.
  void bindAnnotationDims(const TypeScope &scope);

  /// The extent that an int expression is, if it is made of extents and literals.
  std::optional<Dim> toDim(const typed::Expr &expr);
  /// The same, if nothing in it is rounded.
  std::optional<Dim> unroundedDim(const typed::Expr &expr);
  /// What is known of how many elements a list has.
  std::optional<Dim> lengthOf(const typed::Expr &list) const;
  /// The type of a list's elements and of one that is added, which has it but for lengths of lists.
  TypeRef withLengthsOfBoth(TypeRef element, TypeRef added);
  static std::optional<Dim> plus(const std::optional<Dim> &a, const std::optional<Dim> &b);
  /// The first quotient of known numbers in an int that leaves a remainder, or null.
  const typed::ScalarExpr *inexactQuotient(const typed::Expr &expr);

  //===--------------------------------------------------------------------===//
  // Calls (CheckerCalls.cpp, CheckerOps.cpp, CheckerLists.cpp)
  //===--------------------------------------------------------------------===//

  E inferCall(const CallExpr &call, TypeRef hint);
  std::vector<Arg> argsOf(const CallExpr &call);
  /// Calls what a name or field means; `callee` must not be a local variable.
  /// What to write for `x.name(...)` where x is no layer, for a member that a layer has not, and
  /// for `name(...)` where that is a value of such a type; or nothing.
  std::string methodHelp(const std::string &name) const;
  std::string membersHelp(const std::string &name, const std::vector<std::string> &members) const;
  std::string calledHelp(const std::string &name, TypeRef type);
  E callNamed(const Expr &callee, std::vector<Arg> args, SourceRange range, uint32_t siteId,
              TypeRef hint);
  E callFunction(FnInfo &fn, E layer, std::vector<Arg> args, SourceRange calleeRange,
                 SourceRange range, uint32_t siteId);
  E callValue(E callee, const std::vector<Arg> &args, const std::string &name, SourceRange range,
              uint32_t siteId);
  E callGlobal(const Named &named, const std::string &name, std::vector<Arg> &args,
               SourceRange calleeRange, SourceRange range, uint32_t siteId, TypeRef hint);
  /// An error in the place of a call; arguments are looked at all the same.
  E refuseCall(const std::vector<Arg> &args, SourceRange at, std::string message,
               std::string help = {});
  E makeLayer(const LayerInfo &layer, const std::vector<Arg> &args, SourceRange range);
  E construct(const ConstructorRef &ctor, std::vector<Arg> args, SourceRange range, TypeRef hint);
  /// Puts named arguments in their places. False: an error was reported.
  bool arrange(std::vector<Arg> &args, const std::vector<std::string> &names,
               const std::string &callee, SourceRange range);

  E applyOp(const ops::Op &op, const std::vector<Arg> &args, SourceRange range);
  E applyInfix(const char *op, std::vector<E> operands, SourceRange range, const std::string &sign);
  std::optional<ops::OperandType> operandType(E value, SourceRange range, const std::string &what);
  std::optional<Dim> extentArg(const Arg &arg, typed::ApplyExpr &apply, const std::string &what);
  /// How a tensor is made of such a list, or nothing.
  E tensorsOfList(E list);
  std::string tensorOfListHelp(TypeRef list);
  E finishApply(typed::ApplyExpr *apply, std::vector<ops::OperandType> operands, SourceRange range);
  static std::string doubleTransposeHelp(const typed::ApplyExpr &apply, const std::string &help);
  std::optional<ops::ShapeResult> refusalByName(const typed::ApplyExpr &apply,
                                                std::vector<ops::OperandType> operands);
  std::optional<int64_t> staticInt(const Arg &arg, const std::string &what,
                                   const std::string &help);
  /// Of `max` and `min` what they reduce and which operator takes two tensors; else nothing.
  std::string elementwiseHelp(const ops::Op &op);
  void settleLiterals(const std::vector<const typed::Expr *> &operands);

  using BuiltinRule = E (Checker::*)(std::vector<Arg>, SourceRange, TypeRef);
  static const std::map<std::string_view, BuiltinRule> &builtins();
  E builtinMap(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinFilter(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinFold(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinScan(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinLoop(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E foldOrScan(std::vector<Arg> args, SourceRange range, TypeRef hint, bool scan);
  E builtinZip(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinRange(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinEnumerate(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinReverse(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinLen(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinShape(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E extentOf(E value, size_t axis, SourceRange range);
  E builtinAppend(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinConcat(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinRows(std::vector<Arg> args, SourceRange range, TypeRef hint);
  struct Einsum;
  E builtinEinsum(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinRead(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinReadAll(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E argOfRead(const Arg &arg);
  TypeRef hostTypeOf(const ops::TensorType &tensor);
  E builtinMin(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinMax(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinAbs(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinFloorDiv(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinFloorMod(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E floorDivision(const char *name, typed::ScalarOp op, std::vector<Arg> args, SourceRange range);
  /// Types the arguments that stand alone. Whether there are `count` of them and each, if it is not
  /// a number that may still become anything, is one that `isHost` takes; none: one is an error.
  std::optional<bool>
  inferHostArgs(std::vector<Arg> &args, size_t count,
                const std::function<bool(const typed::Expr &, TypeRef)> &isHost);
  E hostOrOp(const char *name, typed::ScalarOp op, size_t count, std::vector<Arg> args,
             SourceRange range);
  E hostMath(typed::ScalarOp op, std::vector<Arg> args, SourceRange range, TypeRef hint);
  template <typed::ScalarOp op>
  E builtinMath(std::vector<Arg> args, SourceRange range, TypeRef hint) {
    return hostMath(op, std::move(args), range, hint);
  }
  E builtinInt(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinFloat(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E builtinToken(std::vector<Arg> args, SourceRange range, TypeRef hint);
  E convertScalar(std::vector<Arg> args, SourceRange range, TypeRef to, const char *name);
  bool wantArgs(const std::vector<Arg> &args, size_t least, size_t most, const std::string &name,
                SourceRange range);
  /// The argument as a list; null if it is none, which is reported, with a help that says in which
  /// order arguments come.
  std::string listOfTensorHelp(const ops::TensorType &tensor) const;
  E listArg(const Arg &arg, const std::string &what, bool allowLayers, TypeRef hint = nullptr,
            const std::string &order = {});
  E makeBuiltin(typed::Builtin builtin, std::vector<const typed::Expr *> args, SourceRange range,
                TypeRef type);
  E functionArg(const Arg &arg, std::vector<TypeRef> params, TypeRef result,
                const std::string &what, const std::string &help = {});

  //===--------------------------------------------------------------------===//
  // Functions of any rank (CheckerRanks.cpp)
  //===--------------------------------------------------------------------===//

  /// Whether a signature has extents `*rows`; then the function is made what waits for calls.
  bool makeGeneric(FnInfo &fn);
  FnInfo *expansionOf(FnInfo &fn, std::map<std::string, size_t> ranks, SourceRange call);
  E callOfAnyRank(FnInfo &fn, E layer, std::vector<Arg> args, SourceRange calleeRange,
                  SourceRange range, uint32_t siteId);
  void ranksOf(const TypeExpr &written, TypeRef given, std::map<std::string, size_t> &ranks);

  //===--------------------------------------------------------------------===//
  // Loops (CheckerLoops.cpp)
  //===--------------------------------------------------------------------===//

  /// What is checked while it lives is taken back, unless it is kept: what was reported and bound.
  class Trial {
  public:
    explicit Trial(Checker &checker);
    ~Trial();
    Trial(const Trial &) = delete;
    /// Whether nothing has been reported.
    bool good() const;
    void keep() { isKept = true; }

  private:
    Checker &checker;
    Diagnostics::Mark reported;
    TypeContext::BoundMark bound;
    size_t opened, edges;
    bool isKept = false;
  };
  void settleNames(const Expr &expr);

  /// The function of a loop that makes the next of what the loop carries.
  struct CarryingStep {
    std::string loop; ///< `fold`
    std::string what; ///< for messages: `the function`
    const Arg &function;
    std::vector<TypeRef> others; ///< of its parameters after the first
  };
  struct Carried {
    TypeRef type = nullptr;
    E start = nullptr, step = nullptr;
  };
  /// The start value and the step of a loop, and the type of what it carries: `wanted`, or, if that
  /// is null, one that both agree with.
  Carried checkCarried(const CarryingStep &step, const Arg &start, TypeRef wanted);
  TypeRef writtenCarried(const std::vector<const Arg *> &functions);
  TypeRef wantedCarried(TypeRef hint);
  TypeRef widenCarried(const CarryingStep &step, const Arg &begin, TypeRef start,
                       std::vector<size_t> &labels);
  std::vector<size_t> provenTies(const CarryingStep &step, const Arg &start, TypeRef wanted);
  std::vector<size_t> labelsOf(TypeRef type);
  TypeRef tieExtents(TypeRef type, const std::vector<size_t> &labels);
  TypeRef mapExtents(TypeRef type, const std::function<Dim(const Dim &)> &map);
  E checkStep(const CarryingStep &step, TypeRef carried, TypeRef result);

  //===--------------------------------------------------------------------===//
  // What functions emit (CheckerEmits.cpp)
  //===--------------------------------------------------------------------===//

  void checkEmits(FnInfo &fn);
  bool mayEmit(TypeRef emits, const std::string &what, SourceRange range);
  E builtinEmit(std::vector<Arg> args, SourceRange range, TypeRef hint);
  void checkDoStmt(const Stmt &stmt, typed::BlockExpr &block);

  //===--------------------------------------------------------------------===//
  // Patterns (CheckerPatterns.cpp)
  //===--------------------------------------------------------------------===//

  typed::Pattern *checkPattern(const Pattern &pattern, TypeRef type);
  typed::Pattern *patternInner(const Pattern &pattern, TypeRef type, std::set<std::string> &names);
  typed::Pattern *makePattern(typed::PatternKind kind, SourceRange range, TypeRef type);
  typed::Variable *bindVariable(const std::string &name, TypeRef type, SourceRange range);
  void requireIrrefutable(const typed::Pattern &pattern, const std::string &where);
  void checkArms(const MatchExpr &syntax, const typed::MatchExpr &match);

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

  enum class BodyState { Waiting, Active, Done };
  std::map<const FnInfo *, BodyState> bodies;
  std::map<const LetInfo *, BodyState> letStates;
  unsigned depth = 0;
  unsigned constantDepth = 0; ///< constants that are looked up
  unsigned trials = 0;        ///< that are going on
  struct Widened {
    TypeRef type;               ///< null: no other would do
    std::vector<size_t> labels; ///< tieExtents()
  };
  /// By the syntax of a step that did not fit the type of the start value, or whose type is given,
  /// and what `*rows` stand for around it: the type that its loop carries.
  std::map<std::pair<const Expr *, std::map<std::string, size_t>>, Widened> carriedTypes;
  size_t errorPatterns = 0; ///< that the parser has reported, met so far

  struct CallEdge {
    const FnInfo *caller;
    const typed::FunctionExpr *callee;
    std::vector<const typed::Expr *> args;
    SourceRange range;
  };
  std::vector<CallEdge> edges;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_CHECKERIMPL_H
