//===- help.cpp - sheaf help ----------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/nearest.h"
#include "tools/sheaf/options.h"
#include "tools/sheaf/tables.h"

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
    if (found.first == &app)
      for (const Table &table : tables())
        names.emplace_back(table.name);
    if (found.first == &app && !inner && findTable(word))
      throw UsageError(fmt::format("'{}' is a table: nothing comes after its name", word));
    if (!inner)
      throw UsageError(
          fmt::format("'{}' has no command '{}'{}", found.second, word, didYouMean(word, names)));
    found = {inner, found.second + " " + word};
  }
  return found;
}

static std::string tableNames() {
  std::string names;
  for (const Table &table : tables())
    names += (names.empty() ? "" : ", ") + std::string(table.name);
  return names;
}

void addHelp(CLI::App &app, Action &action) {
  CLI::App *sub = addCommand(app, "help", "lists the options of a command, or what there is");
  struct Arguments {
    std::vector<std::string> words;
    FormatOption format;
  };
  auto arguments = std::make_shared<Arguments>();
  std::string what = "a command, such as run or bench kernels, or a table:";
  for (const Table &table : tables())
    what += fmt::format("\n{} ({})", table.name, table.what);
  sub->add_option("command", arguments->words, what)->type_name("COMMAND");
  arguments->format.add(*sub);
  sub->add_flag_callback(
      "--json", [arguments] { arguments->format.format = "json"; }, "the same as --format json");
  sub->callback([arguments, &app, &action] {
    action = [arguments, &app] {
      const std::vector<std::string> &words = arguments->words;
      bool json = arguments->format.json();
      if (const Table *table = words.size() == 1 ? findTable(words[0]) : nullptr) {
        fmt::print("{}", json ? driver::jsonText(driver::reportJson(
                                    "help", 1, {{"table", table->name}, {"rows", table->rows()}}))
                              : tableText(*table));
        return kOk;
      }
      auto [command, name] = findCommand(app, words);
      if (json)
        throw UsageError(fmt::format("only tables are there as JSON: {}", tableNames()));
      // CLI11's help() would be that of this command, since it was chosen.
      fmt::print("{}",
                 command->get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal));
      return kOk;
    };
  });
}

} // namespace sheaf::tool
