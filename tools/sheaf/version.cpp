//===- version.cpp - sheaf version ----------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/options.h"

#include "compiler/driver/Compiler.h"
#include "compiler/report/ReportJson.h"
#include "compiler/target/Target.h"
#include "runtime/artefact/format.h"

#include <fmt/format.h>

#include <memory>

namespace sheaf::tool {

void addVersion(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(app, "version", "the version, and the processor code is made for");
  auto format = std::make_shared<FormatOption>();
  format->add(*sub);
  sub->callback([format, &action] {
    action = [format] {
      bool asJson = format->json();
      rt::Target target = target::detect("host");
      if (asJson) {
        driver::Json json = {{"sheaf", SHEAF_VERSION},
                             {"artefacts", artefact::kVersion},
                             {"abi", artefact::kAbi},
                             {"cpu", target.cpu},
                             {"lanes", target.lanes},
                             {"registers", target.registers},
                             {"fma", target.fma},
                             {"bf16", target.bf16},
                             {"tiles", target.tiles},
                             {"caches", {{"l1", target.caches.l1}, {"l2", target.caches.l2}}}};
        fmt::print("{}", driver::jsonText(driver::reportJson("version", 1, json)));
        return kOk;
      }
      fmt::print("sheaf {}\nthis machine: {}, {} f32 a vector, {} vector registers{}, caches of {} "
                 "and {} KB\n",
                 SHEAF_VERSION, target.cpu, target.lanes, target.registers,
                 target.fma ? "" : ", no fused multiply-add", target.caches.l1 >> 10,
                 target.caches.l2 >> 10);
      return kOk;
    };
  });
}

} // namespace sheaf::tool
