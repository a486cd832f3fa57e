//===- ModelTypes.h - Types and parameters as the runtime sees them -*- C++ -*-===//
#ifndef SHEAF_COMPILER_MODEL_MODELTYPES_H
#define SHEAF_COMPILER_MODEL_MODELTYPES_H

#include "compiler/ir/Program.h"
#include "runtime/model/model.h"

#include "mlir/IR/BuiltinOps.h"

namespace sheaf::host {

/// rt::RootDesc, with a type of the Program.
struct Root {
  rt::RootDesc::Kind kind;
  mlir::Type type;
  bool operator==(const Root &) const = default;
};

/// The types that the entry function's arguments and result are made of, and the entry itself
/// (without code). Argument names come from the argument attribute `sheaf.name`; names of extents
/// from `sheaf.dims`, an array with one string for each extent of each tensor in the type, in
/// order of appearance (data types excluded). `sheaf.lengths` has one for each list: how many
/// elements it has, `?` for any number; of the fields of a data type, its declaration has one. The
/// key of an entry that draws is not among
/// the arguments. A function of several results gives a tuple.
struct ModelTypes {
  rt::TypeTable types;
  rt::EntryDesc entry;
};
ModelTypes describeEntry(mlir::ModuleOp program, llvm::StringRef entry);

/// The roots of places of host code; adds their types to `types`.
std::vector<std::vector<rt::RootDesc>> describeRoots(mlir::ModuleOp program,
                                                     llvm::ArrayRef<std::vector<Root>> places,
                                                     rt::TypeTable &types);

/// Every `sheaf.param`, in order, with its place in the row space. Throws UserError when they need
/// more rows than ids can name.
struct ParamLayout {
  std::vector<rt::ParamDesc> params;
  uint32_t granules = 0;
};
ParamLayout layoutParams(mlir::ModuleOp program);

/// The runtime's element type of a tensor.
rt::DType runtimeDType(mlir::RankedTensorType type);

} // namespace sheaf::host

#endif // SHEAF_COMPILER_MODEL_MODELTYPES_H
