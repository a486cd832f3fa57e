//===- Verify.h - Operator records and MLIR types ---------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_OPS_VERIFY_H
#define SHEAF_COMPILER_OPS_VERIFY_H

#include "compiler/ops/Op.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectRegistry.h"

namespace sheaf::ops {

/// Registers every dialect that Programs and their lowerings use. `sheaf.apply` then verifies by
/// the records.
void registerDialects(mlir::DialectRegistry &registry);

/// Checks a `sheaf.apply` against the operator's record (the form is described in Build.h). Empty
/// when it is fine.
std::string verifyApply(llvm::StringRef op, mlir::TypeRange operands, mlir::DictionaryAttr attrs,
                        mlir::TypeRange results);

/// The type as shape rules see it; `?` becomes a fresh symbol. The type must be one that
/// `isOperandType` accepts.
OperandType operandType(mlir::Type type);
/// Tensors of the language's element types, i64, f64, i1, tokens, and lists of tensors.
bool isOperandType(mlir::Type type);
TensorType tensorType(mlir::RankedTensorType type);

/// A `sheaf.apply` taken apart: the operands that the record's shape rule and reference see, and
/// the compile-time arguments; extents that the result types show are Dims, those that come as
/// operands are fresh symbols.
struct ApplyParts {
  std::vector<OperandType> operands; ///< the leading operands, without extents
  Attrs attrs;
  /// Which operands of the apply are extents: the parameter's name for an Extent, and for Extents
  /// its name with the position in the list.
  struct ExtentOperand {
    std::string param;
    std::optional<size_t> position;
    size_t operand;
  };
  std::vector<ExtentOperand> extents;
};
/// Takes an apply apart; the error is as in `verifyApply`.
std::variant<ApplyParts, std::string> takeApart(const Op &op, mlir::TypeRange operands,
                                                mlir::DictionaryAttr attrs,
                                                mlir::TypeRange results);

/// Answers for types that have lost their names: extents differ only if proven to.
class LenientOracle : public DimOracle {
public:
  bool same(const Dim &a, const Dim &b) const override;
  std::optional<int64_t> value(const Dim &d) const override;
  std::optional<Dim> quotient(const Dim &a, const Dim &b) const override;
};

} // namespace sheaf::ops

#endif // SHEAF_COMPILER_OPS_VERIFY_H
