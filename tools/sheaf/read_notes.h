//===- read_notes.h - What was read over of a command's data ----*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_READ_NOTES_H
#define SHEAF_TOOLS_SHEAF_READ_NOTES_H

#include "runtime/io/dataset.h"
#include "runtime/io/vocab.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sheaf::tool {

/// A command may read a file several times, and several files, each for a function of its own: what
/// it says of them it says once.
class ReadNotes {
public:
  /// What was read over in `file`, of which `count` instances were read for `entry`.
  void add(const io::ReadReport &report, int64_t count, const std::string &file,
           const rt::EntryDesc &entry);
  /// Words that vocabularies lack.
  void addUnknownWords(const io::VocabularyReader &tokens);
  /// Notes it, unless it was noted before.
  void once(const std::string &text);
  /// Notes what none of the functions takes.
  void noteIgnored();

private:
  struct File {
    std::string name;
    std::string fields; ///< what its format calls the parts of an instance
    int64_t instances = 0;
    std::map<std::string, int64_t> ignored;
  };
  std::vector<File> files_;
  std::vector<std::string> functions_;
  std::set<std::string> taken_; ///< the functions' parameters
  std::set<std::string> noted_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_READ_NOTES_H
