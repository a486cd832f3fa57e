//===- weights.h - The weights that the command line names ------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_WEIGHTS_H
#define SHEAF_TOOLS_SHEAF_WEIGHTS_H

#include "runtime/io/weights_path.h"
#include "tools/sheaf/load.h"

#include <functional>
#include <string>
#include <vector>

namespace sheaf::tool {

/// What other dims would do where weights have other shapes: io::LoadOptions::adviseShapes. The
/// model must outlive it.
std::function<std::string(const std::map<std::string, std::vector<int64_t>> &)>
dimAdvice(const LoadedModel &loaded);

/// Dims that are stored with the weights stand before those of the source, unless --dim gives them,
/// and so do those that the source takes from the config.json beside them. Throws UserError when
/// --dim contradicts what is stored. Constants that come with weights are taken likewise.
void bindStoredDims(const WeightOptions &weights, const SourceFile &source,
                    const io::Vocabularies &given, driver::CompileOptions &compile);

/// Gives a session its weights: those of the file, or the initialisers' and those of --init-from.
/// The notes that are due (no weights given, tensors that no parameter takes) are printed when
/// `quiet` is false.
void setWeights(rt::Session &session, const WeightOptions &weights, const LoadedModel &loaded,
                bool quiet);

/// For what makes several sessions: gives each of them the weights, with the notes for the first
/// only. The arguments must outlive it.
std::function<void(rt::Session &)> weightSetter(const WeightOptions &weights,
                                                const LoadedModel &loaded);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_WEIGHTS_H
