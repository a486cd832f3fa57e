//===- SizeLists.cpp - Lists, with bounds -----------------------------===//

#include "compiler/analysis/OpQueries.h"
#include "compiler/analysis/SizeWalk.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// Of each element of a list: room for so many more, which the first list that goes on with its
/// piece has.
constexpr int kLater = 2;

} // namespace

int SizeWalk::later() const { return mayChain_ ? kLater : 0; }

bool SizeWalk::visitLists(Operation *op) {
  bool known = true;
  Type type = op->getNumResults() == 1 ? op->getResult(0).getType() : Type();
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](ir::ListMakeOp make) {
        SizeValue list;
        list.kind = SizeValue::List;
        list.parts = of(make.getElements());
        list.number = SizeNumber::exactly(static_cast<int64_t>(list.parts.size()));
        list.isWhole = list.parts.size() <= kMostElements;
        if (!list.isWhole) {
          SizeValue element = withoutWays(*elementOf(list));
          list.parts.assign(1, std::move(element));
        }
        madeList(type, list.number.most);
        set(op->getResult(0), std::move(list));
      })
      .Case([&](ir::ConsOp cons) {
        // A branch has room for four more.
        heap(Bound(2) * listBytes(type, Bound(5 + kLater)));
        grow(op, of(cons.getTail()), of(cons.getHead()), true);
      })
      .Case([&](ir::AppendOp append) {
        const SizeValue &init = of(append.getInit());
        appended(op, init.number.most);
        grow(op, init, of(append.getLast()), false);
      })
      .Case([&](ir::ListConcatOp concat) {
        const SizeValue &a = of(concat.getLhs()), &b = of(concat.getRhs());
        SizeValue list;
        list.kind = SizeValue::List;
        list.number = sum(a.number, b.number);
        list.isWhole = a.isWhole && b.isWhole && a.parts.size() + b.parts.size() <= kMostElements;
        list.parts = a.parts;
        list.parts.insert(list.parts.end(), b.parts.begin(), b.parts.end());
        if (!list.isWhole) {
          list.sums = a.sums;
          for (const auto &[symbol, all] : b.sums)
            list.sums[symbol] += all;
          std::optional<SizeValue> element = elementOf(list);
          list.parts.clear();
          if (element)
            list.parts.push_back(withoutWays(std::move(*element)));
        }
        // With room as it grows: the longer one is copied, or the first with what goes on with the
        // other.
        list.inPieces = mayChain_;
        const Bound &copied = mayChain_ ? a.number.most : list.number.most;
        heap(Bound(2) * listBytes(type, Bound(3 + 2 * later()) * copied + Bound(8)));
        set(op->getResult(0), std::move(list));
      })
      .Case([&](ir::LenOp len) {
        set(op->getResult(0), numberValue(SizeNumber(of(len.getList()).number)));
      })
      .Case([&](ir::ListGetOp get) {
        const SizeValue &list = of(get.getList());
        std::optional<int64_t> index = of(get.getIndex()).number.exact();
        if (list.isWhole && index && static_cast<size_t>(*index) < list.parts.size())
          set(op->getResult(0), SizeValue(list.parts[static_cast<size_t>(*index)]));
        else
          set(op->getResult(0), largestElement(list));
      })
      .Case([&](ir::ListSliceOp slice) {
        SizeValue list = of(slice.getList());
        const SizeNumber &lo = of(slice.getLo()).number, &hi = of(slice.getHi()).number;
        heap(Bound(kListBytes));
        list.joinCounted = false;
        if (list.isWhole && lo.exact() && hi.exact() && *lo.exact() <= *hi.exact() &&
            static_cast<size_t>(*hi.exact()) <= list.parts.size()) {
          list.parts.assign(list.parts.begin() + *lo.exact(), list.parts.begin() + *hi.exact());
          list.number = SizeNumber::exactly(static_cast<int64_t>(list.parts.size()));
        } else {
          std::optional<SizeValue> element = elementOf(list);
          if (list.isWhole) {
            list.parts.clear();
            if (element)
              list.parts.push_back(withoutWays(std::move(*element)));
          }
          bool isTail = lo.least >= 1;
          list.isWhole = list.parts.empty();
          // To the end of the list: as many less as there are before.
          int64_t least =
              reachesEnd(slice) && lo.exact() ? leastSum(list.number.least, -*lo.exact()) : 0;
          list.number = {std::max<int64_t>(least, 0),
                         list.number.most.less(isTail ? static_cast<double>(lo.least) : 0)};
          if (std::optional<int64_t> end = hi.exact(); end && *end < symbols_.mostOf(list.number))
            list.number.most = Bound(static_cast<double>(*end));
          if (list.way)
            list.way = isTail ? std::optional(*list.way + "t;") : std::nullopt;
        }
        set(op->getResult(0), std::move(list));
      })
      .Case([&](ir::ReverseOp reverse) {
        SizeValue list = of(reverse.getList());
        list.way.reset();
        list.inPieces = false;
        std::reverse(list.parts.begin(), list.parts.end());
        madeList(type, list.number.most);
        set(op->getResult(0), std::move(list));
      })
      .Case([&](ir::ZipOp zip) {
        SizeValue list;
        list.kind = SizeValue::List;
        Values lists = of(zip.getLists());
        bool first = true;
        size_t elements = 1;
        list.isWhole = true;
        for (const SizeValue &part : lists) {
          // All have as many elements, or the instance ends.
          if (first || symbols_.mostOf(part.number) < symbols_.mostOf(list.number))
            list.number.most = part.number.most;
          list.number.least = std::max(first ? 0 : list.number.least, part.number.least);
          first = false;
          for (const auto &[symbol, all] : part.sums)
            list.sums[symbol] = Bound::max(list.sums[symbol], all);
          list.isWhole &= part.isWhole && part.parts.size() == lists.front().parts.size();
          if (part.parts.empty())
            list.number = SizeNumber::exactly(0);
        }
        if (lists.empty() || list.number.exact() == 0) {
          list.number = SizeNumber::exactly(0);
          list.isWhole = true;
          elements = 0;
        } else if (list.isWhole) {
          elements = lists.front().parts.size();
        }
        for (size_t i = 0; i < elements; ++i) {
          SizeValue &tuple = list.parts.emplace_back();
          tuple.kind = SizeValue::Tuple;
          for (const SizeValue &part : lists)
            tuple.parts.push_back(list.isWhole ? part.parts[i] : *elementOf(part));
        }
        madeList(type, list.number.most);
        set(op->getResult(0), std::move(list));
      })
      .Case([&](ir::RangeOp range) {
        const SizeNumber &lo = of(range.getLo()).number, &hi = of(range.getHi()).number;
        SizeValue list;
        list.kind = SizeValue::List;
        std::optional<int64_t> begin = lo.exact(), end = hi.exact();
        if (begin && end &&
            std::max(*begin, *end) - *begin <= static_cast<int64_t>(kMostElements)) {
          for (int64_t i = *begin; i < *end; ++i)
            list.parts.push_back(numberValue(i));
          list.number = SizeNumber::exactly(static_cast<int64_t>(list.parts.size()));
          list.isWhole = true;
        } else {
          double from = static_cast<double>(lo.least);
          list.number.least = 0;
          if (lo.least < INT32_MIN)
            list.number.most =
                Bound::symbol(symbols_.unknown(op->getLoc(), "the length of a range"));
          else
            list.number.most = from >= 0 ? hi.most.less(from) : hi.most + Bound(-from);
          if (begin && end)
            list.number.least = std::max<int64_t>(0, *end - *begin);
          list.parts.push_back(numberValue({lo.least, hi.most}));
        }
        madeList(type, list.number.most);
        set(op->getResult(0), std::move(list));
      })
      .Case([&](ir::RowsOp rows) {
        SizeValue row = of(rows.getTensor());
        SizeValue list;
        list.kind = SizeValue::List;
        list.number = row.dims.front();
        row.dims.erase(row.dims.begin());
        list.parts.push_back(std::move(row));
        madeList(type, list.number.most);
        set(op->getResult(0), std::move(list));
      })
      .Case([&](ir::MapOp map) { visitMap(map); })
      .Case([&](ir::FilterOp filter) { visitFilter(filter); })
      .Case<ir::FoldOp, ir::ScanOp>([&](Operation *loop) { visitFold(loop); })
      .Default([&](Operation *) { known = false; });
  return known;
}

//===----------------------------------------------------------------------===//
// What lists take
//===----------------------------------------------------------------------===//

/// A new list. Each of its elements has room for more that go on with it.
void SizeWalk::madeList(Type list, const Bound &length) {
  heap(listBytes(list, Bound(1 + later()) * length));
}

/// An element is added at the end, where there may be room; else all are copied, with room for as
/// many.
void SizeWalk::appended(Operation *op, const Bound &length) {
  Type type = op->getResult(0).getType();
  if (MemoryUseBound::AllTurns *all = allTurnsFor(op)) {
    heap(Bound(2) * listBytes(type, Bound(3)));
    all->heapBytes += Bound(2) * listBytes(type, Bound(5 + later()) * length + Bound(12));
  } else {
    heap(Bound(kListBytes) + Bound(2) * listBytes(type, Bound(2 + later()) * length + Bound(5)));
  }
}

bool SizeWalk::readsElements(OpOperand &use) {
  Operation *user = use.getOwner();
  unsigned number = use.getOperandNumber();
  // It is a part of something else, goes on with what is before it, or is given to others.
  if (isa<ir::ConsOp, ir::LenOp, ir::TupleOp, ir::ListMakeOp, ir::YieldOp, scf::YieldOp,
          func::ReturnOp>(user))
    return false;
  if (isa<ir::AppendOp, ir::ListConcatOp>(user))
    return number == 0;
  if (auto construct = dyn_cast<ir::ConstructOp>(user))
    return isRecursive(cast<ir::DataType>(construct.getType()), module_);
  if (auto get = dyn_cast<ir::ListGetOp>(user))
    return !matchPattern(get.getIndex(), m_Zero());
  if (auto slice = dyn_cast<ir::ListSliceOp>(user))
    return !reachesEnd(slice);
  if (isa<ir::FoldOp, ir::ScanOp>(user) && number == 0)
    return !findJoins(user->getRegion(0).front().getArgument(0)).empty();
  if (auto call = dyn_cast<func::CallOp>(user)) {
    // Of what a recursion gives itself each call counts its own.
    func::FuncOp callee = calleeOf(call);
    return !graph_.sameCycle(callee, call->getParentOfType<func::FuncOp>()) &&
           !findJoins(callee.getArgument(number)).empty();
  }
  return true;
}

const llvm::SmallPtrSet<Block *, 2> &SizeWalk::findJoins(Value list) {
  auto [it, isNew] = joinsOf_.try_emplace(list);
  if (!isNew)
    return *it->second;
  it->second = std::make_unique<llvm::SmallPtrSet<Block *, 2>>();
  llvm::SmallPtrSet<Block *, 2> &blocks = *it->second;
  Region *home = list.getParentRegion();
  for (OpOperand &use : list.getUses()) {
    if (!readsElements(use))
      continue;
    // Once in the branch that reads it, but before all turns of a loop.
    Block *block = use.getOwner()->getBlock(), *at = block;
    for (; at->getParent() != home; at = at->getParentOp()->getBlock())
      if (!isa<scf::IfOp, ir::MatchOp>(at->getParentOp()))
        block = at->getParentOp()->getBlock();
    blocks.insert(block);
    joins_[block].insert(list);
  }
  return blocks;
}

void SizeWalk::countJoin(Value list, SizeValue &value) {
  if (value.kind != SizeValue::List || !value.inPieces || value.joinCounted)
    return;
  SizeValue itself = value;
  itself.parts.clear();
  heap(joinBytes(itself, list.getType()));
  value.joinCounted = true;
}

Bound SizeWalk::joinBytes(const SizeValue &value, Type type) {
  Bound bytes;
  if (auto list = dyn_cast<ir::ListType>(type); list && value.kind == SizeValue::List) {
    // With as much room at both ends.
    if (value.inPieces && !value.joinCounted)
      bytes += listBytes(type, Bound(3 + later()) * value.number.most);
    for (const SizeValue &part : value.parts) {
      Bound each = joinBytes(part, list.getElement());
      bytes += value.isWhole ? each : sumOf(each, value.number.most, value.sums, symbols_);
    }
  } else if (auto tuple = dyn_cast<TupleType>(type); tuple && value.kind == SizeValue::Tuple) {
    for (auto [part, field] : llvm::zip_equal(value.parts, tuple.getTypes()))
      bytes += joinBytes(part, field);
  } else if (auto data = dyn_cast<ir::DataType>(type); data && value.kind == SizeValue::Data) {
    auto declaration = symbolTable_.lookup<ir::DataOp>(data.getName().getAttr());
    for (auto [fields, ctor] :
         llvm::zip_equal(value.parts, declaration.getCtors().getAsRange<ir::CtorAttr>()))
      if (fields.kind == SizeValue::Tuple)
        for (auto [part, field] :
             llvm::zip_equal(fields.parts, ctor.getFieldTypes().getAsValueRange<TypeAttr>()))
          bytes += joinBytes(part, field);
  }
  return bytes;
}

/// One more element at one end.
void SizeWalk::grow(Operation *op, const SizeValue &list, const SizeValue &added, bool front) {
  SizeValue longer = list;
  longer.way.reset();
  longer.inPieces = front;
  longer.joinCounted = false;
  longer.number = sum(list.number, SizeNumber::exactly(1));
  if (list.isWhole && list.parts.size() < kMostElements) {
    longer.parts.insert(front ? longer.parts.begin() : longer.parts.end(), added);
  } else {
    longer.isWhole = false;
    std::optional<SizeValue> element = elementOf(list);
    longer.parts.assign(1, withoutWays(element ? joined(*element, added) : added));
  }
  set(op->getResult(0), std::move(longer));
}

} // namespace sheaf::passes
