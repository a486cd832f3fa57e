//===- Config.h - What a model takes from a config.json ---------*- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_CONFIG_H
#define SHEAF_COMPILER_DRIVER_CONFIG_H

#include "compiler/driver/Compiler.h"
#include "compiler/frontend/AST.h"
#include "compiler/frontend/Diagnostics.h"
#include "runtime/io/vocab.h"

namespace sheaf::driver {

/// Keeps the config.json for when the source is compiled, and gives the dims that the source takes
/// from it (`dim hidden = config "n_embd"`) the values that stand there, unless `options` have
/// others.
void bindConfig(const SourceFile &source, const io::ModelConfig &config, CompileOptions &options);

/// The dims that weights were made with, as their metadata tell.
struct StoredDims {
  std::map<std::string, int64_t> dims;
  std::string weights;         ///< their name
  std::string dimTerm = "dim"; ///< what the caller's users call one that they give
};

/// Gives the dims that the source declares the values that stand with the weights. Those of a
/// vocabulary that is given and has another size are left. Throws UserError where `options` have
/// other values.
void bindDims(const SourceFile &source, const StoredDims &stored, const io::Vocabularies &given,
              CompileOptions &options);

/// Gives the constants of a source that were made from a config.json (`let eps = config "eps" else
/// 1e-5`) the values of `options`, else those of its config.json, and holds its checks against
/// that. Reports what does not fit at the member that the source names. The constants' values.
std::map<std::string, double> takeConfig(Module &module, const CompileOptions &options,
                                         Diagnostics &diags);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_CONFIG_H
