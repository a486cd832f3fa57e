//===- weights_path.h - Where weights and their words lie -------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_IO_WEIGHTS_PATH_H
#define SHEAF_RUNTIME_IO_WEIGHTS_PATH_H

#include <string>

namespace sheaf::io {

/// The file that a path of weights means: of the directory of a training its best weights, of one
/// as Hugging Face's libraries write it model.safetensors, or the index of several. Throws
/// UserError when there are none.
std::string weightsFile(const std::string &path);

/// A file of this name in the directory of another file, or in that directory itself.
std::string fileBeside(const std::string &path, const std::string &name);
/// Whether it is there.
bool isFile(const std::string &path);

/// Where the vocabulary of weights stands: beside `w.safetensors` it is `w.vocab.txt`, that of
/// `token<tag>` `w.tag.vocab.txt`.
std::string vocabularyBeside(const std::string &weights, const std::string &name);
/// The one that is there, that of a checkpoint beside the training's last weights; empty: none.
std::string vocabularyOf(const std::string &weights, const std::string &name);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_WEIGHTS_PATH_H
