#include "tools/sheaf/output_file.h"

#include "tools/sheaf/progress.h"

#include <unistd.h>

namespace sheaf::tool {

OutputFile::OutputFile(const std::string &path) {
  if (!path.empty() && path != "-")
    file_ = std::make_unique<io::AtomicFile>(path);
}

OutputFile::~OutputFile() = default;

void OutputFile::write(std::string_view text) {
  if (file_)
    return file_->write(text);
  buffer_ += text;
  if (buffer_.size() >= size_t{1} << 16)
    flush();
}

void OutputFile::flush() {
  if (file_)
    return;
  Progress::clear();
  io::writeAll(STDOUT_FILENO, buffer_, "<stdout>");
  buffer_.clear();
}

void OutputFile::finish() {
  if (file_)
    file_->commit();
  else
    flush();
}

} // namespace sheaf::tool
