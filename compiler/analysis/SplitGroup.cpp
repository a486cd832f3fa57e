//===- SplitGroup.cpp - Cuts long groups of tensor code -------------------===//

#include "compiler/analysis/SplitGroup.h"
#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Expand.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

#include "llvm/ADT/SetVector.h"

#include <map>
#include <optional>

using namespace mlir;

namespace sheaf::passes {
namespace {

constexpr unsigned kShortestPiece = 24;
/// A piece is longer only where there is no place to cut.
constexpr unsigned kLongestPiece = 2 * kLongGroup;
/// Of so many equal pieces what stands before and after them is kept out, however short it is.
constexpr unsigned kManyPieces = 4;

/// Whether a kernel computes it where its result is read, in registers.
bool isComputedWhereRead(Operation *op) {
  return batchRule<ops::Elementwise>(op) || batchRule<ops::Movement>(op);
}

/// Whether a tensor has an element for each pair of an instance's rows and columns.
bool hasPairs(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumDynamicDims() >= 2;
}

/// The operators of a group by what they take.
struct Parts {
  explicit Parts(const Group &group) {
    // In training the gradient of a weight is summed over where it is looked up, in their order.
    bool looksUp = !group.front()->getParentOfType<ModuleOp>()->hasAttr(ops::kTrainingAttr);
    for (Operation *op : group) {
      bool isGiven = true, isView = batchRule<ops::Movement>(op) != nullptr;
      bool isOfPlaces =
          isComputedWhereRead(op) && !takesList(op) && !moves(op, ops::Movement::Concat);
      for (Value operand : op->getOperands()) {
        Operation *def = operand.getDefiningOp();
        bool isHost = !isa<RankedTensorType, ir::ListType>(operand.getType());
        bool isOfWeight = isa_and_nonnull<ir::ParamRefOp>(def) || views_.contains(def);
        isGiven &= isHost || isFill(def) || given.contains(def);
        isView &= isOfWeight;
        isOfPlaces &= isHost || isFill(def) || given.contains(def) ||
                      (looksUp && (isOfWeight || ofPlaces_.contains(def)));
      }
      Value result = op->getResult(0);
      bool isScalar = isGiven && cast<RankedTensorType>(result.getType()).getRank() == 0;
      if (isGiven)
        given.insert(op);
      if (isView)
        views_.insert(op);
      if (isOfPlaces)
        ofPlaces_.insert(op);
      bool isAnew = isScalar || isView || (isOfPlaces && hasPairs(result));
      (isAnew ? anew : isGiven ? tables : operators).push_back(op);
    }
  }

  /// What follows from constants and host scalars alone.
  llvm::DenseSet<Operation *> given;
  /// Scalars that are given, views of weights, and what is made for each row and column of their
  /// numbers, such as masks and biases: all of these are computed where they are read, and every
  /// piece makes its own.
  SmallVector<Operation *> anew;
  /// Other tensors that are given, such as the sines of positions.
  SmallVector<Operation *> tables;
  /// All else: what is cut.
  SmallVector<Operation *> operators;

private:
  llvm::DenseSet<Operation *> views_;
  llvm::DenseSet<Operation *> ofPlaces_; ///< computed where it is read, of what is given or weights
};

/// What a stretch of operators looks like: equal for those that become equal blocks.
class Looks {
public:
  Looks(ArrayRef<Operation *> operators, const llvm::DenseMap<Operation *, unsigned> &number,
        const llvm::DenseSet<Operation *> &given)
      : operators_(operators), number_(number), given_(given) {}

  size_t of(unsigned begin, unsigned length) {
    llvm::hash_code look = llvm::hash_value(length);
    llvm::DenseMap<Value, unsigned> outside; // in the order in which they are first read
    for (unsigned i = begin, end = begin + length; i < end; ++i) {
      Operation *op = operators_[i];
      look = llvm::hash_combine(look, lookOf(op));
      for (Value operand : op->getOperands()) {
        auto it = number_.find(operand.getDefiningOp());
        if (it != number_.end() && it->second >= begin)
          look = llvm::hash_combine(look, it->second - begin,
                                    cast<OpResult>(operand).getResultNumber());
        else if (std::optional<llvm::hash_code> made = lookOfMade(operand))
          look = llvm::hash_combine(look, *made);
        else
          look = llvm::hash_combine(
              look, operand.getType(),
              outside.try_emplace(operand, static_cast<unsigned>(outside.size())).first->second,
              isa_and_nonnull<ir::ParamRefOp>(operand.getDefiningOp()));
      }
    }
    return look;
  }

private:
  static llvm::hash_code lookOf(Operation *op) {
    llvm::hash_code look = llvm::hash_combine(op->getName(), op->getAttrDictionary());
    for (Type type : op->getResultTypes())
      look = llvm::hash_combine(look, type);
    return look;
  }

  /// Of constants, which each piece makes for itself.
  std::optional<llvm::hash_code> lookOfMade(Value value) const {
    Operation *def = value.getDefiningOp();
    if (!def || !(isFill(def) || given_.contains(def)) || def->getNumOperands() > 1)
      return std::nullopt;
    if (def->getNumOperands() == 0)
      return lookOf(def);
    auto constant = def->getOperand(0).getDefiningOp<arith::ConstantOp>();
    if (!constant)
      return std::nullopt;
    return llvm::hash_combine(lookOf(def), Attribute(constant.getValue()));
  }

  ArrayRef<Operation *> operators_;
  const llvm::DenseMap<Operation *, unsigned> &number_;
  const llvm::DenseSet<Operation *> &given_;
};

/// Finds the places at which a group is cut.
class Cuts {
public:
  explicit Cuts(const Parts &parts)
      : operators_(parts.operators), size_(static_cast<unsigned>(operators_.size())),
        looks_(operators_, number_, parts.given), places_(size_), looksAt_(size_) {
    for (auto [i, op] : llvm::enumerate(operators_))
      number_[op] = static_cast<unsigned>(i);
    ratePlaces();
    findRepeated();
  }

  /// The number of the first operator of every piece but the first.
  SmallVector<unsigned> find() {
    SmallVector<unsigned> cuts;
    unsigned begin = 0;
    while (std::optional<unsigned> end = endOfPiece(begin)) {
      size_t look = looks_.of(begin, *end - begin);
      if (++equal_[look] == 1)
        pieces_[*end - begin].push_back(look);
      cuts.push_back(*end);
      begin = *end;
    }
    return cuts;
  }

private:
  /// The place in front of an operator.
  struct Place {
    /// A cut would keep a sum of products from going on.
    bool isForbidden = false;
    /// A tensor goes on that the kernel would keep in registers.
    bool opens = false;
    /// 0 if one tensor goes on and no more, else those of the last operators that do, and 1. What
    /// was made long before is stored already, so layers look alike whatever passes them by.
    unsigned cost = 0;
    /// How many places look like it.
    unsigned alike = 1;

    bool isGood() const { return !isForbidden && !opens; }
    auto rank() const { return std::tuple(isForbidden, opens, cost); }
  };

  //===--- Places ------------------------------------------------------------===//

  void ratePlaces() {
    struct Going {
      Value value;
      unsigned made, last;
    };
    SmallVector<Going> going; // of the last operators
    std::vector<unsigned> ends(size_);
    unsigned live = 0;
    for (unsigned i = 0; i + 1 < size_; ++i) {
      live -= ends[i];
      llvm::erase_if(
          going, [&](const Going &each) { return each.last <= i || each.made + kLongGroup < i; });
      for (Value result : operators_[i]->getResults())
        if (unsigned last = lastReader(result); last > i) {
          ++live;
          ++ends[last];
          going.push_back({result, i, last});
        }
      Place &place = places_[i + 1];
      for (const Going &each : going) {
        place.isForbidden |= isSummedOn(each.value);
        place.opens |= goesOnInRegisters(each.value);
        place.cost += !isReadElsewhere(each.value);
      }
      if (live == 1)
        place.cost = 0;
      else
        ++place.cost;
    }
  }

  /// Places from which on the program looks alike are as good as most of them are: of a stack of
  /// layers the first and the last may differ.
  void findRepeated() {
    std::map<size_t, SmallVector<unsigned>> alike;
    for (unsigned i = 0; i + kShortestPiece <= size_; ++i) {
      looksAt_[i] = looks_.of(i, kShortestPiece);
      if (places_[i].isGood())
        alike[looksAt_[i]].push_back(i);
    }
    for (auto &[look, numbers] : alike) {
      SmallVector<unsigned> costs;
      for (unsigned i : numbers)
        if (i)
          costs.push_back(places_[i].cost);
      if (costs.empty())
        continue;
      llvm::sort(costs);
      for (unsigned i : numbers) {
        places_[i].cost = costs[costs.size() / 2];
        places_[i].alike = static_cast<unsigned>(numbers.size());
      }
    }
  }

  unsigned lastReader(Value value) const {
    unsigned last = 0;
    for (Operation *user : value.getUsers())
      if (auto it = number_.find(user); it != number_.end())
        last = std::max(last, it->second);
    return last;
  }

  /// Whether others than the group read it: it is stored whether the group is cut or not.
  bool isReadElsewhere(Value value) const {
    return llvm::any_of(value.getUsers(), [&](Operation *user) { return !number_.contains(user); });
  }

  /// Whether it may be part of a sum of products that goes on after it: one chain, whose bits
  /// depend on where it begins.
  static bool isSummedOn(Value value) {
    auto isAddition = [](Operation *op) {
      auto *rule = batchRule<ops::Elementwise>(op);
      return rule && rule->addition;
    };
    Operation *made = value.getDefiningOp();
    return value.hasOneUse() && (batchRule<ops::Product>(made) || isAddition(made)) &&
           isAddition(*value.getUsers().begin());
  }

  /// Whether the kernel of what makes a tensor is to do what follows, too, without storing it: its
  /// sum with a bias, an activation.
  bool goesOnInRegisters(Value value) {
    auto [it, isNew] = inRegisters_.try_emplace(value, false);
    if (!isNew)
      return it->second;
    Operation *made = value.getDefiningOp();
    bool result = (batchRule<ops::Product>(made) || isComputedWhereRead(made)) &&
                  llvm::all_of(value.getUsers(), isComputedWhereRead) && !isReadAgain(value);
    return inRegisters_[value] = result;
  }

  /// Whether a tensor meets something again that a product or reduction made of it, as the input of
  /// a norm or what goes past a layer does, or is read much later: it is in memory then.
  bool isReadAgain(Value value) const {
    unsigned next = number_.lookup(value.getDefiningOp()) + 1, last = lastReader(value);
    if (last > next + kLongGroup)
      return true;
    llvm::DenseSet<Value> made{value}, reduced;
    for (unsigned i = next; i <= last; ++i) {
      Operation *op = operators_[i];
      bool takes = false, takesReduced = false, takesValue = false;
      for (Value operand : op->getOperands()) {
        takesValue |= operand == value;
        takes |= made.contains(operand);
        takesReduced |= reduced.contains(operand);
      }
      if (takesValue && takesReduced)
        return true;
      if (takes || takesReduced)
        for (Value result : op->getResults())
          (takesReduced || !isComputedWhereRead(op) ? reduced : made).insert(result);
    }
    return false;
  }

  //===--- Pieces ------------------------------------------------------------===//

  std::optional<unsigned> endOfPiece(unsigned begin) {
    if (begin + kShortestPiece > size_)
      return std::nullopt;
    std::optional<unsigned> end = endOfLayers(begin);
    // What an earlier piece was is not taken apart again.
    if (std::optional<unsigned> known = endOfKnown(begin);
        known && (!end || *end <= *known || *end >= *known + kShortestPiece))
      end = known;
    return end ? end : endOfOther(begin);
  }

  /// Where the longest earlier piece would end that looks like what begins here.
  std::optional<unsigned> endOfKnown(unsigned begin) {
    for (auto &[length, looks] : llvm::reverse(pieces_)) {
      unsigned end = begin + length;
      // What follows the last layer may be more of the same kernel: it is not worth another
      // layer's.
      if (end >= size_ || places_[end].isForbidden)
        continue;
      size_t look = looks_.of(begin, length);
      if (llvm::is_contained(looks, look) &&
          (size_ - end >= kShortestPiece || equal_[look] + 1 >= kManyPieces))
        return end;
    }
    return std::nullopt;
  }

  /// Where there are many equal layers: at the first of them, or as many of them further on as
  /// make a piece.
  std::optional<unsigned> endOfLayers(unsigned begin) {
    std::optional<unsigned> best, other;
    auto take = [&](std::optional<unsigned> &best, unsigned i) {
      if (!best || places_[i].cost < places_[*best].cost)
        best = i;
    };
    unsigned limit = std::min(begin + kLongestPiece, size_);
    for (unsigned i = begin; i < limit; ++i)
      if (places_[i].isGood() && places_[i].alike >= kManyPieces) {
        take(best, i);
        if (i >= begin + kShortestPiece)
          take(other, i);
      }
    if (best != begin)
      return best;
    for (unsigned i = begin + kShortestPiece; i < limit; ++i)
      if (places_[i].isGood() && looksAt_[i] == looksAt_[begin])
        return i;
    return limit < size_ ? other : std::nullopt;
  }

  /// The first place where one tensor goes on; where there is none for long (layers that all read
  /// what an encoder gave, that carry two states, or whose states are all used at the end), the one
  /// where the fewest do.
  std::optional<unsigned> endOfOther(unsigned begin) {
    bool hasProduct = false;
    unsigned best = 0;
    for (unsigned i = begin + 1; i + kShortestPiece <= size_; ++i) {
      hasProduct |= batchRule<ops::Product>(operators_[i - 1]) != nullptr;
      if (i < begin + kShortestPiece)
        continue;
      const Place &place = places_[i];
      if (place.isGood() && place.cost == 0 && hasProduct)
        return i;
      // Where the only reason is its length, a piece is long.
      if (!place.isForbidden && (!best || place.rank() < places_[best].rank() ||
                                 (place.rank() == places_[best].rank() && place.opens)))
        best = i;
      if (best && i >= begin + kLongestPiece)
        return best;
    }
    return std::nullopt;
  }

  ArrayRef<Operation *> operators_;
  unsigned size_;
  llvm::DenseMap<Operation *, unsigned> number_;
  Looks looks_;
  std::vector<Place> places_;
  std::vector<size_t> looksAt_; ///< of as many operators as the shortest piece has
  llvm::DenseMap<Value, bool> inRegisters_;
  std::map<unsigned, SmallVector<size_t>> pieces_; ///< what they look like, by their length
  std::map<size_t, unsigned> equal_;               ///< how many pieces look so
};

/// Puts the pieces together.
class Placement {
public:
  explicit Placement(const Parts &parts)
      : parts_(parts), anew_(parts.anew.begin(), parts.anew.end()),
        unplaced_(parts.anew.begin(), parts.anew.end()) {
    unplaced_.insert(parts.tables.begin(), parts.tables.end());
  }

  std::vector<Group> place(ArrayRef<unsigned> cuts) {
    // Of many pieces none is to be different for what it makes for the others.
    if (cuts.size() + 1 >= kManyPieces) {
      beginPiece();
      for (Operation *table : sharedTables(cuts))
        place(table);
    }
    if (pieces_.empty() || !pieces_.back().empty())
      beginPiece();
    for (auto [i, op] : llvm::enumerate(parts_.operators)) {
      if (!cuts.empty() && i == cuts.front()) {
        cuts = cuts.drop_front();
        beginPiece();
      }
      place(op);
    }
    // Those that only others than the group read.
    while (!unplaced_.empty())
      place(unplaced_.front());
    return std::move(pieces_);
  }

private:
  void beginPiece() {
    pieces_.emplace_back();
    here_.clear();
  }

  /// Those that more than one piece reads.
  SmallVector<Operation *> sharedTables(ArrayRef<unsigned> cuts) const {
    llvm::DenseMap<Operation *, unsigned> pieceOf; // from 1; 0 is several
    for (auto [i, op] : llvm::enumerate(parts_.operators))
      pieceOf[op] = static_cast<unsigned>(llvm::upper_bound(cuts, i) - cuts.begin()) + 1;
    SmallVector<Operation *> shared;
    for (Operation *table : llvm::reverse(parts_.tables)) {
      std::optional<unsigned> piece;
      for (Operation *user : table->getUsers()) {
        unsigned ofUser = pieceOf.lookup(user);
        piece = !piece || *piece == ofUser ? ofUser : 0;
      }
      pieceOf[table] = piece.value_or(0);
      if (pieceOf[table] == 0)
        shared.push_back(table);
    }
    std::reverse(shared.begin(), shared.end());
    return shared;
  }

  /// Puts an operator into the last piece, after what it needs of what stands before its first
  /// reader, so that equal pieces look alike.
  void place(Operation *op) {
    Group &piece = pieces_.back();
    unplaced_.remove(op);
    if (anew_.contains(op))
      here_[op] = op;
    SmallVector<Operation *> work{op};
    while (!work.empty()) {
      Operation *reader = work.back(), *missing = nullptr;
      for (OpOperand &operand : reader->getOpOperands()) {
        Operation *def = operand.get().getDefiningOp();
        if (Operation *here = here_.lookup(def))
          operand.set(here->getResult(cast<OpResult>(operand.get()).getResultNumber()));
        else if (unplaced_.contains(def) || anew_.contains(def))
          missing = def;
      }
      if (!missing) {
        piece.push_back(reader);
        work.pop_back();
        continue;
      }
      Operation *made = missing;
      if (unplaced_.remove(missing))
        made->moveBefore(op);
      else
        made = OpBuilder(op).clone(*missing);
      if (anew_.contains(missing))
        here_[missing] = made;
      work.push_back(made);
    }
  }

  const Parts &parts_;
  llvm::DenseSet<Operation *> anew_;
  llvm::SetVector<Operation *> unplaced_;
  std::vector<Group> pieces_;
  llvm::DenseMap<Operation *, Operation *> here_; ///< those of the piece
};

} // namespace

std::vector<Group> splitGroup(const Group &group) {
  Parts parts(group);
  SmallVector<unsigned> cuts = Cuts(parts).find();
  if (cuts.empty())
    return {group};
  return Placement(parts).place(cuts);
}

} // namespace sheaf::passes
