//===- weights.h - The weights that the command line names ------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_WEIGHTS_H
#define SHEAF_TOOLS_SHEAF_WEIGHTS_H

#include "tools/sheaf/load.h"

#include <functional>
#include <string>
#include <vector>

namespace sheaf::tool {

/// The file that `--weights` means: of the directory of a training its best weights. Throws
/// UserError when there are none.
std::string weightsFile(const std::string &path);

/// Where the vocabulary of weights stands: beside `w.safetensors` it is `w.vocab.txt`, that of
/// `token<tag>` `w.tag.vocab.txt`.
std::string vocabularyBeside(const std::string &weights, const std::string &name);
/// The one that is there, that of a checkpoint beside the training's last weights; empty: none.
std::string vocabularyOf(const std::string &weights, const std::string &name);

/// Dims that are stored with the weights stand before those of the source, unless --dim gives them.
/// `declared`: the dims of the source. Throws UserError when --dim contradicts them.
void bindStoredDims(const WeightOptions &weights, const std::vector<std::string> &declared,
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
