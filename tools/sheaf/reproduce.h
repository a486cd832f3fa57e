//===- reproduce.h - What an internal error leaves --------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_REPRODUCE_H
#define SHEAF_TOOLS_SHEAF_REPRODUCE_H

#include <string>
#include <string_view>
#include <vector>

namespace sheaf::tool {

/// The words of a command, without the program's name.
using Words = std::vector<std::string>;

/// Which of a command's words name what: inputs are copied into a reproducer, outputs go where they
/// harm nothing.
struct FileWord {
  size_t word = 0;
  size_t begin = 0; ///< where in the word the path begins, after `--data=` or `NAME=`
  bool isOutput = false;
};
std::vector<FileWord> fileWords(const Words &words);

/// Standard input was read: it cannot be read again.
void keepStandardInput(std::string_view text);

/// Copies all that a command reads into a new directory, with the command (`command.json`), and
/// returns its path; empty when nothing could be written.
std::string writeReproducer(const Words &words, const std::string &message);

/// Writes a reproducer of this command and says so on standard error, unless SHEAF_REPRODUCERS is 0
/// in the environment: for those who run a failing command many times.
void leaveReproducer(const Words &words, const std::string &message);

/// From now on a crash leaves a reproducer, too.
void catchCrashes(int argc, char **argv);

/// The command of a reproducer, to be run in its directory. Throws UserError.
Words readReproducer(const std::string &directory);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_REPRODUCE_H
