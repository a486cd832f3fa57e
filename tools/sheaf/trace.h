//===- trace.h - Traces that Chrome and Perfetto open -----------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_TRACE_H
#define SHEAF_TOOLS_SHEAF_TRACE_H

#include "tools/sheaf/output_file.h"

#include "runtime/session/session.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace sheaf::tool {

/// Writes what sessions do as a Chrome trace (docs/reports.md): a track a thread, one for each
/// instance while it waits, and the memory by kind.
class TraceFile {
public:
  /// `nameOf`: an instance in words, by its index. Throws UserError.
  TraceFile(const std::string &path, const rt::Model &model, unsigned threads,
            std::function<std::string(int64_t)> nameOf);
  ~TraceFile();

  /// For Session::setTrace().
  rt::Trace &trace() { return trace_; }
  /// To be called between mini-batches: writes down what has gathered when that is much.
  void between();
  /// Completes the file.
  void finish();

private:
  void write();
  void slice(const char *category, const std::string &name, unsigned thread, rt::TraceSpan span,
             const std::string &args = "");
  void walks();
  void launches();
  std::string microseconds(uint64_t time);

  const rt::Model &model_;
  std::function<std::string(int64_t)> nameOf_;
  rt::Trace trace_;
  OutputFile file_;
  uint64_t begin_;                   ///< the time that counts as 0
  std::vector<std::string> kernels_; ///< their names, quoted
  struct Waiting {
    uint64_t number, since;
    uint32_t place;
    bool joins;
  };
  std::map<const void *, Waiting> waiting_; ///< by task
  uint64_t tracks_ = 0;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_TRACE_H
