//===- version.cpp - sheaf version ----------------------------------------===//
#include "tools/sheaf/command.h"

#include "compiler/driver/Compiler.h"

#include <fmt/format.h>

namespace sheaf::tool {

void addVersion(CLI::App &app, Action &action) {
  CLI::App *sub = app.add_subcommand("version", "the version, and the processor code is made for");
  sub->callback([&action] {
    action = [] {
      driver::TargetInfo target = driver::targetInfo("host");
      fmt::print("sheaf {}\nthis machine: {}, {} f32 a vector, {} vector registers{}\n",
                 SHEAF_VERSION, target.processor.cpu, target.lanes, target.registers,
                 target.fma ? "" : ", no fused multiply-add");
      return kOk;
    };
  });
}

} // namespace sheaf::tool
