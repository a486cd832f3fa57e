//===- Types.h - Types of the language, and their unification ---*- C++ -*-===//
//
// What the type checker computes with: value types, tensors whose extents are polynomials (`Dim`),
// second-class functions and layers, and the variables of local inference.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_FRONTEND_TYPES_H
#define SHEAF_COMPILER_FRONTEND_TYPES_H

#include "compiler/ops/Dim.h"
#include "compiler/ops/Op.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sheaf {

struct DataInfo;
struct LayerInfo;
struct Type;
using TypeRef = const Type *;

enum class TypeKind {
  Error, ///< what could not be typed; an error was reported. Agrees with everything
  Int,
  Float,
  Bool,
  Token,
  Tensor,
  Tuple,
  List,
  Data,
  Function,
  Layer,
  Variable, ///< of inference; `TypeContext::resolve` follows its binding
  Parameter ///< `T` of a generic function or data type
};

/// One type. Made by a TypeContext, which owns it; never changed.
struct Type {
  TypeKind kind = TypeKind::Error;
  std::string name;       ///< Token: the vocabulary; Parameter: its name
  ops::TensorType tensor; ///< Tensor. The extent `?` is `unknownDim()`
  std::vector<TypeRef>
      args; ///< Tuple: fields; List: element; Data: arguments; Function: parameters, then result
  const DataInfo *data = nullptr;
  const LayerInfo *layer = nullptr;
  std::vector<Dim> dims; ///< Layer: the values of its dim parameters; List: its length, if known
  uint32_t id = 0;       ///< Variable: its number
  bool numeric = false;  ///< Variable: an integer literal's type, int or float
  bool keepsLengths =
      false;           ///< Variable: what values of one origin have, see TypeContext::variable
  uint32_t weight = 1; ///< nodes in it, shared ones counted each time; saturates
  uint32_t depth = 1;  ///< how deeply it is nested

  bool is(TypeKind k) const { return kind == k; }
  TypeRef element() const { return args.front(); }
  /// Of a list: how many elements it has, or null where that is not known.
  const Dim *length() const { return dims.empty() ? nullptr : &dims.front(); }
  TypeRef result() const { return args.back(); }
  size_t paramCount() const { return args.size() - 1; }
};

/// The extent `?` inside a list or data type: it may differ from element to element.
const Dim &unknownDim();
/// An extent `?` that is the same as the others of its number in the type: of what a loop carries.
Dim tiedDim(size_t number);
bool isTied(const Dim &dim);
/// Of either kind.
bool isUnknown(const Dim &dim);

/// The quotient rounded down, and what it leaves, of the divisor's sign; of a divisor that is not
/// 0. The quotient of the least int by -1 wraps.
int64_t floorQuotient(int64_t a, int64_t b);
int64_t floorRemainder(int64_t a, int64_t b);

/// How two extents compare.
enum class DimRelation { Equal, Different, Undecided };

/// Everything known about dim symbols: values, quotients, equalities, and bindings of the variables
/// that stand for a callee's dims.
class DimContext {
public:
  /// A quotient or remainder that is no polynomial has a symbol of its own.
  struct Quotient {
    Dim numerator, denominator;
    bool remainder = false;
  };

  void setValue(const std::string &symbol, int64_t value) { values[symbol] = value; }
  std::optional<int64_t> valueOf(const std::string &symbol) const;
  /// The number an extent stands for, when all its symbols have values and all divisions are exact.
  std::optional<int64_t> value(const Dim &dim) const;

  /// `a / b`: a polynomial if exact, else a symbol of its own. Nullopt: `b` is 0 or known not to
  /// divide `a`.
  std::optional<Dim> divide(const Dim &a, const Dim &b) const;
  /// `a % b`. Nullopt: `b` is 0.
  std::optional<Dim> remainder(const Dim &a, const Dim &b) const;
  /// `a / b` if it is proven exact.
  std::optional<Dim> exactQuotient(const Dim &a, const Dim &b) const;
  const std::map<std::string, Quotient> &quotients() const { return quotientTable; }

  /// A variable that stands for one dim of a callee; prints as `name`.
  Dim makeVariable(const std::string &name);
  static bool isVariable(const std::string &symbol);
  bool hasFreeVariables(const Dim &dim) const;
  /// A rigid symbol that equals only itself, whose name begins with `name`.
  Dim makeRigid(const std::string &name);

  /// With bound variables replaced.
  Dim resolve(const Dim &dim) const;
  /// Replaces symbols, looking into quotients too.
  using Lookup = std::function<std::optional<Dim>(const std::string &)>;
  Dim substitute(const Dim &dim, const Lookup &lookup) const;
  /// Makes two extents equal if that takes no more than binding a variable. Undecided: both sides
  /// still have variables that other arguments may bind.
  DimRelation unify(const Dim &a, const Dim &b);
  /// How many variables are bound; `unbindSince` frees those that have been bound since.
  size_t boundCount() const { return bound.size(); }
  void unbindSince(size_t count);
  /// Compares without binding anything.
  bool same(const Dim &a, const Dim &b) const;
  /// From now on, until dropped, `a` equals `b` (`check a == b`).
  void assume(const Dim &a, const Dim &b);
  /// Likewise, `dim` is at least 0.
  void assumeNatural(const Dim &dim);
  struct AssumptionMark {
    size_t equalities, naturals;
  };
  AssumptionMark assumptionMark() const { return {equalities.size(), naturals.size()}; }
  void dropAssumptions(AssumptionMark mark) {
    equalities.resize(mark.equalities);
    naturals.resize(mark.naturals);
  }
  /// The symbol stands for an int of the program: others, for extents and lengths, are at least 0.
  void mayBeNegative(const std::string &symbol) { ints.insert(symbol); }
  /// Whether the number that an extent stands for is proven to be at least 0.
  bool isNatural(const Dim &dim) const;

  /// Messages call a fresh symbol by the name that a `let` gave it. The first name stays.
  void nameFresh(const std::string &symbol, const std::string &name);
  /// With the symbols that nameFresh() named replaced by these names: for messages only.
  Dim named(const Dim &dim) const;
  /// For messages: symbols by the names they were written with.
  std::string print(const Dim &dim) const;
  /// A text that mentions symbols, with the names they were written with.
  std::string plainNames(const std::string &text) const;

private:
  Dim canonical(const Dim &dim) const;
  Dim cancelQuotients(Dim dim) const;

  std::map<std::string, int64_t> values;
  /// Written by const members too: it only names what is computed.
  mutable std::map<std::string, Quotient> quotientTable;
  std::map<std::string, Dim> bindings; ///< of variables
  std::vector<std::string> bound;      ///< the variables that have one, in order
  std::map<std::string, std::string> varNames;
  std::map<std::string, std::string> freshNames;
  std::vector<std::pair<std::string, Dim>> equalities; ///< symbol := dim, applied in order
  std::vector<Dim> naturals;                           ///< assumed to be at least 0
  std::set<std::string> ints;                          ///< symbols that may be negative
  std::map<std::string, int> rigidNames;
  int nextVariable = 0;
};

/// Makes types, follows and binds type variables, and compares.
class TypeContext {
public:
  TypeContext();

  DimContext dims;

  TypeRef error() const { return errorType; }
  TypeRef intType() const { return intT; }
  TypeRef floatType() const { return floatT; }
  TypeRef boolType() const { return boolT; }
  TypeRef unit() const { return unitT; }
  TypeRef token(const std::string &vocab);
  TypeRef tensor(ops::TensorType type);
  TypeRef tuple(std::vector<TypeRef> fields);
  /// A list; of any length if that is `?` or not given.
  TypeRef list(TypeRef element, const std::optional<Dim> &length = std::nullopt);
  TypeRef dataType(const DataInfo *data, std::vector<TypeRef> args);
  TypeRef function(std::vector<TypeRef> params, TypeRef result);
  TypeRef layerType(const LayerInfo *layer, std::vector<Dim> dims);
  TypeRef parameter(const std::string &name);
  /// A variable that stands for what several values have in common forgets the lengths of lists:
  /// they may differ from value to value. One that stands for a single result keeps them.
  TypeRef variable(bool keepsLengths = false);
  /// The type of an integer literal: int unless it must be float.
  TypeRef numericVariable();

  /// The type, or what a variable at its head is bound to.
  TypeRef resolve(TypeRef type) const;
  /// With every variable and dim variable replaced; unbound literals become int, if `literals`.
  TypeRef zonk(TypeRef type, bool literals = true);
  bool hasVariables(TypeRef type) const;
  /// Nothing in it is an Error.
  bool isSound(TypeRef type) const;
  /// May be stored: no function and no layer in it.
  bool isFirstClass(TypeRef type) const;
  bool contains(TypeRef type, TypeKind kind) const;
  bool containsUnknown(TypeRef type) const;
  /// It, or a part of it, is a list of known length.
  bool containsLength(TypeRef type) const;
  /// Whether all that an extent is made of has a name or a number.
  bool isNamed(const Dim &dim) const;
  /// Every extent in it, `?` excepted, has a value.
  bool hasOnlyKnownDims(TypeRef type) const;

  /// Replaces type parameters and dim symbols.
  TypeRef substitute(TypeRef type, const std::map<TypeRef, TypeRef> &params,
                     const std::function<std::optional<Dim>(const std::string &)> &dimLookup);
  /// Replaces extents of tensors, dims of layers and lengths of lists.
  TypeRef mapDims(TypeRef type, const std::function<Dim(const Dim &)> &map);
  /// The type with lists of any length, at every depth; perhaps only those of lengths that are
  /// still to be bound.
  TypeRef forgetLengths(TypeRef type, bool thatAreFree = false);

  /// A value of type `actual` may stand where `expected` is wanted: equal, but for extents and
  /// lengths of lists that `expected` leaves open. Binds variables. Equalities of dims that cannot
  /// be decided yet are appended to `postponed`; if that is null they count as different.
  using Postponed = std::vector<std::pair<Dim, Dim>>;
  bool subsume(TypeRef actual, TypeRef expected, Postponed *postponed = nullptr);
  /// The least type for values of both; null if there is none. Extents that differ become `?`
  /// unless both are known at compile time; lists whose lengths differ are of any length.
  TypeRef join(TypeRef a, TypeRef b);
  /// `start` with the extents `?` of which `opens` says so, given those of `next`; where it has a
  /// variable, what `fill` makes of that part of `next`. Null if they differ in more than extents.
  TypeRef widen(TypeRef start, TypeRef next,
                const std::function<bool(const Dim &, const Dim &)> &opens,
                const std::function<TypeRef(TypeRef)> &fill);

  /// What is bound now, for dims and types; `unbindSince` frees what has been bound since.
  struct BoundMark {
    size_t types, dims;
  };
  BoundMark boundMark() const { return {bound.size(), dims.boundCount()}; }
  void unbindSince(BoundMark mark);

  /// Source form.
  std::string print(TypeRef type) const;
  /// Source form with the values of dims; empty where that is the same as `print`.
  std::string printValues(TypeRef type) const;
  std::string printTensor(const ops::TensorType &type) const;

private:
  Type *make(TypeKind kind);
  TypeRef compound(TypeKind kind, std::vector<TypeRef> args, const DataInfo *data = nullptr);
  template <typename Leaf>
  TypeRef rebuild(TypeRef type, Leaf &&leaf, const std::function<Dim(const Dim &)> &mapLength);
  bool bind(TypeRef variable, TypeRef type);
  bool occurs(TypeRef variable, TypeRef type) const;
  std::string print(TypeRef type, const std::function<std::string(const Dim &)> &printDim) const;
  bool subsumeDim(const Dim &actual, const Dim &expected, bool insideData, Postponed *postponed);
  bool subsume(TypeRef actual, TypeRef expected, bool insideData, Postponed *postponed);

  std::deque<Type> types;
  std::vector<TypeRef> bindings; ///< of variables; null if unbound
  std::vector<uint32_t> bound;   ///< the variables that have one, in order
  TypeRef errorType, intT, floatT, boolT, unitT;
};

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_TYPES_H
