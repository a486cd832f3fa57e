#include "tools/sheaf/tokenizer.h"

#include "runtime/io/weights_path.h"
#include "runtime/model/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace sheaf::tool {

namespace {

/// Ends with 3 without the library, with 4 where there is no tokenizer in the file.
constexpr const char *kScript = R"(
import json, sys
try:
    from tokenizers import Tokenizer
except ImportError:
    sys.exit(3)
try:
    tokenizer = Tokenizer.from_file(sys.argv[1])
except Exception as error:
    print(str(error).splitlines()[0] if str(error) else type(error).__name__, file=sys.stderr)
    sys.exit(4)
tokenizer.no_padding()
tokenizer.no_truncation()

def strings(value):
    found = [value] if isinstance(value, str) else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return found + [each for each in inner if isinstance(each, str)]

def encode(value, numbers):
    if isinstance(value, str):
        return next(numbers)
    if isinstance(value, dict):
        return {key: next(numbers) if isinstance(each, str) else each for key, each in value.items()}
    if isinstance(value, list):
        return [next(numbers) if isinstance(each, str) else each for each in value]
    return value

def flush(lines):
    texts = [text for value, raw in lines if raw is None for text in strings(value)]
    numbers = iter([found.ids for found in tokenizer.encode_batch(texts)])
    for value, raw in lines:
        out = raw if raw is not None else json.dumps(encode(value, numbers))
        sys.stdout.buffer.write(out.encode() + b"\n")
    sys.stdout.flush()

waiting = []
for line in sys.stdin.buffer:
    line = line.decode().rstrip("\r\n")
    if not line.strip():
        waiting.append((None, ""))
    elif sys.argv[2] == "text":
        waiting.append((line, None))
    else:
        try:
            waiting.append((json.loads(line), None))
        except ValueError:
            waiting.append((None, line))  # whoever reads it says what is wrong
    if len(waiting) == 512:
        flush(waiting)
        waiting = []
flush(waiting)
)";

/// The process, which is killed when this goes before it has ended.
class Process {
public:
  Process(std::string python, std::string tokenizer, std::string form);
  ~Process() {
    ::close(socket_);
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
    std::fclose(errors_);
  }
  Process(const Process &) = delete;
  Process &operator=(const Process &) = delete;

  /// What it answers to all of a text. Throws UserError when nothing happens for so long.
  std::string answer(std::string_view text, std::chrono::seconds patience);
  /// How it ended, as waitpid says.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }
  /// The last line that it wrote to its standard error; empty: none.
  std::string lastWords() const;

private:
  pid_t pid_ = -1;
  int socket_ = -1;
  std::FILE *errors_ = nullptr;
};

Process::Process(std::string python, std::string tokenizer, std::string form) {
  int ends[2];
  errors_ = std::tmpfile();
  if (!errors_ || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw UserError(fmt::format("--tokenizer: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ::fileno(errors_), 2);
  posix_spawnattr_init(&attributes);
  // Guards of the command's output block signals, which it would inherit.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::string option = "-c", script = kScript;
  char *arguments[] = {python.data(),    option.data(), script.data(),
                       tokenizer.data(), form.data(),   nullptr};
  int failed = ::posix_spawnp(&pid_, python.c_str(), &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(ends[1]);
  socket_ = ends[0];
  if (!failed)
    return;
  ::close(socket_);
  std::fclose(errors_);
  throw UserError(fmt::format("--tokenizer runs Python, and cannot start '{}': {} (SHEAF_PYTHON in "
                              "the environment names another)",
                              python, std::strerror(failed)));
}

std::string Process::answer(std::string_view text, std::chrono::seconds patience) {
  std::string answer(1 << 16, '\0');
  size_t length = 0;
  bool sending = true;
  for (;;) {
    if (sending && text.empty()) {
      ::shutdown(socket_, SHUT_WR);
      sending = false;
    }
    pollfd waiting{socket_, static_cast<short>(sending ? POLLIN | POLLOUT : POLLIN), 0};
    auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
    int ready = ::poll(&waiting, 1, static_cast<int>(limit.count()));
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0)
      throw UserError(fmt::format(
          "--tokenizer: its process does not answer: nothing for {} seconds", patience.count()));
    if (sending && (waiting.revents & POLLOUT)) {
      ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0)
        text.remove_prefix(static_cast<size_t>(sent));
      else if (sent < 0 && errno != EAGAIN && errno != EINTR)
        text = {}; // it ended; how is seen below
    }
    if (!(waiting.revents & (POLLIN | POLLHUP | POLLERR)))
      continue;
    if (answer.size() - length < 1 << 15)
      answer.resize(answer.size() * 2);
    ssize_t got = ::recv(socket_, answer.data() + length, answer.size() - length, MSG_DONTWAIT);
    if (got > 0) {
      length += static_cast<size_t>(got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      answer.resize(length);
      return answer;
    }
  }
}

std::string Process::lastWords() const {
  std::string text(1 << 16, '\0');
  std::fseek(errors_, 0, SEEK_SET);
  text.resize(std::fread(text.data(), 1, text.size(), errors_));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::string environment(const char *name, const char *otherwise) {
  const char *value = std::getenv(name);
  return value && *value ? value : otherwise;
}

} // namespace

io::SourceText encodeTexts(const io::SourceText &text, const std::string &tokenizer,
                           io::ReadOptions &reading) {
  const io::DataFormat *json = io::parseDataFormat("jsonl");
  const io::DataFormat &given = reading.format ? *reading.format : io::detectFormat(text);
  bool isJson = &given == json;
  if (!isJson && &given != io::parseDataFormat("text"))
    throw UserError(
        fmt::format("{}: --tokenizer is for lines of text and of JSON, and this is read "
                    "as '{}'; --data-format text says otherwise",
                    text.name, given.name));
  std::string file =
      io::isFile(tokenizer) ? tokenizer : io::fileBeside(tokenizer, "tokenizer.json");
  if (!io::isFile(file) || (file != tokenizer && ::access(tokenizer.c_str(), F_OK) != 0))
    throw UserError(fmt::format("--tokenizer: there is no file '{}'", tokenizer));
  std::string python = environment("SHEAF_PYTHON", "python3");
  int seconds = std::atoi(environment("SHEAF_TOKENIZER_SECONDS", "120").c_str());
  Process process(python, file, isJson ? "json" : "text");
  std::string numbers =
      process.answer(text.text, std::chrono::seconds(std::clamp(seconds, 1, 86400)));
  int status = process.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
    throw UserError(
        fmt::format("--tokenizer needs the library tokenizers of Hugging Face: '{} -m pip "
                    "install tokenizers' installs it (SHEAF_PYTHON in the environment "
                    "names another Python)",
                    python));
  std::string words = process.lastWords();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 4)
    throw UserError(fmt::format("{}: no tokenizer: {}", file, words));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw UserError(fmt::format("--tokenizer: its process ended, {}{}",
                                WIFSIGNALED(status)
                                    ? fmt::format("by signal {}", WTERMSIG(status))
                                    : fmt::format("with exit code {}", WEXITSTATUS(status)),
                                words.empty() ? "" : ": " + words));
  reading.format = json;
  return {text.name, std::move(numbers)};
}

} // namespace sheaf::tool
