#include "tools/sheaf/tokenizer.h"

#include "runtime/io/text.h"
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
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace sheaf::tool {

namespace {

/// Ends with 3 without the library, with 4 where there is no tokenizer in the file, with 5 and the
/// number of a line where that cannot be encoded. Decoding, it answers each line when it comes.
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
if sys.argv[2] == "decode":
    for line in sys.stdin.buffer:
        ids = json.loads(line)
        print(json.dumps(tokenizer.decode(ids if isinstance(ids, list) else [ids])), flush=True)
    sys.exit(0)

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

def once(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError
    return dict(pairs)

def ids(lines):
    texts = [text for value, raw, _ in lines if raw is None for text in strings(value)]
    return [found.ids for found in tokenizer.encode_batch(texts)]

def flush(lines):
    try:
        numbers = iter(ids(lines))
    except Exception:
        for line in lines:
            try:
                ids([line])
            except Exception as error:
                print(line[2], " ".join(str(error).split()) or type(error).__name__, file=sys.stderr)
                sys.exit(5)
        raise
    for value, raw, _ in lines:
        out = raw if raw is not None else json.dumps(encode(value, numbers))
        sys.stdout.buffer.write(out.encode() + b"\n")
    sys.stdout.flush()

waiting = []
for number, line in enumerate(sys.stdin.buffer, 1):
    line = line.decode().rstrip("\r\n")
    if not line.strip():
        waiting.append((None, "", number))
    elif sys.argv[2] == "text":
        waiting.append((line, None, number))
    else:
        try:
            value = json.loads(line, object_pairs_hook=once)
            json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate is no text
            waiting.append((value, None, number))
        except ValueError:
            waiting.append((None, line, number))  # whoever reads it says what is wrong
    if len(waiting) == 512:
        flush(waiting)
        waiting = []
flush(waiting)
)";

/// The process, which is killed when this goes before it has ended.
class Process {
public:
  /// `form`: of what it is given, text or json, or decode. `tokenizer` is a file.
  Process(std::string tokenizer, std::string form);
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

  /// What it answers to a text: all, after which nothing can be sent, or so many lines. Throws
  /// UserError when nothing happens for SHEAF_TOKENIZER_SECONDS.
  std::string answer(std::string_view text, std::optional<size_t> lines = std::nullopt);
  /// Waits for its end. Throws UserError, but where it did what it had to.
  void finish(const std::string &textName);

private:
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

  std::string python_, tokenizer_;
  pid_t pid_ = -1;
  int socket_ = -1;
  std::FILE *errors_ = nullptr;
};

std::string environment(const char *name, const char *otherwise) {
  const char *value = std::getenv(name);
  return value && *value ? value : otherwise;
}

Process::Process(std::string tokenizer, std::string form)
    : python_(environment("SHEAF_PYTHON", "python3")), tokenizer_(std::move(tokenizer)) {
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
  char *arguments[] = {python_.data(),    option.data(), script.data(),
                       tokenizer_.data(), form.data(),   nullptr};
  int failed = ::posix_spawnp(&pid_, python_.c_str(), &actions, &attributes, arguments, environ);
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
                              python_, std::strerror(failed)));
}

std::string Process::answer(std::string_view text, std::optional<size_t> lines) {
  int seconds = std::atoi(environment("SHEAF_TOKENIZER_SECONDS", "120").c_str());
  std::chrono::seconds patience(std::clamp(seconds, 1, 86400));
  std::string answer(1 << 16, '\0');
  size_t length = 0, ended = 0; // bytes, and lines of them
  bool sending = true;
  for (;;) {
    if (sending && text.empty()) {
      if (!lines)
        ::shutdown(socket_, SHUT_WR);
      sending = false;
    }
    if (lines && ended >= *lines) {
      answer.resize(length);
      return answer;
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
      auto begin = answer.begin() + static_cast<ptrdiff_t>(length);
      ended += static_cast<size_t>(std::count(begin, begin + got, '\n'));
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

void Process::finish(const std::string &textName) {
  int status = wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
    throw UserError(
        fmt::format("--tokenizer needs the library tokenizers of Hugging Face: '{} -m pip "
                    "install tokenizers' installs it (SHEAF_PYTHON in the environment "
                    "names another Python)",
                    python_));
  std::string words = lastWords();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 4)
    throw UserError(fmt::format("{}: no tokenizer: {}", tokenizer_, words));
  if (size_t space = words.find(' '); WIFEXITED(status) && WEXITSTATUS(status) == 5)
    throw UserError(fmt::format("{}:{}: --tokenizer: {}", textName, words.substr(0, space),
                                space == std::string::npos ? "" : words.substr(space + 1)));
  throw UserError(fmt::format("--tokenizer: its process ended, {}{}",
                              WIFSIGNALED(status)
                                  ? fmt::format("by signal {}", WTERMSIG(status))
                                  : fmt::format("with exit code {}", WEXITSTATUS(status)),
                              words.empty() ? "" : ": " + words));
}

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Throws UserError at what is no text: it would end the process.
void requireLines(const io::SourceText &text) {
  io::requireEightBit(text);
  try {
    io::requireUtf8(text.text);
  } catch (const io::TextError &error) {
    io::TextPlace place = io::PlaceFinder(text.text).at(error.offset);
    io::failAt(text.name, place.line, place.column, error.message);
  }
}

std::string tokenizerFile(const std::string &tokenizer) {
  std::string file =
      io::isFile(tokenizer) ? tokenizer : io::fileBeside(tokenizer, "tokenizer.json");
  if (!io::isFile(file) || (file != tokenizer && ::access(tokenizer.c_str(), F_OK) != 0))
    throw UserError(fmt::format("--tokenizer: there is no file '{}'", tokenizer));
  return file;
}

} // namespace

io::SourceText encodeTexts(const io::SourceText &text, const std::string &tokenizer,
                           io::ReadOptions &reading) {
  const io::DataFormat *json = io::parseDataFormat("jsonl");
  const io::DataFormat &format = reading.format ? *reading.format : io::detectFormat(text);
  bool isJson = &format == json;
  if (!isJson && &format != io::parseDataFormat("text"))
    throw UserError(
        fmt::format("{}: --tokenizer is for lines of text and of JSON, and this is read "
                    "as '{}'; --data-format text says otherwise",
                    text.name, format.name));
  std::string file = tokenizerFile(tokenizer);
  requireLines(text);
  std::string_view given = text.text;
  if (given.starts_with(kByteOrderMark))
    given.remove_prefix(kByteOrderMark.size());
  Process process(file, isJson ? "json" : "text");
  std::string numbers = process.answer(given);
  process.finish(text.name);
  reading.format = json;
  return {text.name, std::move(numbers)};
}

struct TokenDecoder::Impl {
  explicit Impl(std::string file) : process(std::move(file), "decode") {}
  Process process;
};

TokenDecoder::TokenDecoder(const std::string &tokenizer)
    : impl_(std::make_unique<Impl>(tokenizerFile(tokenizer))) {}
TokenDecoder::~TokenDecoder() = default;

std::vector<std::string> TokenDecoder::decode(const std::vector<std::string> &ids) {
  std::string all;
  for (const std::string &line : ids)
    all += line + '\n';
  std::string answer = impl_->process.answer(all, ids.size());
  std::vector<std::string> texts;
  for (std::string_view rest = answer; !rest.empty() && texts.size() < ids.size();) {
    size_t end = std::min(rest.find('\n'), rest.size());
    texts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (texts.size() < ids.size()) {
    impl_->process.finish("");
    throw UserError("--tokenizer: its process ended before all was decoded");
  }
  return texts;
}

} // namespace sheaf::tool
