//===- bench_kernels.cpp - sheaf bench kernels ----------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"

#include "compiler/kernelbench/KernelBench.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <unistd.h>

namespace sheaf::tool {

namespace {

struct KernelsArguments {
  std::vector<std::string> parts;
  std::vector<std::string> shapes; ///< K N K N ...
  std::string rows;
  std::string repetitions = "40";
  std::string targetCpu = "host";
  std::string targetCache;
  std::string precision = "f32";
  FormatOption format{.people = "table"};
};

/// Whether an option is of a part.
using Takes = bool kernelbench::PartInfo::*;

/// The names of all parts, or of those that an option is of.
std::string partNames(Takes takes = nullptr) {
  std::string names;
  for (const kernelbench::PartInfo &part : kernelbench::parts())
    if (!takes || part.*takes)
      names += (names.empty() ? "" : ", ") + std::string(part.name);
  return names;
}

/// Throws UsageError for an option that is of none of the parts.
void requirePart(const kernelbench::Options &options, const std::string &option, Takes takes) {
  if (std::none_of(options.parts.begin(), options.parts.end(),
                   [&](kernelbench::Part part) { return kernelbench::infoOf(part).*takes; }))
    throw UsageError(
        fmt::format("{} is of {}, and none of them is asked for", option, partNames(takes)));
}

kernelbench::Options optionsOf(const KernelsArguments &arguments) {
  kernelbench::Options options;
  for (const kernelbench::PartInfo &part : kernelbench::parts())
    if (arguments.parts.empty())
      options.parts.push_back(part.part);
  for (const std::string &name : arguments.parts) {
    auto isNamed = [&](const kernelbench::PartInfo &part) { return part.name == name; };
    auto part = std::find_if(kernelbench::parts().begin(), kernelbench::parts().end(), isNamed);
    if (part == kernelbench::parts().end())
      throw UsageError(fmt::format("there are no kernels '{}'; sheaf bench kernels knows {}", name,
                                   partNames()));
    if (std::find(options.parts.begin(), options.parts.end(), part->part) == options.parts.end())
      options.parts.push_back(part->part);
  }
  for (size_t i = 0; i + 1 < arguments.shapes.size(); i += 2)
    options.shapes.emplace_back(parseNumber("--shape", arguments.shapes[i]),
                                parseNumber("--shape", arguments.shapes[i + 1]));
  if (options.shapes.empty())
    options.shapes = kernelbench::defaultShapes();
  else
    requirePart(options, "--shape", &kernelbench::PartInfo::ofAnyShape);
  if (!arguments.rows.empty()) {
    options.rows = parseNumbers("--rows", arguments.rows);
    requirePart(options, "--rows", &kernelbench::PartInfo::ofWeights);
  }
  options.repetitions = parseNumber("--repetitions", arguments.repetitions);
  options.targetCpu = parseTargetCpu(arguments.targetCpu);
  options.targetCaches = parseTargetCache(arguments.targetCache);
  options.precision = parsePrecision(arguments.precision);
  if (options.precision != driver::Precision::F32)
    requirePart(options, "--precision", &kernelbench::PartInfo::ofWeights);
  return options;
}

int runKernels(const KernelsArguments &arguments) {
  bool asJson = arguments.format.json();
  kernelbench::Options options = optionsOf(arguments);
  bool progress = isatty(STDERR_FILENO);
  auto wipe = [&] {
    if (progress)
      fmt::print(stderr, "\r\033[K");
  };
  std::vector<kernelbench::Line> lines;
  kernelbench::Listener listener;
  if (progress)
    listener.progress = [](const std::string &what) { fmt::print(stderr, "\r\033[K{}", what); };
  std::optional<kernelbench::Part> current;
  auto endPart = [&] {
    if (current)
      fmt::print("{}", kernelbench::summaryText(lines, *current));
  };
  if (!asJson) {
    fmt::print("{}", kernelbench::librariesText(options));
    listener.begin = [&](const kernelbench::PartInfo &part) {
      wipe();
      endPart();
      current = part.part;
      fmt::print("\n{}", kernelbench::headerText(part));
    };
    // A line takes a while: it is printed when it is known.
    listener.line = [&](const kernelbench::Line &line) {
      wipe();
      lines.push_back(line);
      fmt::print("{}", kernelbench::lineText(line));
      std::fflush(stdout);
    };
  }
  std::vector<kernelbench::Line> all = kernelbench::run(options, listener);
  wipe();
  if (asJson)
    fmt::print("{}", kernelbench::json(options, all));
  else
    endPart();
  return kOk;
}

} // namespace

void addBenchKernels(CLI::App &bench, Action &action) {
  CLI::App *sub =
      addCommand(bench, "kernels",
                 "times single kernels against the peak, memory and the vendors' libraries that "
                 "this build knows (a model of that name is ./kernels)");
  // What `sheaf bench` alone needs, and what it alone takes.
  sub->preparse_callback([&bench](size_t) {
    for (CLI::Option *option : bench.get_options()) {
      option->required(false);
      if (option->count() > 0)
        throw UsageError(
            fmt::format("{} is of a model: 'sheaf bench kernels' has none", option->get_name()));
    }
  });
  auto arguments = std::make_shared<KernelsArguments>();
  sub->add_option("part", arguments->parts, partNames() + " (default: all)")->type_name("PART");
  sub->add_option("--shape", arguments->shapes,
                  "rows and columns of the weights of product and fused, instead of a grid; "
                  "repeatable")
      ->type_name("K N")
      ->type_size(2)
      ->expected(1)
      ->take_all();
  sub->add_option("--rows", arguments->rows,
                  "how many rows product, fused and cell have (default: "
                  "1,2,4,8,16,64,256,1024)")
      ->type_name("N,...");
  sub->add_option("--repetitions", arguments->repetitions,
                  "turns of half a millisecond, of which the best counts (default: 40)")
      ->type_name("N");
  sub->add_option(
         "--target-cpu", arguments->targetCpu,
         "make code for this CPU: host (or native), or LLVM's name of one, such as x86-64-v3")
      ->type_name("CPU");
  sub->add_option("--target-cache", arguments->targetCache, kTargetCacheHelp)->type_name("SIZES");
  sub->add_option("--precision", arguments->precision,
                  "what products of weights compute in: f32 or bf16 (default: "
                  "f32)")
      ->type_name("NAME");
  arguments->format.add(*sub);
  sub->callback([arguments, &action] { action = [arguments] { return runKernels(*arguments); }; });
}

} // namespace sheaf::tool
