#include "runtime/io/events.h"

#include "runtime/io/crc32c.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <unistd.h>

namespace sheaf::io {

namespace {

// Protocol buffers: the kinds of fields on the wire.
enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void appendVarint(std::string &out, uint64_t value) {
  for (; value >= 128; value >>= 7)
    out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

void appendKey(std::string &out, uint32_t field, Wire wire) {
  appendVarint(out, field << 3 | wire);
}

template <typename T> void appendFixed(std::string &out, T value) {
  for (size_t i = 0; i < sizeof value; ++i)
    out += static_cast<char>(value >> (8 * i));
}

void appendBytes(std::string &out, uint32_t field, const std::string &bytes) {
  appendKey(out, field, kBytes);
  appendVarint(out, bytes.size());
  out += bytes;
}

void appendInt(std::string &out, uint32_t field, int64_t value) {
  appendKey(out, field, kVarint);
  appendVarint(out, static_cast<uint64_t>(value));
}

/// wall_time and step of an Event.
std::string beginEvent(int64_t step) {
  double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::string event;
  appendKey(event, 1, kFixed64);
  appendFixed(event, std::bit_cast<uint64_t>(now));
  appendInt(event, 2, step);
  return event;
}

/// A checksum of what may hold checksums itself.
uint32_t maskedCrc(const std::string &bytes) {
  uint32_t crc = crc32c(bytes.data(), bytes.size());
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

} // namespace

EventFile::EventFile(const std::string &directory, int64_t firstStep) {
  auto now = std::chrono::duration_cast<std::chrono::seconds>(
                 std::chrono::system_clock::now().time_since_epoch())
                 .count();
  // Readers take the files of a directory in the order of their names.
  path_ = fmt::format("{}/events.out.tfevents.{:010}.{}.sheaf", directory, now, ::getpid());
  out_.open(path_, std::ios::binary | std::ios::trunc);
  std::string event = beginEvent(0);
  appendBytes(event, 3, "brain.Event:2"); // file_version
  write(event);
  event = beginEvent(firstStep);
  std::string start;
  appendInt(start, 1, 1);       // SessionLog.status: START
  appendBytes(event, 7, start); // session_log
  write(event);
}

void EventFile::scalars(int64_t step, std::span<const std::pair<std::string, double>> numbers) {
  std::string summary;
  for (const auto &[tag, number] : numbers) {
    std::string value;
    appendBytes(value, 1, tag);
    appendKey(value, 2, kFixed32); // simple_value
    appendFixed(value, std::bit_cast<uint32_t>(static_cast<float>(number)));
    appendBytes(summary, 1, value);
  }
  std::string event = beginEvent(step);
  appendBytes(event, 5, summary);
  write(event);
}

void EventFile::write(const std::string &event) {
  std::string record, length;
  appendFixed(length, static_cast<uint64_t>(event.size()));
  record += length;
  appendFixed(record, maskedCrc(length));
  record += event;
  appendFixed(record, maskedCrc(event));
  out_.write(record.data(), static_cast<std::streamsize>(record.size()));
  out_.flush();
  if (!out_)
    throw UserError(path_ + ": cannot be written");
}

} // namespace sheaf::io
