//===- command.h - The subcommands of `sheaf` -------------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_COMMAND_H
#define SHEAF_TOOLS_SHEAF_COMMAND_H

#include "runtime/model/error.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <stdexcept>

namespace sheaf::tool {

/// Exit codes of the command.
enum Exit : int {
  kOk = 0,
  kFailed = 1,  ///< the program, the data or a file is wrong, or an instance failed
  kUsage = 2,   ///< the command line is wrong
  kInternal = 3 ///< a bug of ours
};

/// A wrong command line that CLI11 cannot know to be wrong.
class UsageError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Reads an option's value: what that throws as UserError is a wrong command line.
template <typename Read> auto fromCommandLine(Read read) {
  try {
    return read();
  } catch (const UserError &error) {
    throw UsageError(error.what());
  }
}

/// What the command line asked for; runs after all of it was read. Returns the exit code.
using Action = std::function<int()>;

/// A new subcommand of `app`, below the heading of the HelpGroup that is alive. (CLI11 is all
/// headers: whoever makes an App compiles all of it.)
CLI::App *addCommand(CLI::App &app, const char *name, const char *description);

/// Each adds one subcommand to the application and sets `action` when that was chosen.
void addCheck(CLI::App &app, Action &action);
void addRun(CLI::App &app, Action &action);
void addBuild(CLI::App &app, Action &action);
void addReduce(CLI::App &app, Action &action);
void addReplay(CLI::App &app, Action &action);
void addBench(CLI::App &app, Action &action);
void addBenchKernels(CLI::App &bench, Action &action); ///< of `sheaf bench`
void addCompile(CLI::App &app, Action &action);
void addExplain(CLI::App &app, Action &action);
void addEval(CLI::App &app, Action &action);
void addGradCheck(CLI::App &app, Action &action);
void addInit(CLI::App &app, Action &action);
void addVocab(CLI::App &app, Action &action);
void addMake(CLI::App &app, Action &action);
void addTrain(CLI::App &app, Action &action);
void addTune(CLI::App &app, Action &action);
void addHelp(CLI::App &app, Action &action);
void addVersion(CLI::App &app, Action &action);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_COMMAND_H
