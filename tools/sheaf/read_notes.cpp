//===- read_notes.cpp -----------------------------------------------------===//

#include "tools/sheaf/read_notes.h"

#include "tools/sheaf/load.h"

#include "runtime/io/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace sheaf::tool {

void ReadNotes::once(const std::string &text) {
  if (noted_.insert(text).second)
    note(text);
}

void ReadNotes::add(const io::ReadReport &report, int64_t count, const std::string &file,
                    const rt::EntryDesc &entry) {
  if (report.skipped)
    once(fmt::format("{}: {} could not be read and {} skipped; the first: {}", file,
                     io::plural(report.skipped, report.record), report.skipped == 1 ? "is" : "are",
                     report.firstSkipped));
  if (std::find(functions_.begin(), functions_.end(), entry.name) == functions_.end())
    functions_.push_back(entry.name);
  taken_.insert(entry.argNames.begin(), entry.argNames.end());
  auto known = std::find_if(files_.begin(), files_.end(),
                            [&](const File &other) { return other.name == file; });
  if (known == files_.end())
    known = files_.insert(files_.end(), {file, report.fields, 0, {}});
  known->instances = std::max(known->instances, count);
  for (const auto &[name, times] : report.ignored) {
    int64_t &most = known->ignored[name];
    most = std::max(most, times);
  }
}

void ReadNotes::addUnknownWords(const io::VocabularyReader &tokens) {
  for (const io::VocabularyReader::Unknown &unknown : tokens.unknown())
    if (unknown.unknown) {
      std::string examples;
      for (const std::string &word : unknown.examples)
        examples += (examples.empty() ? "" : ", ") + io::quoted(word);
      once(fmt::format(
          "{} of {} are not in the vocabulary of {} and became <unk>: {}{}", unknown.unknown,
          io::plural(unknown.words, "word"), io::tokenTypeName(unknown.vocab), examples,
          static_cast<int64_t>(unknown.examples.size()) < unknown.unknown ? ", ..." : ""));
    }
}

void ReadNotes::noteIgnored() {
  File all{"", "", 0, {}};
  for (File &file : files_) {
    for (const std::string &name : taken_)
      file.ignored.erase(name);
    if (file.ignored.empty())
      continue;
    all.name += (all.name.empty() ? "" : ", ") + file.name;
    if (all.fields.find(file.fields) == std::string::npos)
      all.fields += (all.fields.empty() ? "" : " and ") + file.fields;
    all.instances += file.instances;
    for (const auto &[name, count] : file.ignored)
      all.ignored[name] += count;
  }
  if (all.ignored.empty())
    return;
  std::string functions, names;
  for (const std::string &function : functions_)
    functions += fmt::format("{}'{}'", functions.empty() ? "" : ", ", function);
  for (const auto &[name, count] : all.ignored)
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", io::quoted(name), count);
  note(fmt::format("{}: {} that {} {} not take are ignored, in so many of {}: {}", all.name,
                   all.fields, functions, functions_.size() == 1 ? "does" : "do",
                   io::plural(all.instances, "instance"), names));
}

} // namespace sheaf::tool
