// Whether a program that reads launches and holds on the null device what it does on the processor,
// with numbers from a log:
//
//   run_null MODEL.sheafc DATA [FORMAT [STEPS]]
//
// Under each of some settings, with the log of a session that has them too; and with that of a
// session that ran one instance after the other and forked what it could.
#include "runtime/artefact/artefact.h"
#include "runtime/devices/devices.h"
#include "runtime/io/formats.h"
#include "runtime/io/read.h"
#include "runtime/model/error.h"
#include "runtime/session/session.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

using namespace sheaf;

namespace {

/// Calls of recursive functions that an instance may make.
int64_t maxSteps = rt::SessionOptions().maxSteps;

struct Setting {
  const char *name;
  size_t batch;
  unsigned fibers = 512;
  bool hostile = false;
  rt::Forking forking = rt::Forking::Worth;
  rt::Policy policy = rt::Policy::Depth;

  rt::SessionOptions options() const {
    rt::SessionOptions options;
    options.fibers = fibers;
    options.hostile = hostile;
    options.forking = forking;
    options.policy = policy;
    options.maxSteps = maxSteps;
    options.memoryLimit = uint64_t(4) << 30;
    options.shareRows = rt::When::Never; // of the processor's memory only
    return options;
  }
};

constexpr Setting kSettings[] = {
    {"batch 1", 1},
    {"batch 3", 3, 2},
    {"all", SIZE_MAX},
    {"all, 1 fiber", SIZE_MAX, 1},
    {"all, 3 fibers", SIZE_MAX, 3},
    {"all, forks always", SIZE_MAX, 512, false, rt::Forking::Always},
    {"all, 5 fibers, forks always", SIZE_MAX, 5, false, rt::Forking::Always},
    {"all, forks never", SIZE_MAX, 512, false, rt::Forking::Never},
    {"all, agenda", SIZE_MAX, 512, false, rt::Forking::Worth, rt::Policy::Agenda},
    {"batch 1, hostile", 1, 512, true},
    {"batch 5, hostile", 5, 4, true},
    {"all, hostile", SIZE_MAX, 512, true},
};

rt::DeviceFactory deviceNamed(std::string_view name) {
  for (const rt::DeviceRecord &each : rt::devices())
    if (each.name == name)
      return each.make;
  throw std::runtime_error("no such device");
}

/// What a session did.
struct Account {
  std::vector<std::tuple<uint32_t, uint32_t, int64_t>> launches; ///< kernel, depth, count
  std::vector<std::string> errors;                               ///< of instances, empty: none
  rt::Counters counters;
  rt::MemoryUse memory;
};

Account run(const rt::Model &model, rt::SessionOptions options, const char *device,
            std::span<const rt::Instance> instances, size_t batch, rt::ReadLog *written,
            const rt::ReadLog *replayed) {
  options.device = deviceNamed(device);
  rt::Session session(model, options);
  Account account;
  auto add = [&](const rt::Schedule &schedule) {
    for (const rt::ScheduledBucket &launch : schedule)
      account.launches.emplace_back(launch.kernel, launch.depth, launch.count);
  };
  session.onForget(add);
  session.setReadLog(written);
  if (replayed)
    session.replayReads(replayed);
  for (size_t begin = 0; begin < instances.size(); begin += std::min(batch, instances.size())) {
    size_t count = std::min(batch, instances.size() - begin);
    for (const rt::Outcome &outcome : session.run(instances.subspan(begin, count)))
      account.errors.push_back(outcome.ok() ? "" : outcome.error->message());
    add(session.schedule());
  }
  account.counters = session.counters();
  account.memory = session.memory();
  return account;
}

/// What differs, if anything.
std::string difference(const Account &cpu, const Account &null, bool sameLog) {
  if (cpu.errors != null.errors)
    return "errors";
  // What else an instance does that fails follows from what ran when.
  if (!sameLog && std::count(cpu.errors.begin(), cpu.errors.end(), "") !=
                      static_cast<ptrdiff_t>(cpu.errors.size()))
    return "";
  if (cpu.launches != null.launches)
    return "launches: " + std::to_string(cpu.launches.size()) + " and " +
           std::to_string(null.launches.size());
  if (cpu.counters.records != null.counters.records || cpu.counters.flop != null.counters.flop ||
      cpu.counters.flushes != null.counters.flushes || cpu.counters.waits != null.counters.waits)
    return "counters";
  if (sameLog && (cpu.counters.forked != null.counters.forked ||
                  cpu.counters.inlined != null.counters.inlined ||
                  cpu.counters.inPlace != null.counters.inPlace))
    return "forks";
  for (const rt::NamedMemoryKind &kind : rt::kMemoryKinds) {
    // Of calls that are forked with another log more arguments are on the heap.
    if (!sameLog && (kind.kind == &rt::MemoryUse::heap || kind.kind == &rt::MemoryUse::stack))
      continue;
    const rt::MemoryKind &a = cpu.memory.*kind.kind, &b = null.memory.*kind.kind;
    if (a.now != b.now || a.peak != b.peak)
      return std::string(kind.name) + ": " + std::to_string(a.peak) + " and " +
             std::to_string(b.peak);
  }
  return "";
}

size_t reads(const rt::ReadLog &log) {
  size_t count = 0;
  for (size_t i = 0; i < log.instances(); ++i)
    count += log.of(i).size();
  return count;
}

int check(const std::vector<std::string> &arguments) {
  std::unique_ptr<artefact::Artefact> artefact = artefact::Artefact::open(arguments.at(0));
  const rt::Model &model = artefact->model();
  io::Vocabularies vocabularies = artefact->vocabularies();
  io::VocabularyReader tokens(vocabularies, /*strict=*/false);
  io::ReadOptions reading;
  reading.dims = &model.dims;
  if (arguments.size() > 2)
    reading.format = io::parseDataFormat(arguments[2]);
  if (arguments.size() > 3)
    maxSteps = std::stoll(arguments[3]);
  io::Dataset data = io::readDataset(arguments.at(1), model.types, model.entry, tokens, reading);
  std::vector<rt::Instance> instances;
  for (int64_t i = 0; i < data.size(); ++i)
    instances.push_back({data.args(i), i});

  rt::ReadLog forked;
  Setting alone{"", 1, rt::SessionOptions::kMostFibers, false, rt::Forking::Always};
  run(model, alone.options(), "cpu", instances, 1, &forked, nullptr);
  int wrong = 0;
  for (const Setting &setting : kSettings) {
    rt::ReadLog log;
    Account plain =
        run(model, setting.options(), "cpu", instances, setting.batch, nullptr, nullptr);
    run(model, setting.options(), "cpu", instances, setting.batch, &log, nullptr);
    Account null = run(model, setting.options(), "null", instances, setting.batch, nullptr, &log);
    auto tell = [&](const std::string &what, const char *which) {
      wrong += !what.empty();
      if (!what.empty())
        std::printf("%s, %s: %s\n", setting.name, which, what.c_str());
    };
    tell(difference(plain, null, true), "its own log");
    // Hostile, every other call that is asked for is forked, and calls that were forked once are
    // asked for anew.
    if (setting.hostile)
      continue;
    Account other =
        run(model, setting.options(), "null", instances, setting.batch, nullptr, &forked);
    tell(difference(plain, other, false), "another's log");
  }
  std::printf("%zu instances, %zu reads: %s\n", instances.size(), reads(forked),
              wrong ? "differ" : "the same");
  return wrong ? 1 : 0;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return check({argv + 1, argv + argc});
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
