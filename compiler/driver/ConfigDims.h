//===- ConfigDims.h - Dims that come with weights ---------------*- C++ -*-===//
#ifndef SHEAF_COMPILER_DRIVER_CONFIGDIMS_H
#define SHEAF_COMPILER_DRIVER_CONFIGDIMS_H

#include "compiler/driver/Compiler.h"
#include "runtime/io/model_config.h"

namespace sheaf::driver {

/// Gives the dims that the model takes from a config.json (`dim hidden = config "n_embd"`) the
/// values that stand there, unless `options` have others. Throws UserError for a member that is no
/// dim's value.
void bindConfigDims(const SourceFile &source, const io::ModelConfig &config,
                    CompileOptions &options);

} // namespace sheaf::driver

#endif // SHEAF_COMPILER_DRIVER_CONFIGDIMS_H
