//===- replay.cpp - sheaf replay ------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/reproduce.h"

#include "runtime/io/text.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <memory>

#include <unistd.h>

namespace sheaf::tool {

namespace {

struct ReplayArguments {
  std::string directory;
  std::string crashed; ///< by what; empty: replay
  bool withInput = false;
  Words words;
};

int replay(const ReplayArguments &arguments) {
  // How the handler of a crash has its reproducer written.
  if (!arguments.crashed.empty()) {
    if (arguments.withInput)
      keepStandardInput(io::readSource("-").text);
    leaveReproducer(arguments.words, arguments.crashed);
    return kOk;
  }
  if (arguments.directory.empty())
    throw UsageError("which reproducer? give its directory");
  Words words = readReproducer(arguments.directory);
  if (chdir(arguments.directory.c_str()) != 0)
    throw UserError("cannot enter '" + arguments.directory + "'");
  fmt::print(stderr, "note: in {}: sheaf {}\n", arguments.directory, fmt::join(words, " "));
  setenv("SHEAF_REPRODUCERS", "0", 1);
  std::vector<char *> argv{const_cast<char *>("sheaf")};
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  execv("/proc/self/exe", argv.data());
  throw UserError("cannot start sheaf again");
}

} // namespace

void addReplay(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(app, "replay", "runs again what an internal error left");
  auto arguments = std::make_shared<ReplayArguments>();
  sub->add_option("directory", arguments->directory, "the reproducer")->type_name("DIR");
  sub->add_option("--crashed", arguments->crashed)->group("");
  sub->add_option_function<std::string>("--crashed-with-input",
                                        [arguments](const std::string &by) {
                                          arguments->crashed = by;
                                          arguments->withInput = true;
                                        })
      ->group("");
  sub->add_option("words", arguments->words)->group("")->expected(0, -1);
  sub->callback([arguments, &action] {
    // Words after `--` fill the first place that is free.
    if (!arguments->crashed.empty() && !arguments->directory.empty())
      arguments->words.insert(arguments->words.begin(), arguments->directory);
    action = [arguments] { return replay(*arguments); };
  });
}

} // namespace sheaf::tool
