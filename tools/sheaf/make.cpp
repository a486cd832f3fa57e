//===- make.cpp - sheaf make ----------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/options.h"
#include "tools/sheaf/output_file.h"
#include "tools/sheaf/progress.h"

#include "runtime/io/listops.h"
#include "runtime/model/error.h"

#include <memory>
#include <optional>

namespace sheaf::tool {

namespace {

struct ListOpsArguments {
  std::string count = "1000";
  std::string output;
  io::ListOpsOptions options;
};

int makeListOps(const ListOpsArguments &arguments) {
  int64_t count = parseNumber("-n", arguments.count);
  InterruptGuard guard(arguments.output);
  // It calls what does not fit by its name, which is the option's.
  io::ListOps maker = [&] {
    try {
      return io::ListOps(arguments.options);
    } catch (const UserError &error) {
      throw UsageError(std::string("--") + error.what());
    }
  }();
  OutputFile output(arguments.output);
  {
    Progress progress("making trees", count);
    std::string tree;
    for (int64_t i = 0; i < count; ++i) {
      tree.clear();
      maker.append(tree);
      output.write(tree);
      progress.step();
    }
  }
  output.finish();
  return kOk;
}

} // namespace

void addMake(CLI::App &app, Action &action) {
  CLI::App *make = addCommand(app, "make", "makes data");
  make->require_subcommand(0, 1);
  // What `sheaf make` alone, or with a word that is no kind of data, asks for.
  make->callback([make] {
    if (make->get_subcommands().empty())
      throw UsageError(make->remaining_size() ? "there are no data '" + make->remaining().front() +
                                                    "'; sheaf make knows listops"
                                              : "sheaf make needs to know what: listops");
  });

  CLI::App *sub = addCommand(
      *make, "listops", "nested list operations as bracket trees, labelled with their values 0-9");
  auto arguments = std::make_shared<ListOpsArguments>();
  sub->add_option("-n", arguments->count, "trees (default: 1000)")->type_name("N");
  addSeed(*sub, "--seed", arguments->options.seed, "of the random numbers (default: 0)");
  sub->add_option("--max-depth", arguments->options.maxDepth,
                  "most expressions inside each other (default: 20)")
      ->type_name("N");
  sub->add_option("--max-args", arguments->options.maxArgs,
                  "most arguments of an expression (default: 5)")
      ->type_name("N");
  sub->add_option("--nested", arguments->options.nested,
                  "how often an argument is an expression (default: 0.25)")
      ->type_name("P");
  sub->add_option("-o", arguments->output, "the file to write instead of standard output")
      ->type_name("FILE");
  sub->callback([arguments, &action] { action = [arguments] { return makeListOps(*arguments); }; });
}

} // namespace sheaf::tool
