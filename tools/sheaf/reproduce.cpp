//===- reproduce.cpp - What an internal error leaves ----------------------===//
#include "tools/sheaf/reproduce.h"

#include "tools/sheaf/load.h"

#include "compiler/driver/Compiler.h"
#include "compiler/driver/Library.h"
#include "compiler/report/ReportJson.h"
#include "compiler/target/Target.h"
#include "runtime/io/text.h"
#include "runtime/memory/sanitizer.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace sheaf::tool {

namespace {

/// Larger inputs are named where they are, not copied.
constexpr uint64_t kMostBytes = uint64_t{256} << 20;

constexpr std::array kOutputs = {"-o",     "--emit-header", "--trace", "--stats-file",
                                 "--html", "--dump",        "--store"};

std::string standardInput;
bool standardInputRead = false;

uint64_t sizeOf(const fs::path &path) {
  std::error_code failed;
  if (fs::is_regular_file(path, failed))
    return fs::file_size(path, failed);
  uint64_t sum = 0;
  for (auto it = fs::recursive_directory_iterator(path, failed);
       !failed && it != fs::recursive_directory_iterator(); it.increment(failed))
    if (it->is_regular_file(failed))
      sum += it->file_size(failed);
  return sum;
}

/// The same name for the same failing command, so that a loop does not fill a disk.
std::string nameFor(const Words &words, const std::string &message) {
  std::string hash = io::contentHash(fmt::format("{}\n{}\n", fmt::join(words, "\n"), message));
  return "sheaf-reproducer-" + hash.substr(0, 8);
}

/// Copies inputs beside each other, and vocabularies beside their weights.
class Files {
public:
  explicit Files(fs::path directory) : directory_(std::move(directory)) {}

  /// The path inside of the reproducer.
  std::string copy(const fs::path &from) {
    if (from.extension() == ".sheaf")
      if (std::string model = copyModel(from); !model.empty())
        return model;
    if (sizeOf(from) > kMostBytes)
      return fs::absolute(from).string();
    std::string name =
        from.filename().empty() ? from.parent_path().filename().string() : from.filename().string();
    std::string to = "files/" + name;
    for (int n = 2; !taken_.insert(to).second; ++n)
      to = fmt::format("files/{}/{}", n, name);
    fs::create_directories((directory_ / to).parent_path());
    fs::copy(from, directory_ / to, fs::copy_options::recursive);
    std::string stem = from.stem().string() + ".";
    if (stem.starts_with("checkpoint-")) // the training's
      stem = "last.";
    if (from.extension() == ".safetensors")
      for (const fs::directory_entry &entry :
           fs::directory_iterator(from.has_parent_path() ? from.parent_path() : "."))
        if (std::string beside = entry.path().filename().string();
            beside.starts_with(stem) && beside.ends_with("vocab.txt"))
          fs::copy(entry.path(), (directory_ / to).parent_path() / beside);
    return to;
  }

private:
  /// A model that uses others lies beside them as it did. Empty: it uses none.
  std::string copyModel(const fs::path &from) {
    SourceFile source = withUsedFiles(io::readSource(from.string()));
    std::vector<driver::OwnFile> own = driver::ownFiles(source);
    if (own.size() == 1)
      return "";
    std::string under = "files/" + from.stem().string();
    for (int n = 2; !taken_.insert(under).second; ++n)
      under = fmt::format("files/{}/{}", n, from.stem().string());
    for (const driver::OwnFile &file : own) {
      fs::path to = directory_ / under / file.path;
      fs::create_directories(to.parent_path());
      io::writeFile(to, file.text);
    }
    return (fs::path(under) / own.front().path).string();
  }

  fs::path directory_;
  std::set<std::string> taken_;
};

std::string write(const fs::path &directory, Words words, const std::string &message) {
  std::error_code failed;
  fs::create_directory(directory, failed);
  if (failed)
    return "";
  Files files(directory);
  for (const FileWord &file : fileWords(words)) {
    std::string &word = words[file.word];
    std::string path = word.substr(file.begin);
    if (file.isOutput)
      path = path == "-" ? path : "output/" + fs::path(path).filename().string();
    else if (path != "-")
      path = files.copy(path);
    else if (standardInputRead) {
      fs::create_directories(directory / "files");
      std::ofstream(directory / "files/standard_input", std::ios::binary) << standardInput;
      path = "files/standard_input";
    }
    word.replace(file.begin, std::string::npos, path);
  }
  fs::create_directories(directory / "output");
  std::vector<std::string> passes;
  for (const driver::Pass &pass : driver::passes())
    passes.push_back(pass.name);
  driver::Json json = driver::reportJson("reproducer", 1,
                                         {{"sheaf", SHEAF_VERSION},
                                          {"cpu", target::detect("host").cpu},
                                          {"message", message},
                                          {"arguments", words},
                                          {"passes", passes}});
  std::ofstream out(directory / "command.json");
  out << driver::jsonText(json);
  return out.flush() ? directory.string() : "";
}

/// The command as a signal handler can use it, and standard input as far as it was read.
std::vector<char *> crashWords;
const char *keptInput = nullptr;
size_t keptBytes = 0;

/// Makes what was read of standard input readable there again. Only system calls.
void giveBackInput() {
  int file = memfd_create("standard input", 0);
  if (file < 0)
    return;
  for (size_t done = 0; done < keptBytes;) {
    ssize_t written = ::write(file, keptInput + done, keptBytes - done);
    if (written <= 0)
      return;
    done += static_cast<size_t>(written);
  }
  if (lseek(file, 0, SEEK_SET) == 0 && dup2(file, STDIN_FILENO) == STDIN_FILENO)
    crashWords[2] = const_cast<char *>("--crashed-with-input");
}

void onCrash(int signal) {
  // Nothing of this process can be trusted: another one writes the reproducer.
  if (pid_t child = fork(); child == 0) {
    if (keptInput)
      giveBackInput();
    crashWords[3] = const_cast<char *>(signal == SIGSEGV   ? "segmentation fault"
                                       : signal == SIGABRT ? "abort"
                                       : signal == SIGFPE  ? "arithmetic exception"
                                       : signal == SIGILL  ? "illegal instruction"
                                                           : "bus error");
    execv("/proc/self/exe", crashWords.data());
    _exit(1);
  } else if (child > 0) {
    waitpid(child, nullptr, 0);
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

} // namespace

std::vector<FileWord> fileWords(const Words &words) {
  std::vector<FileWord> files;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string &word = words[i];
    bool isOption = word.size() > 1 && word[0] == '-';
    std::string option = isOption ? word.substr(0, word.find('=')) : words[i - 1];
    bool isOutput = std::find(kOutputs.begin(), kOutputs.end(), option) != kOutputs.end();
    size_t begin = 0;
    std::error_code failed;
    if (!fs::exists(word, failed) && word.find('=') != std::string::npos)
      begin = word.find('=') + 1;
    std::string path = word.substr(begin);
    if ((isOption && begin == 0) || (option == "--store" && path == "none"))
      continue;
    if (isOutput || (path == "-" && option == "--data") ||
        (!path.empty() && path != "-" && fs::exists(path, failed)))
      files.push_back({i, begin, isOutput});
  }
  return files;
}

void keepStandardInput(std::string_view text) {
  standardInput = text;
  standardInputRead = true;
  keptInput = standardInput.data();
  keptBytes = standardInput.size();
}

std::string writeReproducer(const Words &words, const std::string &message) {
  std::string name = nameFor(words, message);
  for (const fs::path &parent : {fs::path("."), fs::temp_directory_path()}) {
    fs::path directory = parent == "." ? fs::path(name) : parent / name;
    if (fs::exists(directory / "command.json"))
      return directory.string();
    std::string written = write(directory, words, message);
    if (!written.empty())
      return written;
  }
  return "";
}

void leaveReproducer(const Words &words, const std::string &message) {
  const char *wanted = getenv("SHEAF_REPRODUCERS");
  if (wanted && std::string_view(wanted) == "0")
    return;
  std::string directory;
  try {
    directory = writeReproducer(words, message);
  } catch (const std::exception &) {
    // The error that is reported matters more than this one.
  }
  if (directory.empty())
    fmt::print(stderr, "note: this is a bug of Sheaf; a reproducer could not be written\n");
  else
    fmt::print(stderr,
               "note: this is a bug of Sheaf; program, data and options are in {0}: 'sheaf replay "
               "{0}' runs it again, 'sheaf reduce {0}' makes it smaller\n",
               directory);
}

void catchCrashes(int argc, char **argv) {
#if !defined(SHEAF_ASAN) && !defined(SHEAF_TSAN)
  crashWords = {argv[0], const_cast<char *>("replay"), const_cast<char *>("--crashed"), nullptr,
                const_cast<char *>("--")};
  crashWords.insert(crashWords.end(), argv + 1, argv + argc);
  crashWords.push_back(nullptr);
  // Generated code runs on stacks of its own, which may be what is used up.
  static std::array<char, 1 << 16> stack;
  stack_t alternative{};
  alternative.ss_sp = stack.data();
  alternative.ss_size = stack.size();
  sigaltstack(&alternative, nullptr);
  struct sigaction action{};
  action.sa_handler = onCrash;
  action.sa_flags = SA_ONSTACK | SA_RESETHAND | SA_NODEFER;
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    sigaction(signal, &action, nullptr);
#else
  (void)argc, (void)argv, (void)onCrash;
#endif
}

Words readReproducer(const std::string &directory) {
  io::SourceText text = io::readSource(directory + "/command.json");
  nlohmann::json json = nlohmann::json::parse(text.text, nullptr, /*allow_exceptions=*/false);
  try {
    if (json.at("report") == "reproducer" && json.at("version") == 1)
      return json.at("arguments").get<Words>();
  } catch (const nlohmann::json::exception &) {
  }
  throw UserError(text.name + ": no reproducer that this version can read");
}

} // namespace sheaf::tool
