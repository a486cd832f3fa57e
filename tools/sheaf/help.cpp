//===- help.cpp - sheaf help ----------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/nearest.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

namespace sheaf::tool {

/// The command that the words name, and what it is called.
static std::pair<const CLI::App *, std::string> findCommand(const CLI::App &app,
                                                            const std::vector<std::string> &words) {
  std::pair<const CLI::App *, std::string> found(&app, app.get_name());
  for (const std::string &word : words) {
    const CLI::App *inner = nullptr;
    std::vector<std::string> names;
    for (const CLI::App *command : found.first->get_subcommands({})) {
      names.push_back(command->get_name());
      if (command->get_name() == word)
        inner = command;
    }
    if (!inner)
      throw UsageError(
          fmt::format("'{}' has no command '{}'{}", found.second, word, didYouMean(word, names)));
    found = {inner, found.second + " " + word};
  }
  return found;
}

void addHelp(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(app, "help", "lists the options of a command");
  auto words = std::make_shared<std::vector<std::string>>();
  sub->add_option("command", *words, "such as run, or bench kernels")->type_name("COMMAND");
  sub->callback([words, &app, &action] {
    action = [words, &app] {
      auto [command, name] = findCommand(app, *words);
      // CLI11's help() would be that of this command, since it was chosen.
      fmt::print("{}",
                 command->get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal));
      return kOk;
    };
  });
}

} // namespace sheaf::tool
