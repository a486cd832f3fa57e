//===- gzip.h - Compressed data files ---------------------------*- C++ -*-===//
//
// A library of its own: what it needs, zlib, is nothing that libsheaf_runtime asks for.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_GZIP_H
#define SHEAF_RUNTIME_IO_GZIP_H

#include "runtime/io/text.h"

namespace sheaf::io {

/// Reads a file as readSource() does, and decompresses what begins as gzip does, whatever its name
/// is. Throws UserError for what is cut off or damaged.
SourceText readData(const std::string &path);
/// The same with a text that has been read.
SourceText decompressed(SourceText source);
/// By how it begins.
bool isGzip(std::string_view bytes);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_GZIP_H
