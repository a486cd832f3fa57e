//===- safetensors.h - The safetensors file format --------------*- C++ -*-===//
//
// A file is the length of a JSON header (8 bytes, little endian), the header, and the tensors'
// data: https://github.com/huggingface/safetensors. The reader takes a file for hostile: whatever
// its bytes are, it answers with what the file holds or with a UserError.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_SAFETENSORS_H
#define SHEAF_RUNTIME_IO_SAFETENSORS_H

#include "runtime/io/text.h"
#include "runtime/model/layout.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sheaf::io {

/// A type of elements in files. Those that Sheaf has no use for can be listed but not converted.
struct FileType {
  const char *name; ///< as in the header: "F32"
  int64_t bytes;    ///< an element
};
/// Null when the name is unknown.
const FileType *findFileType(std::string_view name);
/// The type that a file uses for these elements.
const FileType *fileTypeOf(rt::DType dtype);

struct FileTensor {
  std::string name;
  const FileType *type;
  std::vector<int64_t> shape;
  std::span<const uint8_t> data; ///< row-major, in the file's type, of any alignment
  std::string shard = {};        ///< the file that it is in, of weights in several

  int64_t elements() const;
  /// `F32[3, 4]`
  std::string typeName() const;
};

/// Whether bytes begin as those of such a file.
bool isSafetensors(std::span<const uint8_t> bytes);

/// A file in memory. The tensors' data are the mapping itself: the file must not shrink while this
/// lives.
class SafetensorsFile {
public:
  /// Throws UserError.
  static SafetensorsFile open(const std::string &path);
  /// `bytes` must outlive the result. `name` is for messages.
  static SafetensorsFile parse(std::span<const uint8_t> bytes, const std::string &name);

  SafetensorsFile(SafetensorsFile &&other) noexcept;
  SafetensorsFile &operator=(SafetensorsFile &&) = delete;
  ~SafetensorsFile();

  const std::string &name() const { return name_; }
  /// In the order of their data.
  const std::vector<FileTensor> &tensors() const { return tensors_; }
  const FileTensor *find(const std::string &name) const;
  const std::map<std::string, std::string> &metadata() const { return metadata_; }

  /// These bytes of it, if they are its, are not read soon: their pages go.
  void forget(std::span<const uint8_t> data) const;

  /// Throws UserError unless the file has the checksum that writeSafetensors put under this key.
  void requireChecksum(const std::string &key) const;

private:
  SafetensorsFile() = default;

  std::string name_;
  std::vector<FileTensor> tensors_;
  std::map<std::string, size_t> byName_;
  std::map<std::string, std::string> metadata_;
  void *mapping_ = nullptr;
  size_t mappedBytes_ = 0;
};

/// Converts a tensor's elements to `dtype`, row-major and unpadded. Floating-point types convert to
/// each other (to nearest even, overflow to infinity), integers and BOOL to wider integers and to
/// floating point. Returns the reason when that is not possible: no conversion, or a value that the
/// integer type cannot hold.
std::optional<std::string> convertElements(const FileTensor &tensor, rt::DType dtype,
                                           std::vector<uint8_t> &out);

/// A tensor to write: row-major, unpadded elements of `dtype` (bool: 4 bytes).
struct TensorToWrite {
  std::string name;
  rt::DType dtype = rt::DType::F32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;
};

/// Writes a file, complete or not at all. Tensors are put in order of falling element size, so that
/// all are aligned. Throws UserError with the system's reason, InternalError when data and shape
/// disagree or a name occurs twice. With `checksumKey` the metadata have under it the CRC-32C of
/// all else: of keys and values in order, then of names and data in the order of the file.
void writeSafetensors(const std::string &path, std::span<const TensorToWrite> tensors,
                      std::map<std::string, std::string> metadata,
                      const char *checksumKey = nullptr);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_SAFETENSORS_H
