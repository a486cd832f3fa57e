//===- main.cpp - The command `sheaf` -------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/nearest.h"
#include "tools/sheaf/options.h"
#include "tools/sheaf/reproduce.h"

#include "runtime/model/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

using namespace sheaf;
using namespace sheaf::tool;

namespace {

/// What CLI11 says, in the words of our own messages.
std::string reworded(const CLI::ParseError &error) {
  std::string text = error.what();
  auto cut = [&](std::string_view mark) -> std::optional<std::pair<std::string, std::string>> {
    size_t at = text.find(mark);
    if (at == std::string::npos)
      return std::nullopt;
    return std::pair(text.substr(0, at), text.substr(at + mark.size()));
  };
  constexpr std::string_view conversion = "Could not convert: ";
  if (text.starts_with(conversion)) {
    text.erase(0, conversion.size());
    if (auto parts = cut(" = "))
      return fmt::format("{} takes a number, not '{}'", parts->first, parts->second);
  }
  if (auto parts = cut(": At Most 1 required but received "))
    return fmt::format("{} is given {} times", parts->first, parts->second);
  if (auto parts = cut(": 1 required "); parts && parts->second.ends_with(" missing"))
    return fmt::format("{} is given without its {}", parts->first,
                       parts->second.substr(0, parts->second.size() - strlen(" missing")));
  return error.what();
}

int usageError(const std::string &message, const std::string &command) {
  fmt::print(stderr, "error: {}\nsee '{} --help'\n", message, command);
  return kUsage;
}

/// Words that no option took: the first of them as an error.
int unexpectedWord(const CLI::App &app, const CLI::App *sub) {
  if (!sub) {
    std::string word = app.remaining().front();
    std::vector<std::string> names;
    for (const CLI::App *command : app.get_subcommands({}))
      names.push_back(command->get_name());
    bool option = word.size() > 1 && word[0] == '-';
    return usageError(fmt::format("unknown {} '{}'{}", option ? "option" : "command", word,
                                  didYouMean(word, names)),
                      "sheaf");
  }
  std::string command = "sheaf " + sub->get_name();
  std::vector<std::string> rest = sub->remaining();
  for (const CLI::App *inner : sub->get_subcommands()) {
    command += " " + inner->get_name();
    rest = inner->remaining();
    sub = inner;
  }
  std::string word = rest.front();
  if (word.size() < 2 || word[0] != '-')
    return usageError(fmt::format("unexpected argument '{}'", word), command);
  word = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const CLI::Option *option : sub->get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  return usageError(fmt::format("unknown option '{}'{}", word, didYouMean(word, names)), command);
}

/// CLI11's, with one empty line from group to group.
class HelpFormatter : public CLI::Formatter {
public:
  std::string make_help(const CLI::App *app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return CLI::detail::find_and_replace(CLI::Formatter::make_help(app, std::move(name), mode),
                                         "\n\n\n", "\n\n");
  }
};

void addCommands(CLI::App &app, Action &action) {
  auto below = [&](const char *heading, std::initializer_list<void (*)(CLI::App &, Action &)> all) {
    HelpGroup group(app, heading);
    for (auto add : all)
      add(app, action);
  };
  below("Models", {addCheck, addRun, addEval, addExplain, addCompile, addBuild});
  below("Training", {addTrain, addGradCheck, addInit});
  below("Time", {addBench, addTune});
  below("Data", {addVocab, addMake});
  below("Failures", {addReduce, addReplay});
  below("The command", {addHelp, addVersion});
}

int runCommand(int argc, char **argv) {
  CLI::App app("Compiles deep-learning programs written for one input and runs them for many.",
               "sheaf");
  app.allow_extras();
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", "sheaf " SHEAF_VERSION, "print the version and exit");
  app.footer(
      "'sheaf help COMMAND' lists the options of one, 'sheaf help help' what else is listed.");
  Action action;
  addCommands(app, action);
  std::vector<CLI::App *> pending = app.get_subcommands([](CLI::App *) { return true; });
  while (!pending.empty()) {
    CLI::App *sub = pending.back();
    pending.pop_back();
    sub->allow_extras();
    sub->fallthrough(false);
    // A repeatable option takes one value each time; else it would take the model after it, too.
    for (CLI::Option *option : sub->get_options([](CLI::Option *o) { return o->nonpositional(); }))
      option->allow_extra_args(false);
    std::vector<CLI::App *> inner = sub->get_subcommands([](CLI::App *) { return true; });
    pending.insert(pending.end(), inner.begin(), inner.end());
  }

  auto chosen = [&]() -> const CLI::App * {
    std::vector<CLI::App *> subs = app.get_subcommands();
    return subs.empty() ? nullptr : subs.front();
  };
  auto commandName = [&] {
    std::string name = "sheaf";
    for (const CLI::App *command = &app; !command->get_subcommands().empty();) {
      command = command->get_subcommands().front();
      name += " " + command->get_name();
    }
    return name;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    return app.exit(success); // --help, --version
  } catch (const UsageError &error) {
    return usageError(error.what(), commandName());
  } catch (const CLI::ParseError &error) {
    // An unknown option often swallows what another option needs: name the cause.
    if (chosen() && !chosen()->remaining().empty() && chosen()->remaining().front()[0] == '-')
      return unexpectedWord(app, chosen());
    return usageError(reworded(error), commandName());
  }
  if (app.remaining_size(true) > 0)
    return unexpectedWord(app, chosen());
  if (!action) {
    fmt::print("{}", app.help());
    return argc > 1 ? kUsage : kOk;
  }
  try {
    return action();
  } catch (const UsageError &error) {
    return usageError(error.what(), commandName());
  } catch (const DiagnosticsPrinted &) {
    return kFailed;
  }
}

int cannotWrite(const std::string &why) {
  fmt::print(stderr, "error: cannot write '<stdout>': {}\n", why);
  return kFailed;
}

int guarded(int argc, char **argv) {
  Words words(argv + std::min(argc, 1), argv + argc);
  catchCrashes(argc, argv);
  try {
    return runCommand(argc, argv);
  } catch (const UserError &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return kFailed;
  } catch (const RunError &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return kFailed;
  } catch (const std::bad_alloc &) {
    fmt::print(stderr, "error: the machine has no more memory\n");
    return kFailed;
  } catch (const InternalError &error) {
    fmt::print(stderr, "{}\n", error.what());
    leaveReproducer(words, error.what());
    return kInternal;
  } catch (const std::exception &error) {
    auto *system = dynamic_cast<const std::system_error *>(&error);
    if (system && ferror(stdout)) { // fmt's
      clearerr(stdout);
      return cannotWrite(system->code().message());
    }
    fmt::print(stderr, "internal error: {}\n", error.what());
    leaveReproducer(words, error.what());
    return kInternal;
  }
}

} // namespace

int main(int argc, char **argv) {
  int code = guarded(argc, argv);
  // What was buffered until now may find no room.
  std::cout.flush();
  errno = 0;
  if (fflush(stdout) != 0 || ferror(stdout)) {
    int failed = cannotWrite(errno ? strerror(errno) : "not all of it was taken");
    return code == kOk ? failed : code;
  }
  return code;
}
