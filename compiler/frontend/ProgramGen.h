//===- ProgramGen.h - From typed trees to Programs --------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_FRONTEND_PROGRAMGEN_H
#define SHEAF_COMPILER_FRONTEND_PROGRAMGEN_H

#include "compiler/frontend/Checker.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace sheaf {

/// Makes the Program of a checked file: all that `entry` reaches, monomorphic, without closures and
/// layers, in the dialects sheaf, func, arith and scf. `checked.ok` must hold and every declared
/// dim have a value. Every op carries the place in the source it came from.
///
/// - `sheaf.param`: every param of the file and of every layer instance, in source order, named
///   `w` or `forward.w` or `encoder.3.w`, whether used or not.
/// - `sheaf.data`: every data type used, named by its source form with values, as `Rose<f32[256]>`.
/// - `func.func`: the entry is public and has the entry's name; all others are private. Its
///   arguments carry `sheaf.name` (the parameter's name, unless it is a pattern) and, like the
///   result, `sheaf.source_type` (the type as written) and, where an extent is per-instance,
///   `sheaf.dims` (one string for each extent of each tensor of the type that is not inside data,
///   in order). Where lists have lengths, arguments and the result carry `sheaf.lengths` (one
///   string for each list that is not inside data), and data types (one for each list in their
///   fields). The entry checks first that data have the extents that its types say have one name.
///   Functions that may draw have a key as their first argument; the entry's carries `sheaf.key`.
/// - The module has the attribute `sheaf.dims`: a dictionary from declared dims to values.
///
/// Operators that are for training only (dropout) are left out unless `training`.
///
/// Null if an error was reported.
mlir::OwningOpRef<mlir::ModuleOp> generateProgram(const CheckedModule &checked,
                                                  mlir::MLIRContext &context,
                                                  const std::string &entry, Diagnostics &diags,
                                                  bool training = false);

/// The same without bodies, for what the entry's type says: functions are not generated, and the
/// values of dims matter only where they stand in that type.
mlir::OwningOpRef<mlir::ModuleOp> generateSignature(const CheckedModule &checked,
                                                    mlir::MLIRContext &context,
                                                    const std::string &entry, Diagnostics &diags);

} // namespace sheaf

#endif // SHEAF_COMPILER_FRONTEND_PROGRAMGEN_H
