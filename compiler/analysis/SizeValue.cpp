//===- SizeValue.cpp - What is known of the sizes of a value --------------===//

#include "compiler/analysis/SizeValue.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace sheaf::passes {

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

std::string placeWithColumn(Location where) {
  SmallVector<std::string, 2> path = ir::pathOf(where);
  return path.empty() ? "?" : path.front();
}

unsigned SizeSymbols::add(SizeSymbol symbol) {
  all_.push_back(std::move(symbol));
  return static_cast<unsigned>(all_.size() - 1);
}

unsigned SizeSymbols::unknown(Location where, const std::string &what) {
  std::string place = placeWithColumn(where);
  auto [it, isNew] = byPlace_.try_emplace({place, what}, 0);
  if (isNew)
    it->second = add({SizeSymbol::Unknown, "", what, place});
  return it->second;
}

unsigned SizeSymbols::calls(const std::string &of, Location where) {
  // One for all types of a generic one.
  std::string function;
  int open = 0;
  for (char c : of) {
    open += c == '<';
    if (open == 0)
      function += c;
    open -= c == '>';
  }
  auto [it, isNew] = byPlace_.try_emplace({"", function}, 0);
  if (isNew)
    it->second = add({SizeSymbol::Calls, function + ".calls",
                      "how often '" + function + "' calls itself", placeWithColumn(where)});
  return it->second;
}

Bound SizeSymbols::asLength(const Bound &bound) {
  std::map<unsigned, Bound> lengths;
  for (const auto &[term, factor] : bound.terms())
    for (unsigned symbol : term) {
      if (all_[symbol].kind != SizeSymbol::Calls || lengths.contains(symbol))
        continue;
      auto [it, isNew] = byPlace_.try_emplace({"length", all_[symbol].name}, 0);
      if (isNew) {
        SizeSymbol length = all_[symbol];
        length.kind = SizeSymbol::Length;
        length.calls = symbol;
        it->second = add(std::move(length));
      }
      lengths[symbol] = Bound::symbol(it->second);
    }
  return bound.substitute([&](unsigned symbol) {
    auto it = lengths.find(symbol);
    return it == lengths.end() ? nullptr : &it->second;
  });
}

void SizeSymbols::addNames(unsigned symbol, const std::vector<std::string> &names) {
  llvm::append_range(all_[symbol].names, names);
}

std::optional<int64_t> SizeNumber::exact() const {
  if (least == INT64_MIN)
    return std::nullopt;
  std::optional<double> number = most.constant();
  if (!number || *number != static_cast<double>(std::max<int64_t>(least, 0)))
    return std::nullopt;
  // Of what is at most 0 only the least is known.
  return least >= 0 ? std::optional(least) : std::nullopt;
}

int64_t leastSum(int64_t a, int64_t b) {
  int64_t sum;
  if (a == INT64_MIN || b == INT64_MIN || __builtin_add_overflow(a, b, &sum))
    return INT64_MIN;
  return sum;
}

double SizeSymbols::most(unsigned symbol) const {
  const SizeSymbol &own = all_[symbol];
  double least = std::numeric_limits<double>::infinity();
  auto ask = [&](const std::string &name) {
    if (auto it = most_.find(name); !name.empty() && it != most_.end())
      least = std::min(least, it->second);
  };
  ask(own.name);
  llvm::for_each(own.names, ask);
  return least;
}

int64_t SizeSymbols::mostOf(const SizeNumber &number) const {
  double most = number.most.at([&](unsigned symbol) { return this->most(symbol); });
  return most < 9e18 ? static_cast<int64_t>(std::ceil(most)) : INT64_MAX;
}

SizeNumber sum(const SizeNumber &a, const SizeNumber &b) {
  return {leastSum(a.least, b.least), a.most + b.most};
}

Bound sumOf(const Bound &each, const Bound &count, const SizeSums &sums,
            const SizeSymbols &symbols) {
  Bound total;
  for (const auto &[term, coefficient] : each.terms()) {
    Bound product(coefficient);
    bool isSum = false;
    for (unsigned symbol : term) {
      auto sum = sums.find(symbol);
      isSum |= sum != sums.end() || symbols[symbol].kind == SizeSymbol::Calls;
      product = product * (sum == sums.end() ? Bound::symbol(symbol) : sum->second);
    }
    total += isSum ? product : product * count;
  }
  return total;
}

Bound largestOf(const Bound &each, const SizeSums &sums) {
  return each.substitute([&](unsigned symbol) {
    auto sum = sums.find(symbol);
    return sum == sums.end() ? nullptr : &sum->second;
  });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

bool operator==(const SizeValue &a, const SizeValue &b) {
  return a.kind == b.kind && a.number == b.number && a.dims == b.dims && a.isWhole == b.isWhole &&
         a.inPieces == b.inPieces && a.joinCounted == b.joinCounted && a.sums == b.sums &&
         a.tree == b.tree && a.way == b.way && a.parts == b.parts;
}

SizeValue numberValue(SizeNumber number) {
  SizeValue value;
  value.kind = SizeValue::Number;
  value.number = std::move(number);
  return value;
}

namespace {

ir::DataOp declarationOf(ir::DataType type, ModuleOp module) {
  return module.lookupSymbol<ir::DataOp>(type.getName().getAttr());
}

void dataIn(Type type, llvm::SetVector<Type> &found) {
  if (auto list = dyn_cast<ir::ListType>(type))
    dataIn(list.getElement(), found);
  else if (auto tuple = dyn_cast<TupleType>(type))
    for (Type field : tuple.getTypes())
      dataIn(field, found);
  else if (isa<ir::DataType>(type))
    found.insert(type);
}

SizeNumber unknownSize(SizeSymbols &symbols, Location where, const std::string &what) {
  return SizeNumber::upTo(Bound::symbol(symbols.unknown(where, what)));
}

SizeNumber joinNumbers(const SizeNumber &a, const SizeNumber &b) {
  return {std::min(a.least, b.least), Bound::max(a.most, b.most)};
}

SizeSums joinSums(const SizeSums &a, const SizeSums &b) {
  SizeSums sums = a;
  for (const auto &[symbol, sum] : b)
    sums[symbol] = Bound::max(sums[symbol], sum);
  return sums;
}

} // namespace

static bool holdsTensors(Type type, ModuleOp module, llvm::SetVector<Type> &seen) {
  if (isa<RankedTensorType>(type))
    return true;
  if (auto list = dyn_cast<ir::ListType>(type))
    return holdsTensors(list.getElement(), module, seen);
  if (auto tuple = dyn_cast<TupleType>(type))
    return llvm::any_of(tuple.getTypes(),
                        [&](Type field) { return holdsTensors(field, module, seen); });
  auto data = dyn_cast<ir::DataType>(type);
  if (!data || !seen.insert(type))
    return false;
  auto declaration = module.lookupSymbol<ir::DataOp>(data.getName().getAttr());
  for (auto ctor : declaration.getCtors().getAsRange<ir::CtorAttr>())
    for (Type field : ctor.getFieldTypes().getAsValueRange<TypeAttr>())
      if (holdsTensors(field, module, seen))
        return true;
  return false;
}

bool holdsTensors(Type type, ModuleOp module) {
  llvm::SetVector<Type> seen;
  return holdsTensors(type, module, seen);
}

bool isRecursive(ir::DataType type, ModuleOp module) {
  llvm::SetVector<Type> reached;
  auto addFields = [&](Type data) {
    for (auto ctor :
         declarationOf(cast<ir::DataType>(data), module).getCtors().getAsRange<ir::CtorAttr>())
      for (Type field : ctor.getFieldTypes().getAsValueRange<TypeAttr>())
        dataIn(field, reached);
  };
  addFields(type);
  for (size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] == type)
      return true;
    addFields(reached[i]);
  }
  return false;
}

SizeValue unknownValue(Type type, ModuleOp module, SizeSymbols &symbols, Location where,
                       const std::string &what) {
  SizeValue value;
  auto unknown = [&](Type part) { return unknownValue(part, module, symbols, where, what); };
  if (isa<IntegerType, ir::TokenType>(type)) {
    value.kind = SizeValue::Number;
    if (type.isInteger(1))
      value.number = {0, Bound(1)};
    else
      value.number = {isa<ir::TokenType>(type) ? 0 : INT64_MIN,
                      Bound::symbol(symbols.unknown(where, what))};
  } else if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    value.kind = SizeValue::Tensor;
    for (int64_t extent : tensor.getShape())
      value.dims.push_back(ShapedType::isDynamic(extent) ? unknownSize(symbols, where, what)
                                                         : SizeNumber::exactly(extent));
  } else if (auto list = dyn_cast<ir::ListType>(type)) {
    value.kind = SizeValue::List;
    value.inPieces = true;
    value.number = unknownSize(symbols, where, what);
    value.parts.push_back(unknown(list.getElement()));
  } else if (auto tuple = dyn_cast<TupleType>(type)) {
    value.kind = SizeValue::Tuple;
    for (Type field : tuple.getTypes())
      value.parts.push_back(unknown(field));
  } else if (auto data = dyn_cast<ir::DataType>(type)) {
    if (isRecursive(data, module)) {
      value.kind = SizeValue::Tree;
      return value;
    }
    value.kind = SizeValue::Data;
    for (auto ctor : declarationOf(data, module).getCtors().getAsRange<ir::CtorAttr>()) {
      SizeValue fields;
      fields.kind = SizeValue::Tuple;
      for (Type field : ctor.getFieldTypes().getAsValueRange<TypeAttr>())
        fields.parts.push_back(unknown(field));
      value.parts.push_back(std::move(fields));
    }
  }
  return value;
}

std::optional<SizeValue> elementOf(const SizeValue &list) {
  std::optional<SizeValue> element;
  for (const SizeValue &part : list.parts)
    element = element ? joined(*element, part) : part;
  // The same may be there twice.
  if (list.parts.size() > 1)
    element = withoutWays(std::move(*element));
  return element;
}

SizeValue joined(const SizeValue &a, const SizeValue &b) {
  if (a.kind == SizeValue::Never)
    return b;
  if (b.kind == SizeValue::Never || a == b)
    return a;
  SizeValue value;
  value.kind = a.kind;
  value.number = joinNumbers(a.number, b.number);
  if (a.way == b.way)
    value.way = a.way;
  switch (a.kind) {
  case SizeValue::Tensor:
    for (auto [x, y] : llvm::zip_equal(a.dims, b.dims))
      value.dims.push_back(joinNumbers(x, y));
    break;
  case SizeValue::List: {
    value.inPieces = a.inPieces || b.inPieces;
    value.joinCounted = (a.joinCounted || !a.inPieces) && (b.joinCounted || !b.inPieces);
    value.isWhole = a.isWhole && b.isWhole && a.parts.size() == b.parts.size();
    if (value.isWhole) {
      for (auto [x, y] : llvm::zip_equal(a.parts, b.parts))
        value.parts.push_back(joined(x, y));
      break;
    }
    value.sums = joinSums(a.sums, b.sums);
    std::optional<SizeValue> x = elementOf(a), y = elementOf(b);
    if (x && y)
      value.parts.push_back(joined(*x, *y));
    else if (x || y)
      value.parts.push_back(x ? *x : *y);
    else
      value.isWhole = true;
    break;
  }
  case SizeValue::Tuple:
  case SizeValue::Data:
    for (auto [x, y] : llvm::zip_equal(a.parts, b.parts))
      value.parts.push_back(joined(x, y));
    break;
  case SizeValue::Tree:
    if (a.tree == b.tree)
      value.tree = a.tree;
    break;
  default:
    break;
  }
  return value;
}

SizeValue mapBounds(const SizeValue &value, const std::function<Bound(const Bound &)> &map) {
  SizeValue result = value;
  auto number = [&](SizeNumber &n) { n.most = map(n.most); };
  number(result.number);
  for (SizeNumber &dim : result.dims)
    number(dim);
  for (SizeValue &part : result.parts)
    part = mapBounds(part, map);
  for (auto &[symbol, sum] : result.sums)
    sum = map(sum);
  if (value.tree) {
    auto tree = std::make_shared<SizeTree>(*value.tree);
    bool changed = false;
    auto change = [&](Bound &bound) {
      Bound next = map(bound);
      changed |= !(next == bound);
      bound = std::move(next);
    };
    for (auto &[kind, count] : tree->nodes)
      change(count);
    for (auto &[symbol, sum] : tree->sums)
      change(sum);
    if (changed)
      result.tree = std::move(tree);
  }
  return result;
}

SizeValue largestElement(const SizeValue &list) {
  std::optional<SizeValue> element = elementOf(list);
  if (!element) {
    SizeValue never;
    never.kind = SizeValue::Never;
    return never;
  }
  if (list.sums.empty())
    return *element;
  return mapBounds(*element, [&](const Bound &bound) { return largestOf(bound, list.sums); });
}

SizeValue withoutWays(SizeValue value) {
  value.way.reset();
  for (SizeValue &part : value.parts)
    part = withoutWays(std::move(part));
  return value;
}

SizeValue asType(SizeValue value, Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && value.kind == SizeValue::Tensor) {
    for (auto [dim, extent] : llvm::zip_equal(value.dims, tensor.getShape()))
      if (!ShapedType::isDynamic(extent))
        dim = SizeNumber::exactly(extent);
  }
  return value;
}

//===----------------------------------------------------------------------===//
// Widening
//===----------------------------------------------------------------------===//

namespace {

class Widening {
public:
  using Limit = std::function<Bound(const Bound &, const Bound &)>;
  explicit Widening(const Limit &limit) : limit_(limit) {}

  SizeValue of(const SizeValue &before, const SizeValue &next) {
    SizeValue value = joined(before, next);
    limit(before, value);
    return value;
  }

private:
  void limit(const SizeNumber &before, SizeNumber &number) {
    if (!number.most.isWithin(before.most))
      number.most = limit_(before.most, number.most);
    if (number.least < before.least)
      number.least = number.least >= 0 ? 0 : INT64_MIN;
  }

  void limit(const SizeValue &before, SizeValue &value) {
    if (before.kind != value.kind)
      return;
    limit(before.number, value.number);
    for (size_t i = 0; i < value.dims.size(); ++i)
      limit(before.dims[i], value.dims[i]);
    if (value.kind == SizeValue::List) {
      for (auto &[symbol, sum] : value.sums)
        if (auto it = before.sums.find(symbol);
            it == before.sums.end() || !sum.isWithin(it->second))
          sum = limit_(it == before.sums.end() ? Bound() : it->second, sum);
      if (value.isWhole != before.isWhole || value.parts.size() != before.parts.size()) {
        std::optional<SizeValue> a = elementOf(before), b = elementOf(value);
        value.isWhole = false;
        value.parts.clear();
        if (b)
          value.parts.push_back(std::move(*b));
        else
          value.isWhole = true;
        if (a && b)
          limit(*a, value.parts.front());
        return;
      }
    }
    for (size_t i = 0; i < value.parts.size(); ++i)
      limit(before.parts[i], value.parts[i]);
  }

  const Limit &limit_;
};

} // namespace

SizeValue widened(const SizeValue &before, const SizeValue &next,
                  const std::function<Bound(const Bound &, const Bound &)> &limit) {
  return Widening(limit).of(before, next);
}

} // namespace sheaf::passes
