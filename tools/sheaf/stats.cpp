//===- stats.cpp - What a command counted ---------------------------------===//
#include "tools/sheaf/stats.h"

#include "compiler/report/Explain.h"
#include "compiler/report/ReportJson.h"

#include <fmt/format.h>

namespace sheaf::tool {

namespace {

double ms(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-6; }

} // namespace

std::vector<driver::KernelRow> Statistics::rows(const rt::Session &session) const {
  std::vector<driver::KernelRow> rows = kernels_.rows(session.counters().kernels);
  driver::sortByTime(rows);
  return rows;
}

std::string Statistics::text(const rt::Session &session, double loadMs, double runMs) const {
  const rt::Counters &c = session.counters();
  double kernelMs = ms(c.flushNanoseconds - c.orderNanoseconds);
  std::string out = fmt::format(
      "{} instances in {} mini-batches, {} failed: {:.1f} ms, {:.0f} instances a second; {:.1f} ms "
      "before the first\n"
      "recording {:.1f} ms, ordering {:.1f} ms, kernels {:.1f} ms at {:.1f} GFLOP/s\n"
      "{} records, {} more saved, being identical to others; {} launches of {:.1f} rows on "
      "average, {} of them on several threads\n"
      "{} flushes, {} waits for reads, memory given back {} times meanwhile; {} calls ran beside "
      "the one that made them, {} in place since enough waited, {} found no stack\n",
      c.instances, c.runs, c.failed, runMs,
      runMs > 0 ? static_cast<double>(c.instances) / runMs * 1e3 : 0, loadMs,
      ms(c.recordNanoseconds), ms(c.orderNanoseconds), kernelMs,
      kernelMs > 0 ? c.flop / kernelMs * 1e-6 : 0, c.records, c.saved, c.launches,
      c.recordsPerLaunch(), c.parallelLaunches, c.flushes, c.waits, c.collections, c.forked,
      c.inPlace, c.inlined);
  if (c.evictions > 0)
    out += fmt::format("what was kept for later mini-batches gave way to others {} times\n",
                       c.evictions);
  auto bytes = [](uint64_t count) { return driver::bytesText(static_cast<double>(count)); };
  if (c.rowPlans > 0)
    out += fmt::format("rows of {} flush{} used again: {} in {} (at least {} at one time), planned "
                       "in {:.1f} ms{}\n",
                       c.rowPlans, c.rowPlans == 1 ? "" : "es", bytes(c.promisedBytes),
                       bytes(c.plannedBytes), bytes(c.leastBytes), ms(c.planNanoseconds),
                       c.rowWindows ? fmt::format(", in {} windows", c.rowWindows) : "");
  if (c.sharedTensors > 0)
    out += fmt::format("{} tensors grew from rows that others have, too: {} not copied\n",
                       c.sharedTensors, bytes(c.sharedBytes));
  if (c.droppedBytes > 0)
    out += fmt::format("{} of rows dropped; {} records ran again for them\n", bytes(c.droppedBytes),
                       c.recomputed);
  rt::MemoryUse memory = session.memory();
  out += "memory at most:";
  for (const rt::NamedMemoryKind &kind : rt::kMemoryKinds)
    out += fmt::format("{} {} {}", &kind == rt::kMemoryKinds ? "" : ",", kind.name,
                       bytes((memory.*kind.kind).peak));
  out +=
      fmt::format("\nthe process at most: {} before the session{}, {} in all\n", bytes(loadPeak_),
                  store_ ? ", with compiling" : "", bytes(driver::processMemory().peak));
  return out + (store_ ? driver::storeText(*store_) : "") +
         driver::kernelTable(rows(session), std::nullopt);
}

std::string Statistics::json(const rt::Session &session, double loadMs, double runMs) const {
  using driver::Json;
  const rt::Counters &c = session.counters();
  rt::MemoryUse use = session.memory();
  Json memory;
  for (const rt::NamedMemoryKind &kind : rt::kMemoryKinds)
    memory[kind.name] = {{"now", (use.*kind.kind).now}, {"peak", (use.*kind.kind).peak}};
  // Sizes beyond the largest that occurred say nothing.
  size_t sizes = c.launchSizes.size();
  while (sizes > 0 && c.launchSizes[sizes - 1] == 0)
    --sizes;
  Json report = driver::reportJson(
      "stats", 1,
      {{"model", model_.name},
       {"threads", session.options().threads},
       {"policy", rt::policyName(session.policy())},
       {"mini_batches", c.runs},
       {"instances", c.instances},
       {"failed", c.failed},
       {"load_ms", loadMs},
       {"run_ms", runMs},
       {"record_ms", ms(c.recordNanoseconds)},
       {"order_ms", ms(c.orderNanoseconds)},
       {"kernel_ms", ms(c.flushNanoseconds - c.orderNanoseconds)},
       {"gflop", c.flop * 1e-9},
       {"records", c.records},
       {"saved_records", c.saved},
       {"launches", c.launches},
       {"parallel_launches", c.parallelLaunches},
       {"barriers", c.barriers},
       {"flushes", c.flushes},
       {"waits", c.waits},
       {"collections", c.collections},
       {"evictions", c.evictions},
       {"row_plans",
        {{"flushes", c.rowPlans},
         {"promised_bytes", c.promisedBytes},
         {"planned_bytes", c.plannedBytes},
         {"least_bytes", c.leastBytes},
         {"windows", c.rowWindows},
         {"plan_ms", ms(c.planNanoseconds)},
         {"dropped_bytes", c.droppedBytes},
         {"recomputed_records", c.recomputed}}},
       {"forked", c.forked},
       {"in_place", c.inPlace},
       {"shared_tensors", c.sharedTensors},
       {"shared_bytes", c.sharedBytes},
       {"inlined", c.inlined},
       {"launch_sizes",
        std::vector<uint64_t>(c.launchSizes.begin(),
                              c.launchSizes.begin() + static_cast<ptrdiff_t>(sizes))},
       {"memory", memory},
       {"process", {{"load_peak", loadPeak_}, {"peak", driver::processMemory().peak}}},
       {"kernels", driver::kernelsJson(rows(session), std::nullopt)}});
  if (store_)
    report["store"] = driver::storeJson(*store_);
  return driver::jsonText(report);
}

} // namespace sheaf::tool
