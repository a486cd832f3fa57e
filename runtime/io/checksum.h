//===- checksum.h - Checksums and digests -----------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_IO_CHECKSUM_H
#define SHEAF_RUNTIME_IO_CHECKSUM_H

#include <cstdint>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>

namespace sheaf::io {

/// What is thrown when `stop` was asked for.
class CheckStopped : public std::runtime_error {
public:
  CheckStopped() : std::runtime_error("the loading was stopped") {}
};

/// XXH3, 64 bits: finds accidents, not intent. Several GB/s.
uint64_t checksum(std::span<const uint8_t> bytes, const std::stop_token &stop = {});

/// SHA-256 (FIPS 180-4) in 64 hexadecimal digits, lower case.
std::string sha256(std::span<const uint8_t> bytes, const std::stop_token &stop = {});

/// Whether a text can be such a digest, in upper or lower case.
bool isSha256(std::string_view text);

} // namespace sheaf::io

#endif // SHEAF_RUNTIME_IO_CHECKSUM_H
