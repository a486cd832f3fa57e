//===- Program.h - The Program dialect --------------------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_IR_PROGRAM_H
#define SHEAF_COMPILER_IR_PROGRAM_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "compiler/ir/ProgramDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/ir/ProgramTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/ir/ProgramAttrs.h.inc"

#define GET_OP_CLASSES
#include "compiler/ir/ProgramOps.h.inc"

namespace sheaf::ir {

/// What a `sheaf.apply` must be. The operators' records say it: ops::registerDialects brings it to
/// the dialect, and without it none is right.
class ApplyRules : public mlir::DialectInterface::Base<ApplyRules> {
public:
  using Base::Base;
  /// What is wrong; empty when nothing is.
  virtual std::string errorOf(ApplyOp apply) const = 0;
};

/// A tensor type's vocabulary, for token tensors: kept as the tensor's encoding, a StringAttr.
std::optional<llvm::StringRef> tokenVocab(mlir::RankedTensorType type);

/// Marks the first argument of an entry that draws: the key of the instance, which comes from the
/// session and not from the data.
inline constexpr llvm::StringLiteral kKeyAttr = "sheaf.key";

/// Marks a call that may run beside what follows it, and an `if` or `match` with such calls as
/// branches (passes::forkCallsPass).
inline constexpr llvm::StringLiteral kForkAttr = "sheaf.fork";

/// Marks a function that was made of a part of another, so that a call of it can be forked. What
/// calls itself through it counts one step and one frame, as in the program.
inline constexpr llvm::StringLiteral kOutlinedAttr = "sheaf.outlined";

/// On the function that computes what depends on weights alone: the parameters that its results are
/// the values of (passes::foldWeightsPass).
inline constexpr llvm::StringLiteral kFoldedAttr = "sheaf.folded";
/// On a record: what it makes was hoisted, and is taken by records alone that a `sheaf.joined`
/// comes after.
inline constexpr llvm::StringLiteral kHoistedAttr = "sheaf.hoisted";
/// On a record that a `sheaf.joined` comes after.
inline constexpr llvm::StringLiteral kInJoinedAttr = "sheaf.in_joined";
bool takesKey(mlir::Operation *function);

/// On an entry that emits: the type of what it emits.
inline constexpr llvm::StringLiteral kEmitsAttr = "sheaf.emits";
std::optional<mlir::Type> emittedType(mlir::Operation *function);

/// Where an operation stands in the source, `file:line:column`, and after it the calls by whose
/// inlining it came into its function (a CallSiteLoc says so), from the inside outwards. What is
/// not known is left out.
llvm::SmallVector<std::string, 2> pathOf(mlir::Location location);
/// In one text, by which places are told apart.
std::string pathText(llvm::ArrayRef<std::string> path);

/// A function as its file names it, `encoder.0.run` within a layer: its location is a NameLoc. One
/// that no file names is called by its symbol.
std::string nameOf(mlir::Operation *function);
/// The location of what came in by inlining a call: inlined functions are named with their calls.
mlir::Location inlinedAt(mlir::Location inner, mlir::Operation *callee, mlir::Location call);
/// The functions by whose inlining an operation came into its function, from the outside inwards.
llvm::SmallVector<std::string, 4> inlinedInto(mlir::Location location);

} // namespace sheaf::ir

#endif // SHEAF_COMPILER_IR_PROGRAM_H
