//===- GradientBlock.h - What a backward block is ---------------*- C++ -*-===//
//
// A block with the attribute `sheaf.gradient` names the block that computes the gradients of its
// arguments and weights. That one has the same weights, and an attribute of its own,
// `sheaf.backward`, which says what its arguments are and where its results go. This is that
// attribute as data.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_COMPILER_IR_GRADIENTBLOCK_H
#define SHEAF_COMPILER_IR_GRADIENTBLOCK_H

#include "compiler/ir/Program.h"

namespace sheaf::passes {

constexpr llvm::StringLiteral kGradientAttr = "sheaf.gradient";
constexpr llvm::StringLiteral kBackwardAttr = "sheaf.backward";

struct GradientBlock {
  /// A value that the backward pass has at hand.
  struct Source {
    enum Kind {
      Argument, ///< of the forward block, by number
      Result,   ///< of the forward block
      Gradient, ///< of a result of the forward block
      Output    ///< of the backward block
    } kind = Argument;
    int64_t index = 0;
  };

  /// The gradient of an argument of the forward block.
  struct OfArgument {
    int64_t argument = 0;
    Source gradient;
  };

  /// A summand of the gradient of a weight, by its number among the weights. As rt::WeightGradient.
  struct OfWeight {
    enum Kind { Product, Whole, Scatter } kind = Product;
    int64_t weight = 0;
    Source left, right;
    int64_t rowBegin = 0, rowCount = 0, columnBegin = 0, columnCount = 0;
  };

  std::vector<Source> arguments; ///< of the backward block, in order
  std::vector<OfArgument> ofArguments;
  std::vector<OfWeight> ofWeights;

  /// The attribute of a backward block.
  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  static GradientBlock fromAttribute(mlir::Attribute attribute);
};

} // namespace sheaf::passes

#endif // SHEAF_COMPILER_IR_GRADIENTBLOCK_H
