//===- Gradients.cpp - Backward blocks as the runtime sees them -----------===//
#include "compiler/model/Gradients.h"

#include "compiler/ir/GradientBlock.h"
#include "compiler/kernels/plan/BlockShapes.h"
#include "compiler/ops/Build.h"
#include "runtime/model/error.h"

#include "llvm/ADT/BitVector.h"

namespace sheaf::host {
namespace {

using passes::GradientBlock;

/// Extents as numbers that follow from the words of a block's records.
class RecordWords {
public:
  /// Where the arguments of a block stand in its record.
  static std::vector<uint32_t> firstWords(ir::BlockOp block) {
    std::vector<uint32_t> first;
    uint32_t next = 0;
    for (mlir::Type type : argumentTypes(block)) {
      first.push_back(next);
      auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
      next += tensor ? 1 + static_cast<uint32_t>(tensor.getNumDynamicDims()) : 2;
    }
    return first;
  }
  static mlir::TypeRange argumentTypes(ir::BlockOp block) {
    return mlir::TypeRange(block.getBody().front().getArgumentTypes())
        .take_front(block.getNumArgs());
  }

  explicit RecordWords(ir::BlockOp block) : firstWords_(firstWords(block)) {
    // The symbols of BlockShapes.
    for (auto [i, type] : llvm::enumerate(argumentTypes(block))) {
      uint32_t word = firstWords_[i];
      std::string name = std::to_string(i);
      if (auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type)) {
        for (int64_t axis = 0; axis < tensor.getRank(); ++axis)
          if (tensor.isDynamicDim(axis))
            words_[name + "." + std::to_string(axis)] = ++word;
      } else {
        words_[name] = word;
      }
    }
  }

  uint32_t firstWord(int64_t argument) const { return firstWords_[argument]; }

  rt::WordSum sum(const Dim &dim) const {
    rt::WordSum sum;
    for (const auto &[symbols, coefficient] : dim.terms()) {
      rt::WordTerm term{coefficient, {}};
      for (const std::string &symbol : symbols) {
        auto it = words_.find(symbol);
        if (it == words_.end())
          throw InternalError("the extent " + dim.str() + " is not made of a record's words");
        term.words.push_back(it->second);
      }
      sum.push_back(std::move(term));
    }
    return sum;
  }

  rt::RecordTensor tensor(ops::DType dtype, const std::vector<Dim> &shape) const {
    rt::RecordTensor tensor{dtype, {}};
    for (const Dim &extent : shape)
      tensor.extents.push_back(sum(extent));
    return tensor;
  }

private:
  std::vector<uint32_t> firstWords_;
  std::map<std::string, uint32_t> words_;
};

/// The words of the forward record, and what the backward block's extents are in them.
class Words : public RecordWords {
public:
  Words(const kernels::Kernel &forward, const kernels::Kernel &backward,
        const GradientBlock &description)
      : RecordWords(forward.block), forward_(forward.block), shapes_(forward.block) {
    // Of the backward block the symbols are the extents of what its arguments are.
    ir::BlockOp block = backward.block;
    for (auto [i, source] : llvm::enumerate(description.arguments)) {
      std::string name = std::to_string(i);
      if (mlir::isa<mlir::RankedTensorType>(block.getBody().getArgument(i).getType()))
        for (auto [axis, extent] : llvm::enumerate(shapeOf(source)))
          meanings_[name + "." + std::to_string(axis)] = extent;
      else
        meanings_[name] = Dim::symbol(std::to_string(source.index));
    }
  }

  /// The extents of what the forward block has, over its symbols.
  std::vector<Dim> shapeOf(const GradientBlock::Source &source) const {
    mlir::Block &body = forward_.getBody().front();
    if (source.kind == GradientBlock::Source::Argument)
      return shapes_.of(body.getArgument(static_cast<unsigned>(source.index)));
    return shapes_.of(body.getTerminator()->getOperand(static_cast<unsigned>(source.index)));
  }

  /// An extent of the backward block over the forward block's symbols.
  Dim fromBackward(const Dim &dim) const {
    return dim.substitute([&](const std::string &name) -> std::optional<Dim> {
      auto it = meanings_.find(name);
      return it == meanings_.end() ? std::nullopt : std::optional(it->second);
    });
  }

private:
  mutable ir::BlockOp forward_;
  kernels::BlockShapes shapes_;
  std::map<std::string, Dim> meanings_;
};

ops::DType dtypeOf(mlir::Value value) {
  return *ops::dtypeOf(mlir::cast<mlir::RankedTensorType>(value.getType()).getElementType());
}

} // namespace

std::vector<rt::RecordTensor> recordResults(const kernels::Kernel &kernel) {
  RecordWords words(kernel.block);
  std::vector<rt::RecordTensor> results;
  for (const kernels::RecordBuffer &buffer : kernel.results)
    results.push_back(words.tensor(buffer.dtype, buffer.shape));
  return results;
}

std::vector<std::vector<uint32_t>> recordResultRows(const kernels::Kernel &kernel) {
  ir::BlockOp block = kernel.block;
  std::vector<uint32_t> firstWords = RecordWords::firstWords(block);
  llvm::DenseMap<mlir::Value, llvm::BitVector> arguments; // that a value follows from
  auto number = static_cast<unsigned>(firstWords.size());
  mlir::Block &body = block.getBody().front();
  for (unsigned i = 0; i < number; ++i)
    arguments.try_emplace(body.getArgument(i), number).first->second.set(i);
  for (mlir::Operation &op : body.without_terminator()) {
    llvm::BitVector all(number);
    for (mlir::Value operand : op.getOperands())
      if (auto it = arguments.find(operand); it != arguments.end())
        all |= it->second;
    for (mlir::Value result : op.getResults())
      arguments[result] = all;
  }
  std::vector<std::vector<uint32_t>> rows;
  for (mlir::Value result : body.getTerminator()->getOperands()) {
    std::vector<uint32_t> &words = rows.emplace_back();
    for (unsigned argument : arguments[result].set_bits())
      if (mlir::isa<mlir::RankedTensorType, ir::ListType>(body.getArgument(argument).getType()))
        words.push_back(firstWords[argument]);
  }
  return rows;
}

rt::KernelGradient describeGradient(const kernels::Kernel &forward, const kernels::Kernel &backward,
                                    llvm::ArrayRef<uint32_t> params) {
  using Source = GradientBlock::Source;
  ir::BlockOp forwardBlock = forward.block, block = backward.block;
  GradientBlock description = GradientBlock::fromAttribute(block->getAttr(passes::kBackwardAttr));
  Words words(forward, backward, description);
  mlir::Block &forwardBody = forwardBlock.getBody().front(), &body = block.getBody().front();
  rt::KernelGradient gradient;

  gradient.wanted.resize(forward.results.size());
  auto rowSource = [&](const Source &source) {
    auto index = static_cast<uint32_t>(source.index);
    switch (source.kind) {
    case Source::Argument:
      return rt::RowSource{rt::RowSource::Argument, words.firstWord(source.index)};
    case Source::Result:
      return rt::RowSource{rt::RowSource::Result, index};
    case Source::Gradient:
      gradient.wanted[index] = true;
      return rt::RowSource{rt::RowSource::Gradient, index};
    case Source::Output:
      return rt::RowSource{rt::RowSource::Output, index};
    }
    return rt::RowSource();
  };

  for (auto [i, source] : llvm::enumerate(description.arguments)) {
    auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(body.getArgument(i).getType());
    if (!tensor) {
      uint32_t first = words.firstWord(source.index);
      for (uint32_t word : {first, first + 1})
        gradient.words.push_back({rt::BackwardWord::Copy, {rt::RowSource::Argument, word}, {}});
      continue;
    }
    gradient.words.push_back({rt::BackwardWord::Row, rowSource(source), {}});
    for (auto [axis, extent] : llvm::enumerate(words.shapeOf(source)))
      if (tensor.isDynamicDim(axis))
        gradient.words.push_back({rt::BackwardWord::Extent, {}, words.sum(extent)});
  }
  auto tensorOf = [&](const kernels::RecordBuffer &buffer) {
    std::vector<Dim> shape;
    for (const Dim &extent : buffer.shape)
      shape.push_back(words.fromBackward(extent));
    return words.tensor(buffer.dtype, shape);
  };
  for (const kernels::RecordBuffer &buffer : backward.results)
    gradient.outputs.push_back(tensorOf(buffer));
  for (const kernels::RecordBuffer &buffer : backward.temporaries)
    gradient.temporaries.push_back(tensorOf(buffer));
  for (const GradientBlock::OfArgument &each : description.ofArguments) {
    mlir::Value argument = forwardBody.getArgument(static_cast<unsigned>(each.argument));
    gradient.arguments.push_back(
        {words.firstWord(each.argument),
         words.tensor(dtypeOf(argument), words.shapeOf({Source::Argument, each.argument})),
         rowSource(each.gradient)});
  }

  // The extents of what is at hand in the backward pass, over the forward block's symbols.
  auto shapeOf = [&](const Source &source) {
    if (source.kind != Source::Output)
      return words.shapeOf(source);
    std::vector<Dim> shape;
    for (const Dim &extent : backward.results[static_cast<size_t>(source.index)].shape)
      shape.push_back(words.fromBackward(extent));
    return shape;
  };
  for (const GradientBlock::OfWeight &each : description.ofWeights) {
    rt::WeightGradient weight;
    weight.kind = static_cast<rt::WeightGradient::Kind>(each.kind);
    weight.param = params[static_cast<size_t>(each.weight)];
    weight.right = rowSource(each.right);
    weight.rowBegin = each.rowBegin, weight.rowCount = each.rowCount;
    weight.columnBegin = each.columnBegin, weight.columnCount = each.columnCount;
    if (each.kind != GradientBlock::OfWeight::Whole) {
      weight.left = rowSource(each.left);
      // Product: rows of both; Scatter: one for each index.
      std::vector<Dim> shape = shapeOf(each.left);
      Dim rows = 1;
      size_t outer = shape.size() - (each.kind == GradientBlock::OfWeight::Product ? 1 : 0);
      for (size_t axis = 0; axis < outer; ++axis)
        rows = rows * shape[axis];
      weight.rows = words.sum(rows);
    }
    if (each.kind == GradientBlock::OfWeight::Scatter)
      weight.indexType =
          each.left.kind == Source::Argument
              ? dtypeOf(forwardBody.getArgument(static_cast<unsigned>(each.left.index)))
          : each.left.kind == Source::Result
              ? dtypeOf(
                    forwardBody.getTerminator()->getOperand(static_cast<unsigned>(each.left.index)))
              : backward.results[static_cast<size_t>(each.left.index)].dtype;
    gradient.weights.push_back(std::move(weight));
  }
  return gradient;
}

} // namespace sheaf::host
