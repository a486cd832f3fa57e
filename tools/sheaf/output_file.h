//===- output_file.h - Where the command writes to --------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_OUTPUT_FILE_H
#define SHEAF_TOOLS_SHEAF_OUTPUT_FILE_H

#include "runtime/io/text.h"

#include <memory>
#include <string>
#include <string_view>

namespace sheaf::tool {

/// Where output goes: standard output for `-` or an empty path, a device or pipe as it is, and a
/// file complete or not at all. Throws UserError with the system's reason.
class OutputFile {
public:
  explicit OutputFile(const std::string &path);
  ~OutputFile();

  void write(std::string_view text);
  /// Whoever reads standard output sees what was written so far.
  void flush();
  /// Completes the output. Without it a file is not made.
  void finish();

private:
  std::unique_ptr<io::AtomicFile> file_; ///< null: standard output
  std::string buffer_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_OUTPUT_FILE_H
