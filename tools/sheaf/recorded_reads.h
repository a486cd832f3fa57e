//===- recorded_reads.h - Reads for a device that has no values --*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_RECORDED_READS_H
#define SHEAF_TOOLS_SHEAF_RECORDED_READS_H

#include "runtime/session/session.h"

#include <functional>
#include <optional>

namespace sheaf::tool {

/// For a session on a device that computes nothing, of a program that reads tensors: each
/// mini-batch runs on the processor first, under the same options, and what it reads there counts.
/// For other sessions it does nothing.
class RecordedReads {
public:
  /// `options` are the session's; `initialise` gives another its weights.
  RecordedReads(rt::Session &session, rt::SessionOptions options,
                const std::function<void(rt::Session &)> &initialise);

  /// Before the session runs these.
  void record(std::span<const rt::Instance> instances);

private:
  rt::Session &session_;
  std::optional<rt::Session> reader_;
  rt::ReadLog log_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_RECORDED_READS_H
