//===- trace.cpp - Traces that Chrome and Perfetto open -------------------===//
#include "tools/sheaf/trace.h"

#include "runtime/cpu/kernel_code.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sheaf::tool {

namespace {

/// About 20 MB: written down between mini-batches, not while one runs.
constexpr size_t kEventsHeld = size_t{1} << 18;

/// Perfetto takes thread 0 for the idle thread of a machine.
unsigned idOf(unsigned thread) { return thread + 1; }

std::string inQuotes(const std::string &text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace

TraceFile::TraceFile(const std::string &path, const rt::Model &model, unsigned threads,
                     std::function<std::string(int64_t)> nameOf)
    : model_(model), nameOf_(std::move(nameOf)), trace_(threads), file_(path),
      begin_(rt::clockNow()) {
  for (const rt::KernelDesc &kernel : model.kernels)
    kernels_.push_back(inQuotes(kernel.name));
  file_.write("{\"displayTimeUnit\": \"ns\",\n\"otherData\": "
              "{\"report\": \"trace\", \"version\": 1, \"program\": " +
              inQuotes(model.name) + "},\n\"traceEvents\": [\n");
  file_.write(fmt::format(
      R"({{"ph": "M", "pid": 1, "tid": 1, "name": "process_name", "args": {{"name": {}}}}})",
      inQuotes("sheaf " + model.name)));
  for (unsigned t = 0; t < threads; ++t)
    file_.write(fmt::format(
        ",\n"
        R"({{"ph": "M", "pid": 1, "tid": {}, "name": "thread_name", "args": {{"name": "{}"}}}})",
        idOf(t), fmt::format("thread {}: {}", idOf(t), t == 0 ? "recording, kernels" : "kernels")));
}

TraceFile::~TraceFile() = default;

void TraceFile::between() {
  if (trace_.size() >= kEventsHeld)
    write();
}

void TraceFile::finish() {
  write();
  file_.write("\n]}\n");
  file_.finish();
}

std::string TraceFile::microseconds(uint64_t time) {
  uint64_t ns = time > begin_ ? time - begin_ : 0;
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

void TraceFile::slice(const char *category, const std::string &name, unsigned thread,
                      rt::TraceSpan span, const std::string &args) {
  file_.write(fmt::format(
      ",\n"
      R"({{"ph": "X", "pid": 1, "tid": {}, "ts": {}, "dur": {}.{:03}, "cat": "{}", "name": {})",
      idOf(thread), microseconds(span.begin), span.nanoseconds() / 1000, span.nanoseconds() % 1000,
      category, name));
  file_.write(args.empty() ? "}" : ", \"args\": {" + args + "}}");
}

/// A stretch of an instance is a slice of the first thread; from where it waits to where it goes on
/// is a track of its own.
void TraceFile::walks() {
  auto track = [&](const char *phase, const rt::TraceWalk &walk, const Waiting &waiting,
                   uint64_t time) {
    std::string what = waiting.joins ? "waits for a forked call"
                                     : "waits for the read of " + model_.readPlaces[waiting.place];
    file_.write(fmt::format(",\n"
                            R"({{"ph": "{}", "pid": 1, "tid": 1, "ts": {}, "cat": "instance", )"
                            R"("id2": {{"local": "{}"}}, "name": {}}})",
                            phase, microseconds(time), waiting.number,
                            inQuotes(nameOf_(walk.instance) + " " + what)));
  };
  for (const rt::TraceWalk &walk : trace_.walks) {
    auto before = waiting_.find(walk.task);
    if (before != waiting_.end()) {
      track("b", walk, before->second, before->second.since);
      track("e", walk, before->second, walk.span.begin);
    }
    std::string left = walk.left == rt::TraceWalk::Waits
                           ? "waits for the read of " + model_.readPlaces[walk.place]
                       : walk.left == rt::TraceWalk::Joins ? "waits for a forked call"
                       : walk.left == rt::TraceWalk::Ended ? "ends"
                                                           : "fails";
    slice("record", inQuotes((walk.forked ? "call of " : "record ") + nameOf_(walk.instance)), 0,
          walk.span,
          "\"instance\": " + std::to_string(walk.instance) + ", \"then\": " + inQuotes(left));
    if (walk.left == rt::TraceWalk::Waits || walk.left == rt::TraceWalk::Joins) {
      uint64_t number = before == waiting_.end() ? tracks_++ : before->second.number;
      waiting_[walk.task] = {number, walk.span.end, walk.place, walk.left == rt::TraceWalk::Joins};
    } else if (before != waiting_.end()) {
      waiting_.erase(before);
    }
  }
}

void TraceFile::launches() {
  for (unsigned thread = 0; thread < trace_.launches.size(); ++thread)
    for (const rt::TraceLaunch &launch : trace_.launches[thread]) {
      const rt::KernelDesc &kernel = model_.kernels[launch.kernel];
      uint32_t panels = rt::cpuCode(model_).kernels[launch.kernel].panels;
      std::string args = fmt::format(R"("rows": {}, "depth": {}, "source": {})", launch.records,
                                     launch.depth, inQuotes(kernel.source));
      if (launch.panelsEnd - launch.panelsBegin != panels)
        args += fmt::format(R"(, "panels": "{} to {} of {}")", launch.panelsBegin, launch.panelsEnd,
                            panels);
      slice("kernel", kernels_[launch.kernel], thread, launch.span, args);
    }
}

void TraceFile::write() {
  for (const rt::TracePart &part : trace_.parts)
    switch (part.kind) {
    case rt::TracePart::MiniBatch:
      slice("run", fmt::format("\"mini-batch {}\"", part.number), 0, part.span);
      break;
    case rt::TracePart::Weights:
      slice("run", "\"weights: packed\"", 0, part.span);
      break;
    case rt::TracePart::Inputs:
      slice("record", inQuotes("inputs of " + nameOf_(part.number)), 0, part.span);
      break;
    case rt::TracePart::Backward:
      slice("run", "\"backwards\"", 0, part.span);
      break;
    }
  for (const rt::TraceFlush &flush : trace_.flushes) {
    slice("flush", flush.demanded ? "\"flush: instances wait\"" : "\"flush: all are walked\"", 0,
          flush.span,
          fmt::format("\"launches\": {}", flush.lastLaunch - flush.firstLaunch) +
              (flush.demanded ? fmt::format(", \"forks_while_fewer_wait\": {}", flush.worthForking)
                              : ""));
    slice("flush", "\"order\"", 0, {flush.span.begin, flush.ordered});
  }
  walks();
  launches();
  for (const rt::TraceMemory &sample : trace_.memory) {
    std::string kinds;
    for (size_t i = 0; i < std::size(rt::kMemoryKinds); ++i)
      kinds +=
          fmt::format(R"({}"{}": {})", i ? ", " : "", rt::kMemoryKinds[i].name, sample.bytes[i]);
    file_.write(
        fmt::format(",\n"
                    R"({{"ph": "C", "pid": 1, "ts": {}, "name": "memory", "args": {{{}}}}})",
                    microseconds(sample.time), kinds));
  }
  trace_.clear();
}

} // namespace sheaf::tool
