//===- events.h - Numbers for TensorBoard -----------------------*- C++ -*-===//
//
// An event file is a sequence of records, each with its length and the masked CRC-32C of the length
// and of its bytes (TFRecord); a record is a protocol buffer `Event` (tensorflow/core/util/
// event.proto). Only what scalars need is written.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_IO_EVENTS_H
#define SHEAF_RUNTIME_IO_EVENTS_H

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <utility>

namespace sheaf::io {

class EventFile {
public:
  /// Begins a new file in a directory, `events.out.tfevents.SECONDS.PROCESS.sheaf`. What other
  /// files of the directory hold of `firstStep` and later is void to its readers. Throws
  /// UserError.
  EventFile(const std::string &directory, int64_t firstStep);

  /// One event with several numbers, written through. Throws UserError.
  void scalars(int64_t step, std::span<const std::pair<std::string, double>> numbers);

  const std::string &path() const { return path_; }

private:
  void write(const std::string &event);

  std::string path_;
  std::ofstream out_;
};

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_EVENTS_H
