//===- SizeValue.h - What is known of the sizes of a value ------*- C++ -*-===//
#ifndef SHEAF_COMPILER_ANALYSIS_SIZEVALUE_H
#define SHEAF_COMPILER_ANALYSIS_SIZEVALUE_H

#include "compiler/analysis/Bound.h"
#include "compiler/ir/Program.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sheaf::passes {

/// A symbol of bounds.
struct SizeSymbol {
  enum Kind {
    Size,    ///< of the entry's arguments
    Calls,   ///< how often a recursion calls itself in one instance
    Length,  ///< as many as there are such calls: not a number of them that others add to
    Unknown, ///< nothing can bound it
    Element  ///< of each element of a list, or of each node of a data value
  } kind;
  std::string name;    ///< by which it may be bounded: `words`, `xs[].0`, `parse.calls`
  std::string what;    ///< for people, with its article
  std::string place;   ///< file:line:column of Calls and Unknown
  std::string group{}; ///< sizes of one group are parts of one number that has this name
  std::vector<std::string> names{}; ///< that stand for it, too
  unsigned calls = 0;               ///< Length: the symbol of the calls
};

struct SizeNumber;

/// All symbols of an analysis.
class SizeSymbols {
public:
  unsigned add(SizeSymbol symbol);
  /// The number of what nothing can bound, of which there is one for each place and reason.
  unsigned unknown(mlir::Location where, const std::string &what);
  /// The number of the calls of a function, and of those that it calls itself through.
  unsigned calls(const std::string &of, mlir::Location where);
  /// A bound of a size that calls have made, for whoever makes more of it each time.
  Bound asLength(const Bound &bound);
  void addNames(unsigned symbol, const std::vector<std::string> &names);

  /// What sizes are asked about: none of that name is larger. It decides branches; bounds stay
  /// sums of symbols.
  void ask(std::map<std::string, double> most) { most_ = std::move(most); }
  /// The largest that a symbol may be; infinity where that is not said.
  double most(unsigned symbol) const;
  /// The number that a size is at most; INT64_MAX when that has no end.
  int64_t mostOf(const SizeNumber &number) const;
  unsigned element() { return add({SizeSymbol::Element, "", "", ""}); }

  const SizeSymbol &operator[](unsigned number) const { return all_[number]; }
  const std::vector<SizeSymbol> &all() const { return all_; }

private:
  std::vector<SizeSymbol> all_;
  std::map<std::pair<std::string, std::string>, unsigned> byPlace_;
  std::map<std::string, double> most_;
};

/// `file:line:column` of a location, from the inside; `?` where there is none.
std::string placeWithColumn(mlir::Location where);

/// An int, a bool, an extent or a length: not less than `least`, and the larger of it and 0 is at
/// most `most`.
struct SizeNumber {
  int64_t least = INT64_MIN;
  Bound most;

  static SizeNumber exactly(int64_t number) { return {number, Bound(static_cast<double>(number))}; }
  /// A size that is at most this.
  static SizeNumber upTo(Bound most) { return {0, std::move(most)}; }
  /// The number where only one is possible.
  std::optional<int64_t> exact() const;
  bool operator==(const SizeNumber &) const = default;
};

SizeNumber sum(const SizeNumber &a, const SizeNumber &b);
/// Of what is at least that; INT64_MIN where nothing is known.
int64_t leastSum(int64_t a, int64_t b);

/// Sums over the elements of a list or the nodes of a data value: for each symbol of one element
/// what all of them come to.
using SizeSums = std::map<unsigned, Bound>;

/// At least the sum of `each` over `count` elements. What is a number of the whole instance is that
/// already.
Bound sumOf(const Bound &each, const Bound &count, const SizeSums &sums,
            const SizeSymbols &symbols);
/// At least `each` of the largest element.
Bound largestOf(const Bound &each, const SizeSums &sums);

struct SizeValue;

/// A data type by its name, and a constructor.
using NodeKind = std::pair<std::string, unsigned>;

/// The nodes of a data value of a recursive type that came with the instance.
struct SizeTree {
  std::map<NodeKind, Bound> nodes; ///< how many there are
  /// What a node of each kind holds, in symbols of the node.
  std::map<NodeKind, std::shared_ptr<std::vector<SizeValue>>> fields;
  SizeSums sums; ///< of these symbols, over all nodes
};

/// What is known of the sizes of a value. Everything in it is a bound.
struct SizeValue {
  enum Kind {
    Nothing, ///< a value that has no size: a float
    Never,   ///< no value comes here
    Number,  ///< an int, a bool, a token
    Tensor,
    List,
    Tuple,
    Data, ///< of a type that does not hold itself: fields of each constructor
    Tree  ///< of a type that does
  } kind = Nothing;

  SizeNumber number{};            ///< Number; of a List its length
  std::vector<SizeNumber> dims{}; ///< Tensor
  /// Tuple: the fields. Data: a Tuple for each constructor, or Never. List: what all elements are
  /// like, unless there are none; with `isWhole` each of them.
  std::vector<SizeValue> parts{};
  bool isWhole = false;                   ///< List: `parts` are its elements
  bool inPieces = false;                  ///< List: it may have to be joined before it is read
  bool joinCounted = false;               ///< List: that it is joined has been counted
  SizeSums sums{};                        ///< List: of symbols of an element
  std::shared_ptr<const SizeTree> tree{}; ///< Tree; null: the program made it
  /// Tree, List: where it is in what the recursive function that is looked at was called with, as
  /// the way to it; empty when that is it itself.
  std::optional<std::string> way{};

  bool isExactly(int64_t n) const { return kind == Number && number.exact() == n; }
};

/// Equal but for symbols of no one else.
bool operator==(const SizeValue &a, const SizeValue &b);

SizeValue numberValue(SizeNumber number);
inline SizeValue numberValue(int64_t number) { return numberValue(SizeNumber::exactly(number)); }

/// What is as good as any value of the type that was made at `where`; what is not known of it is
/// `what`.
SizeValue unknownValue(mlir::Type type, mlir::ModuleOp module, SizeSymbols &symbols,
                       mlir::Location where, const std::string &what);

/// What both are.
SizeValue joined(const SizeValue &a, const SizeValue &b);
/// Both; `limit` gives what stands for a bound that goes beyond what it was before, so that doing
/// it again changes nothing soon. It is given the bound before and that of both.
SizeValue widened(const SizeValue &before, const SizeValue &next,
                  const std::function<Bound(const Bound &, const Bound &)> &limit);

/// The one element of a list that any of its elements is within; null when there are none.
std::optional<SizeValue> elementOf(const SizeValue &list);
/// With bounds replaced, everywhere.
SizeValue mapBounds(const SizeValue &value, const std::function<Bound(const Bound &)> &map);
/// An element of a list as a value by itself: what holds of the largest one.
SizeValue largestElement(const SizeValue &list);
/// Without ways: it may be there several times.
SizeValue withoutWays(SizeValue value);
/// Extents that the type says are exact.
SizeValue asType(SizeValue value, mlir::Type type);

/// Whether there may be tensors in a value of the type.
bool holdsTensors(mlir::Type type, mlir::ModuleOp module);
/// Whether a data type holds values of itself.
bool isRecursive(ir::DataType type, mlir::ModuleOp module);

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_ANALYSIS_SIZEVALUE_H
