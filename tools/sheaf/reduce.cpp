//===- reduce.cpp - sheaf reduce ------------------------------------------===//
#include "tools/sheaf/command.h"
#include "tools/sheaf/failure.h"
#include "tools/sheaf/interrupt.h"
#include "tools/sheaf/load.h"
#include "tools/sheaf/reproduce.h"

#include "compiler/driver/Library.h"
#include "compiler/reduce/Shrink.h"
#include "compiler/report/ReportJson.h"
#include "runtime/io/gzip.h"
#include "runtime/io/output.h"
#include "runtime/io/text.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <atomic>
#include <cctype>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace sheaf::tool {

namespace {

struct ReduceArguments {
  std::string what;
  std::string data;
  std::string command;
  std::string check;
  std::string output = "reduced";
  std::string timeout = "60";
  FormatOption format;
};

/// How a command ended, as far as two failures are compared.
struct Failure {
  bool failed = false;
  std::string text; ///< for people
  std::string kind; ///< equal for failures of one kind
};

/// The words of a text that are no names or numbers.
std::string wordsOf(const std::string &text) {
  std::string words, word;
  bool quoted = false;
  for (char c : text + ' ') {
    if (c == '\'' || c == '"')
      quoted = !quoted;
    else if (std::isalpha(static_cast<unsigned char>(c)) && !quoted)
      word += c;
    else if (!word.empty()) {
      words += word.size() > 1 ? word + ' ' : "";
      word.clear();
    }
  }
  return words;
}

/// What the message of `[PLACE: ][error: ][instance N: ][PLACE: ]MESSAGE[: MORE ...]` says, without
/// names, numbers and places.
std::string kindOf(const std::string &line) {
  std::string kind;
  int left = 2; // parts of the message
  for (std::string rest = line; !rest.empty() && left > 0;) {
    size_t colon = rest.find(": ");
    std::string part = rest.substr(0, colon);
    rest = colon == std::string::npos ? "" : rest.substr(colon + 2);
    if (part.find('/') != std::string::npos || part.find(".sheaf") != std::string::npos)
      continue;
    kind += wordsOf(part) + ':';
    // What is asked of values is shortened as well.
    if (part == "check failed")
      break;
    bool isPrefix = part == "error" || part == "internal error" || part.starts_with("instance ");
    left -= !isPrefix;
  }
  return kind;
}

/// A directory that goes with its owner.
class Workplace {
public:
  Workplace() {
    std::string name = (fs::temp_directory_path() / "sheaf-reduce-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw UserError("cannot make a directory in " + fs::temp_directory_path().string());
    path_ = name;
  }
  ~Workplace() { remove(); }
  void remove() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Workplace(const Workplace &) = delete;
  Workplace &operator=(const Workplace &) = delete;
  const fs::path &path() const { return path_; }

private:
  fs::path path_;
};

class Reducer {
public:
  explicit Reducer(const ReduceArguments &arguments)
      : arguments_(arguments), seconds_(parseNumber("--timeout", arguments.timeout)) {
    fs::path model, data;
    if (fs::is_directory(arguments.what))
      fromReproducer(model, data);
    else
      fromCommand(model, data);
    SourceFile source = withUsedFiles(io::readSource(model.string()));
    if (source.isProgram())
      throw UserError("only a model's source can be reduced, not '" + model.string() + "'");
    parts_ = driver::ownFiles(source);
    modelName_ = parts_.front().path;
    if (!data.empty()) {
      dataName_ = data.filename();
      if (std::any_of(parts_.begin(), parts_.end(),
                      [&](const driver::OwnFile &part) { return dataName_ == part.path; }))
        dataName_ += ".data";
      lines_ = split(io::readData(data.string()).text);
    }
  }

  int run() {
    bool asJson = arguments_.format.json();
    InterruptGuard guard([this] { cleanUp(); });
    check();
    wanted_ = attempt();
    if (!wanted_.failed)
      throw UserError(arguments_.check.empty()
                          ? fmt::format("'sheaf {}' does not fail: there is nothing to reduce",
                                        fmt::join(commandOf(modelName_, dataName_), " "))
                          : wanted_.text);
    fmt::print(stderr, "note: what is kept: {}\n", wanted_.text);
    Sizes before = sizes();
    save();
    // Fewer instances first: every run that follows is shorter.
    reduceInstances();
    for (std::string last; last != program();) {
      last = program();
      reduceProgram();
      reduceInstances();
      reduceInsides();
    }
    save();
    Sizes after = sizes();
    fmt::print("{}", asJson ? json(before, after) : text(before, after));
    return kOk;
  }

private:
  //===--- What became of it -------------------------------------------------===//

  struct Sizes {
    int64_t lines, bytes, instances;
  };
  Sizes sizes() const {
    std::string text = program();
    return {std::count(text.begin(), text.end(), '\n'), static_cast<int64_t>(text.size()),
            static_cast<int64_t>(lines_.size())};
  }

  /// All of it: the model and the files that it uses.
  std::string program() const {
    std::string text;
    for (const driver::OwnFile &part : parts_)
      text += part.text;
    return text;
  }

  /// The command that fails in the same way, on the smaller files.
  Words reducedCommand() const {
    fs::path directory = arguments_.output;
    return commandOf(directory / modelName_,
                     dataName_.empty() ? fs::path() : directory / dataName_);
  }

  std::string text(const Sizes &before, const Sizes &after) const {
    std::string text = fmt::format("{} lines of program to {}, {} bytes to {}", before.lines,
                                   after.lines, before.bytes, after.bytes);
    if (!dataName_.empty())
      text += fmt::format(", {} to {}", io::plural(before.instances, "instance"), after.instances);
    text += fmt::format("; {} runs\n", runs_);
    if (arguments_.check.empty())
      text += fmt::format("sheaf {}\n", fmt::join(reducedCommand(), " "));
    return text;
  }

  std::string json(const Sizes &before, const Sizes &after) const {
    auto sizes = [&](const Sizes &of) {
      driver::Json json = {{"lines", of.lines}, {"bytes", of.bytes}};
      if (!dataName_.empty())
        json["instances"] = of.instances;
      return json;
    };
    driver::Json json = driver::reportJson("reduce", 1,
                                           {{"kept", wanted_.text},
                                            {"before", sizes(before)},
                                            {"after", sizes(after)},
                                            {"runs", runs_},
                                            {"output", arguments_.output}});
    if (arguments_.check.empty())
      json["arguments"] = reducedCommand();
    return driver::jsonText(json);
  }

  //===--- What is reduced ---------------------------------------------------===//

  void fromReproducer(fs::path &model, fs::path &data) {
    if (!arguments_.command.empty() || !arguments_.data.empty())
      throw UsageError("a reproducer has its own command and data");
    words_ = readReproducer(arguments_.what);
    directory_ = arguments_.what;
    for (const FileWord &file : fileWordsIn(directory_)) {
      std::string path = words_[file.word].substr(file.begin);
      bool isData = words_[file.word].starts_with("--data=") || words_[file.word - 1] == "--data";
      if (isData && !file.isOutput) {
        data = directory_ / path;
        dataWord_ = file;
      } else if (model.empty() && !file.isOutput && isModel(directory_ / path)) {
        model = directory_ / path;
        modelWord_ = file;
      }
    }
    if (model.empty())
      throw UserError(arguments_.what + ": its command names no model");
  }

  /// Weights and vocabularies are files of the command, too.
  static bool isModel(const fs::path &path) {
    return path.extension() == ".sheaf" ||
           (path.extension() != ".safetensors" && fs::is_regular_file(path) &&
            withUsedFiles(io::readSource(path.string())).isProgram());
  }

  /// Paths of a reproducer count from its directory.
  std::vector<FileWord> fileWordsIn(const fs::path &directory) const {
    fs::path here = fs::current_path();
    fs::current_path(directory);
    std::vector<FileWord> files = fileWords(words_);
    fs::current_path(here);
    return files;
  }

  void fromCommand(fs::path &model, fs::path &data) {
    model = arguments_.what;
    data = arguments_.data;
    std::istringstream stream(!arguments_.command.empty() ? arguments_.command
                              : data.empty()              ? "check"
                                                          : "run --verify");
    for (std::string word; stream >> word;)
      words_.push_back(word);
    if (words_.empty() || words_[0].starts_with('-'))
      throw UsageError("--command takes a command of sheaf, such as 'run --verify'");
    // Ahead of all options: some take all words that follow.
    words_.insert(words_.begin() + 1, "");
    modelWord_ = {1, 0, false};
    if (!data.empty()) {
      words_.push_back("--data");
      words_.push_back("");
      dataWord_ = {words_.size() - 1, 0, false};
    }
  }

  Words commandOf(const fs::path &model, const fs::path &data) const {
    Words words = words_;
    auto put = [&](const FileWord &file, const fs::path &path) {
      words[file.word].replace(file.begin, std::string::npos, path.string());
    };
    put(modelWord_, model);
    if (!dataName_.empty())
      put(dataWord_, data);
    return words;
  }

  static std::vector<std::string> split(const std::string &text) {
    std::vector<std::string> lines;
    io::LineReader reader(text);
    for (std::string_view line; reader.next(line);)
      if (line.find_first_not_of(" \t") != std::string_view::npos)
        lines.emplace_back(line);
    return lines;
  }

  static std::string joined(const std::vector<std::string> &lines) {
    std::string text;
    for (const std::string &line : lines)
      text += line + '\n';
    return text;
  }

  void save() const {
    fs::create_directories(arguments_.output);
    for (const driver::OwnFile &part : parts_)
      write(part.path, part.text);
    if (!dataName_.empty())
      write(dataName_, joined(lines_));
  }

  void write(const fs::path &name, const std::string &text) const {
    fs::path path = fs::path(arguments_.output) / name;
    fs::create_directories(path.parent_path());
    io::AtomicFile file(path.string());
    file.write(text);
    file.commit();
  }

  //===--- Whether it fails --------------------------------------------------===//

  /// What the checker says of a program, in this process: most candidates go no further. Only when
  /// the program that is reduced passes it.
  void check() {
    driver::CompileOptions options;
    for (size_t i = 0; i < words_.size(); ++i) {
      auto value = [&](const std::string &option) -> std::optional<std::string> {
        if (words_[i].starts_with(option + "="))
          return words_[i].substr(option.size() + 1);
        if (words_[i] == option && i + 1 < words_.size())
          return words_[i + 1];
        return std::nullopt;
      };
      for (const char *option : {"--entry", "--loss", "--metric"})
        if (std::optional<std::string> name = value(option))
          options.entry = *name;
    }
    options_ = options;
    // In a process of its own first: the checker may be what breaks.
    writeProgram();
    checked_ = start({"/proc/self/exe", "check", (work_.path() / modelName_).string()}, "") == 0;
  }

  void writeProgram() const {
    std::unique_lock lock = toWrite();
    for (const driver::OwnFile &part : parts_) {
      fs::path path = work_.path() / part.path;
      fs::create_directories(path.parent_path());
      io::writeFile(path, part.text);
    }
  }

  /// With the candidate in the place of a part.
  bool passesCheck(size_t part, const std::string &candidate) const {
    if (!checked_)
      return true;
    if (part != 0) {
      std::unique_lock lock = toWrite();
      io::writeFile(work_.path() / parts_[part].path, candidate);
    }
    SourceFile source = withUsedFiles(
        {(work_.path() / modelName_).string(), part == 0 ? candidate : parts_.front().text});
    Diagnostics unheard(source);
    try {
      return driver::check(source, options_, unheard);
    } catch (const std::exception &) {
      return false;
    }
  }

  /// When the command is interrupted: what was found is in the output directory already.
  void cleanUp() {
    {
      std::lock_guard lock(writing_);
      interrupted_ = true;
    }
    if (pid_t child = child_; child > 0)
      kill(-child, SIGKILL);
    // It writes there as long as it is.
    for (int i = 0; i < 1000 && child_ > 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    work_.remove();
  }

  /// To be held while files of the workplace are written, or a process is started that writes some:
  /// none are once the command is interrupted.
  std::unique_lock<std::mutex> toWrite() const {
    std::unique_lock lock(writing_);
    if (interrupted_) {
      lock.unlock();
      stopWhenInterrupted();
    }
    return lock;
  }

  /// The process ends in another thread.
  void stopWhenInterrupted() const {
    while (interrupted_)
      pause();
  }

  /// Runs a command with its output in the workplace. Returns what waitpid() does, or -1 when it
  /// does not end.
  int start(Words words, const std::string &directory) {
    ++runs_;
    std::unique_lock lock = toWrite();
    fs::remove(work_.path() / "failure");
    pid_t child = fork();
    if (child < 0)
      throw UserError("the machine starts no more processes");
    if (child == 0) {
      setpgid(0, 0);
      sigset_t none;
      sigemptyset(&none);
      sigprocmask(SIG_SETMASK, &none, nullptr);
      int out = open((work_.path() / "stdout").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
      int err = open((work_.path() / "stderr").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
      int in = open("/dev/null", O_RDONLY);
      dup2(in, 0), dup2(out, 1), dup2(err, 2);
      setenv("SHEAF_REPRODUCERS", "0", 1);
      setenv(kFailureFile, (work_.path() / "failure").c_str(), 1);
      // Nobody compiles a candidate again.
      setenv("SHEAF_STORE", "none", 1);
      setenv("MODEL", (work_.path() / modelName_).c_str(), 1);
      setenv("DATA", (work_.path() / dataName_).c_str(), 1);
      if (!directory.empty() && chdir(directory.c_str()) != 0)
        _exit(127);
      std::vector<char *> argv;
      for (std::string &word : words)
        argv.push_back(word.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    setpgid(child, child);
    child_ = child;
    lock.unlock();
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds_);
    for (int status = 0;;) {
      if (waitpid(child, &status, WNOHANG) == child) {
        child_ = 0;
        stopWhenInterrupted(); // which may be why it ended
        return status;
      }
      if (std::chrono::steady_clock::now() > end) {
        kill(-child, SIGKILL);
        waitpid(child, &status, 0);
        child_ = 0;
        return -1;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  /// What the files in the workplace do.
  Failure attempt() {
    writeProgram();
    if (!dataName_.empty()) {
      std::unique_lock lock = toWrite();
      io::writeFile(work_.path() / dataName_, joined(lines_));
    }
    if (!arguments_.check.empty()) {
      int status = start({"/bin/sh", "-c", arguments_.check}, work_.path().string());
      bool holds = WIFEXITED(status) && status != -1 && WEXITSTATUS(status) == 0;
      if (holds)
        return {true, "'" + arguments_.check + "' holds", "check"};
      std::string how = status == -1          ? fmt::format("does not end within {} s", seconds_)
                        : WIFSIGNALED(status) ? fmt::format("ends by signal {}", WTERMSIG(status))
                                              : fmt::format("exit code {}", WEXITSTATUS(status));
      std::string line = tellingLine();
      return {false,
              "the check does not succeed for what is to be reduced: " + how +
                  (line.empty() ? "" : ": " + line),
              ""};
    }
    Words words = commandOf(work_.path() / modelName_, work_.path() / dataName_);
    words.insert(words.begin(), "/proc/self/exe");
    int status = start(words, directory_.string());
    if (!wanted_.failed && status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == kUsage)
      throw UsageError("--command: " + tellingLine());
    if (status == -1)
      return {true, fmt::format("does not end within {} s", seconds_), "endless"};
    if (WIFSIGNALED(status)) {
      std::string text = fmt::format("ends by signal {}", WTERMSIG(status));
      return {true, text, text};
    }
    if (WEXITSTATUS(status) == 0)
      return {};
    std::string line = tellingLine();
    return {
        true,
        fmt::format("exit code {}{}", WEXITSTATUS(status),
                    line.empty() ? ", for any reason: the command does not say why" : ": " + line),
        fmt::format("{}: {}", WEXITSTATUS(status), kindOf(line))};
  }

  std::string outputOf(const char *stream) const {
    return io::readSource((work_.path() / stream).string()).text;
  }

  /// The line that says what is wrong: in the output, or beside a report.
  std::string tellingLine() const {
    if (fs::exists(work_.path() / "failure"))
      for (const std::string &line : split(outputOf("failure")))
        return line;
    for (const std::string &line : split(outputOf("stderr")))
      if (!line.starts_with("note: "))
        return line;
    return "";
  }

  bool stillFails() {
    Failure failure = attempt();
    return failure.failed && failure.kind == wanted_.kind;
  }

  bool keep(std::string &what, std::string candidate) {
    std::swap(what, candidate);
    if (stillFails()) {
      save();
      return true;
    }
    std::swap(what, candidate);
    return false;
  }

  //===--- Steps -------------------------------------------------------------===//

  void reduceProgram() {
    for (size_t i = 0; i < parts_.size(); ++i) {
      reduce::shrink(reduce::programPieces(parts_[i].text), [&](const reduce::Pieces &pieces) {
        std::string candidate = reduce::textOf(pieces) + "\n";
        return passesCheck(i, candidate) && keep(parts_[i].text, std::move(candidate));
      });
      writeProgram();
      dropUnused();
    }
  }

  /// Files that nothing uses any more.
  void dropUnused() {
    std::set<std::string> used;
    SourceFile source = withUsedFiles({(work_.path() / modelName_).string(), parts_.front().text});
    for (const SourceText &file : source.files())
      used.insert(fs::path(file.name()).lexically_relative(work_.path()).string());
    std::erase_if(parts_, [&](const driver::OwnFile &part) {
      bool isUnused = part.path != modelName_ && !used.contains(part.path);
      if (isUnused)
        fs::remove(fs::path(arguments_.output) / part.path);
      return isUnused;
    });
  }

  void reduceInstances() {
    if (lines_.size() < 2)
      return;
    const std::vector<std::string> all = lines_;
    reduce::shrinkList(all.size(), [&](const std::vector<size_t> &left) {
      std::vector<std::string> before = std::move(lines_);
      lines_.clear();
      for (size_t i : left)
        lines_.push_back(all[i]);
      if (stillFails()) {
        save();
        return true;
      }
      lines_ = std::move(before);
      return false;
    });
  }

  void reduceInsides() {
    for (size_t i = 0; i < lines_.size(); ++i)
      reduce::shrink(reduce::dataPieces(lines_[i]), [&](const reduce::Pieces &pieces) {
        return keep(lines_[i], reduce::textOf(pieces));
      });
  }

  const ReduceArguments &arguments_;
  int64_t seconds_;
  Workplace work_;
  fs::path directory_; ///< where the command runs; empty: here
  Words words_;
  FileWord modelWord_, dataWord_;
  fs::path modelName_, dataName_;
  std::vector<driver::OwnFile> parts_; ///< the model, then what it uses
  std::vector<std::string> lines_;
  driver::CompileOptions options_;
  bool checked_ = false;
  Failure wanted_;
  int64_t runs_ = 0;
  std::atomic<pid_t> child_ = 0; ///< the process that runs, or 0
  mutable std::mutex writing_;
  std::atomic<bool> interrupted_ = false;
};

} // namespace

void addReduce(CLI::App &app, Action &action) {
  CLI::App *sub =
      addCommand(app, "reduce", "makes a failing program and its data smaller; keeps what fails");
  auto arguments = std::make_shared<ReduceArguments>();
  sub->add_option("what", arguments->what, "the model, or a reproducer of an internal error")
      ->required()
      ->type_name("MODEL|DIR");
  sub->add_option("--data", arguments->data, "the instances, one a line")->type_name("FILE");
  sub->add_option(
         "--command", arguments->command,
         "what fails: a command of sheaf, to which model and data are given (default: 'run "
         "--verify', without data 'check')")
      ->type_name("TEXT");
  sub->add_option(
         "--check", arguments->check,
         "instead: a shell command that succeeds for what is of interest; $MODEL and $DATA "
         "name the files")
      ->type_name("TEXT")
      ->excludes("--command");
  sub->add_option("-o", arguments->output, "where the smaller files go (default: reduced)")
      ->type_name("DIR");
  sub->add_option("--timeout", arguments->timeout, "seconds after which a run does not end")
      ->type_name("S");
  arguments->format.add(*sub);
  sub->callback(
      [arguments, &action] { action = [arguments] { return Reducer(*arguments).run(); }; });
}

} // namespace sheaf::tool
