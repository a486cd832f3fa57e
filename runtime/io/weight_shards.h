//===- weight_shards.h - Weights that lie in several files ------*- C++ -*-===//
//
// `model.safetensors.index.json`, as Hugging Face's libraries write it, says which file beside it
// holds which tensor: {"metadata": {...}, "weight_map": {"h.0.w":
// "model-00001-of-00002.safetensors",
// ...}}.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_WEIGHT_SHARDS_H
#define SHEAF_RUNTIME_IO_WEIGHT_SHARDS_H

#include "runtime/io/safetensors.h"

#include <string>
#include <vector>

namespace sheaf::io {

/// Whether a file is one of JSON, and so no safetensors file.
bool isShardIndex(const std::string &path);

/// The files that an index names, in the order of their names. Throws UserError for what is no
/// index, a file that is not there or not whole, a tensor that is not in the file that should have
/// it, and one that is in two.
std::vector<SafetensorsFile> openShards(const std::string &index);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_WEIGHT_SHARDS_H
