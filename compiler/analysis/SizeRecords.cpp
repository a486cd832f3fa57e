//===- SizeRecords.cpp - What records take, with bounds ---------------===//

#include "compiler/analysis/SizeWalk.h"

#include "compiler/analysis/OpQueries.h"
#include "compiler/ops/Op.h"
#include "runtime/model/rooms.h"

using namespace mlir;

namespace sheaf::passes {
namespace {

/// The size that a word of a record stands for.
const SizeNumber *wordOf(const std::string &symbol, ArrayRef<SizeValue> args) {
  size_t dot = symbol.find('.'), argument = 0, axis = 0;
  if (StringRef(symbol).take_front(dot).getAsInteger(10, argument) || argument >= args.size())
    return nullptr;
  const SizeValue &value = args[argument];
  if (dot == std::string::npos)
    return value.kind == SizeValue::Number ? &value.number : nullptr;
  if (StringRef(symbol).drop_front(dot + 1).getAsInteger(10, axis))
    return nullptr;
  if (value.kind == SizeValue::List)
    return axis == 0 ? &value.number : nullptr;
  return value.kind == SizeValue::Tensor && axis < value.dims.size() ? &value.dims[axis] : nullptr;
}

} // namespace

/// With the padding of its rows.
Bound SizeWalk::tensorBytes(const RecordMemory::Tensor &tensor, ArrayRef<SizeValue> args,
                            Operation *op) {
  auto extentOf = [&](const Dim &dim) {
    Bound extent;
    double less = 0;
    for (const auto &[symbols, coefficient] : dim.terms()) {
      Bound factor(1), least(1);
      for (const std::string &symbol : symbols) {
        const SizeNumber *word = wordOf(symbol, args);
        factor = factor *
                 (word ? word->most : Bound::symbol(symbols_.unknown(op->getLoc(), "an extent")));
        least = least * Bound(word ? static_cast<double>(std::max<int64_t>(word->least, 0)) : 0);
      }
      if (coefficient > 0)
        extent += factor * Bound(static_cast<double>(coefficient));
      else
        less -= *least.constant() * static_cast<double>(coefficient);
    }
    return extent.less(less);
  };
  if (tensor.shape.empty())
    return Bound(kGranuleBytes);
  Bound row = extentOf(tensor.shape.back()) * Bound(static_cast<double>(tensor.elementBytes));
  row = rowBytes(row);
  for (const Dim &dim : llvm::drop_end(tensor.shape))
    row = row * extentOf(dim);
  return row;
}

void SizeWalk::record(unsigned kernel, ValueRange args, Operation *op, const Bound &count,
                      bool onlyScratch) {
  Values sizes = of(args);
  const RecordMemory &memory = kernels_.kernels[kernel];
  KernelUse &use = use_->kernels[kernel];
  use.records += count;
  Bound scratch;
  for (const RecordMemory::Tensor &tensor : memory.temporaries)
    scratch += tensorBytes(tensor, sizes, op);
  use.scratch = Bound::max(use.scratch, scratch);
  for (const SizeValue &value : sizes)
    if (value.kind == SizeValue::List) {
      use.tableBytes += rowBytes(value.number.most * Bound(4));
    }
  Bound rows;
  for (const RecordMemory::Tensor &tensor : memory.results) {
    rows += tensorBytes(tensor, sizes, op);
    use.exact &= llvm::all_of(tensor.shape, [](const Dim &dim) { return dim.isConstant(); });
  }
  use.largest = Bound::max(use.largest, rows);
  if (onlyScratch)
    return;
  use.rowBytes += rows;
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), memory.results)) {
    SizeValue value;
    value.kind = SizeValue::Tensor;
    auto type = cast<RankedTensorType>(result.getType());
    for (auto [axis, dim] : llvm::enumerate(type.getShape())) {
      if (!ShapedType::isDynamic(dim)) {
        value.dims.push_back(SizeNumber::exactly(dim));
        continue;
      }
      // The same sum as for its bytes, of one extent alone.
      const Dim &extent = tensor.shape[axis];
      if (std::optional<std::string> symbol = extent.asSymbol())
        if (const SizeNumber *word = wordOf(*symbol, sizes)) {
          SizeNumber number = *word;
          number.least = std::max<int64_t>(number.least, 0);
          value.dims.push_back(std::move(number));
          continue;
        }
      if (extent.isConstant()) {
        value.dims.push_back(SizeNumber::exactly(extent.constant()));
        continue;
      }
      RecordMemory::Tensor column{{extent, Dim(16)}, 4};
      value.dims.push_back(
          SizeNumber::upTo(tensorBytes(column, sizes, op) * Bound(1 / kGranuleBytes)));
    }
    set(result, std::move(value));
  }
}

void SizeWalk::visitApply(ir::ApplyOp apply) {
  Operation *op = apply;
  auto *address = batchRule<ops::HostAddress>(op);
  if (address && address->kind == ops::HostAddress::Row) {
    SizeValue row = of(apply.getOperand(0));
    row.dims.erase(row.dims.begin());
    set(op->getResult(0), std::move(row));
    return;
  }
  if (address && address->kind == ops::HostAddress::Part) {
    SizeValue part = of(apply.getOperand(0));
    bool isKnown = apply.getAttrs().contains("size");
    SizeNumber size =
        isKnown ? SizeNumber::exactly(apply.getAttrs().getAs<IntegerAttr>("size").getInt())
                : of(op->getOperands().back()).number;
    // It ends within the tensor.
    size.least = std::max<int64_t>(size.least, 0);
    part.dims.front() = smaller(size, part.dims.front());
    set(op->getResult(0), std::move(part));
    return;
  }
  if (takesList(op)) {
    SizeValue list = of(apply.getOperand(0)), element = largestElement(list);
    SizeValue stacked;
    stacked.kind = SizeValue::Tensor;
    auto rows = cast<RankedTensorType>(op->getAttrOfType<TypeAttr>("sheaf.rows").getValue());
    if (element.kind == SizeValue::Tensor)
      stacked.dims = element.dims;
    else
      stacked.dims.assign(static_cast<size_t>(rows.getRank() - 1), SizeNumber::exactly(0));
    stacked.dims.insert(stacked.dims.begin(), list.number);
    stacked.dims.resize(static_cast<size_t>(rows.getRank()), SizeNumber::exactly(1));
    stacked = asType(std::move(stacked), rows);
    // A record an element, and rows for all of them.
    unsigned kernel = kernels_.numberOf(op, "sheaf.copy");
    KernelUse &use = use_->kernels[kernel];
    use.records += list.number.most;
    RecordMemory::Tensor tensor;
    const RecordMemory::Tensor &one = kernels_.kernels[kernel].results.front();
    tensor.elementBytes = one.elementBytes;
    for (size_t axis = 0; axis < stacked.dims.size(); ++axis)
      tensor.shape.push_back(Dim::symbol("0." + std::to_string(axis)));
    Bound stackBytes = tensorBytes(tensor, stacked, op);
    use.rowBytes += stackBytes;
    use.largest = Bound::max(use.largest, stackBytes);
    use.exact = false;
    SizeValue result = stacked;
    if (op->hasAttr("sheaf.arrange")) {
      unsigned arrange = kernels_.numberOf(op, "sheaf.arrange");
      KernelUse &own = use_->kernels[arrange];
      own.records += Bound(1);
      Bound arranged;
      for (const RecordMemory::Tensor &made : kernels_.kernels[arrange].results)
        arranged += tensorBytes(made, stacked, op);
      own.rowBytes += arranged;
      own.largest = Bound::max(own.largest, arranged);
      own.exact = false;
      Bound scratch;
      for (const RecordMemory::Tensor &made : kernels_.kernels[arrange].temporaries)
        scratch += tensorBytes(made, stacked, op);
      own.scratch = Bound::max(own.scratch, scratch);
      result.dims.clear();
      for (const Dim &dim : kernels_.kernels[arrange].results.front().shape)
        result.dims.push_back(dim.isConstant() ? SizeNumber::exactly(dim.constant())
                                               : SizeNumber::upTo(Bound()));
      for (auto [dim, size] :
           llvm::zip(kernels_.kernels[arrange].results.front().shape, result.dims))
        if (std::optional<std::string> symbol = dim.asSymbol())
          size = stacked.dims[static_cast<size_t>(std::stoul(symbol->substr(2)))];
        else if (!dim.isConstant())
          size = unknown(IntegerType::get(op->getContext(), 64), op->getLoc(), "an extent").number;
    }
    set(op->getResult(0), std::move(result));
    return;
  }
  if (appendsRows(op)) {
    SizeValue longer = of(apply.getOperand(0)), rows = of(apply.getOperand(1));
    unsigned kernel = kernels_.numberOf(op, "sheaf.copy");
    use_->kernels[kernel].records += Bound(2);
    RecordMemory::Tensor tensor;
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    tensor.elementBytes =
        std::max<int64_t>(4, llvm::divideCeil(type.getElementType().getIntOrFloatBitWidth(), 8));
    if (type.getElementType().isF16() || type.getElementType().isBF16())
      tensor.elementBytes = 2;
    for (size_t axis = 0; axis < longer.dims.size(); ++axis)
      tensor.shape.push_back(Dim::symbol("0." + std::to_string(axis)));
    // Where there is no room after the rows they are copied, with room for as many again and for
    // 16 times those that come at least, up to a number (runtime/model/rooms.h).
    Bound whole = tensorBytes(tensor, longer, op), more = tensorBytes(tensor, rows, op);
    Bound room = smaller(SizeNumber::upTo(Bound(rt::kLeastRoom) * more),
                         SizeNumber::upTo(Bound(rt::kEnoughRoom * kGranuleBytes)))
                     .most;
    room += Bound(2) * (whole + more);
    if (MemoryUseBound::AllTurns *all = allTurnsFor(op)) {
      use_->grownBytes += Bound(4) * more;
      all->grownBytes += room;
    } else {
      use_->grownBytes += room;
    }
    longer.dims.front() = sum(longer.dims.front(), rows.dims.front());
    set(op->getResult(0), std::move(longer));
    return;
  }
  setUnknown(op, "what '" + apply.getOp().str() + "' gives");
}

} // namespace sheaf::passes
