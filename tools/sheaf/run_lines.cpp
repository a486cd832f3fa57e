//===- run_lines.cpp - Answers lines as they come -------------------------===//
#include "tools/sheaf/run_lines.h"

#include "runtime/session/engine.h"
#include "tools/sheaf/command.h"
#include "tools/sheaf/output_file.h"
#include "tools/sheaf/read_notes.h"
#include "tools/sheaf/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace sheaf::tool {

namespace {

/// Lines that are read before those are answered that run, for each of these.
constexpr int64_t kAhead = 8;

/// Writes answers, from any thread, in their order or as they come.
class AnswerQueue {
public:
  AnswerQueue(OutputFile &output, bool inOrder) : output_(output), inOrder_(inOrder) {}

  /// A line is about to run.
  void expect(int64_t number, std::string_view line) {
    std::lock_guard lock(mutex_);
    lines_.emplace(number, line);
  }
  /// Those that run.
  std::string lines() {
    std::lock_guard lock(mutex_);
    std::string text;
    for (const auto &[number, line] : lines_)
      text += line + "\n";
    return text;
  }

  void write(const std::string &text) {
    std::lock_guard lock(mutex_);
    output_.write(text);
    output_.flush();
  }

  void put(int64_t number, Answer answer) {
    std::unique_lock lock(mutex_);
    failed_ += !answer.error.empty();
    lines_.erase(number);
    waiting_.emplace(inOrder_ ? number : written_, std::move(answer));
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == written_;
         first = waiting_.erase(first)) {
      output_.write(first->second.line);
      fmt::print(stderr, "{}", first->second.error);
      ++written_;
    }
    output_.flush();
    room_.notify_all();
    stopAtEnd(lock);
  }

  /// Until fewer than `most` before this one are without an answer. False: it was stopped.
  bool waitForRoom(int64_t number, int64_t most, const std::stop_token &stop) {
    std::unique_lock lock(mutex_);
    return room_.wait(lock, stop, [&] { return number - written_ < most; });
  }

  /// There are so many.
  void end(int64_t count) {
    std::unique_lock lock(mutex_);
    count_ = count;
    stopAtEnd(lock);
  }

  /// Asked for when all are written, or none is wanted any more.
  std::stop_source &ended() { return ended_; }
  int64_t failed() const { return failed_; }

private:
  void stopAtEnd(std::unique_lock<std::mutex> &lock) {
    bool all = written_ == count_;
    lock.unlock();
    if (all)
      ended_.request_stop();
  }

  OutputFile &output_;
  const bool inOrder_;
  std::mutex mutex_;
  std::condition_variable_any room_;
  std::map<int64_t, std::string> lines_; ///< that run
  std::map<int64_t, Answer> waiting_;    ///< for those before them
  int64_t written_ = 0, count_ = -1, failed_ = 0;
  std::stop_source ended_;
};

/// Makes requests of lines, in a thread of its own.
class LineRequests {
public:
  LineRequests(const LoadedModel &loaded, LineInput &input, const io::DataFormat &format,
               const DataOptions &data, AnswerWriter &writer, AnswerQueue &answers,
               rt::Engine &engine)
      : input_(input), writer_(writer), answers_(answers), engine_(engine),
        reading_(data.reading()), tokens_(loaded.vocabularies, data.strictVocab),
        slots_(io::argSlots(loaded.model().types, loaded.model().entry)) {
    const rt::Model &model = loaded.model();
    try {
      reader_ =
          format.reader({model.types, model.entry, tokens_, heap_, &model.dims, reading_.strict});
    } catch (const UserError &error) {
      throw UserError(fmt::format(
          "{}: {}{}", LineInput::kName, error.what(),
          reading_.format
              ? ""
              : fmt::format("\n  (read as {}; --data-format says otherwise)", format.name)));
    }
    report_.record = format.record;
    report_.fields = format.fields;
  }

  void readAll(int64_t most, const std::stop_token &stop) {
    do {
      if (!answers_.waitForRoom(count_, most, stop))
        return;
      take();
    } while (input_.next());
    answers_.end(count_);
  }

  int64_t count() const { return count_; }
  void noteReadOver(const rt::EntryDesc &entry) {
    report_.ignored = reader_->ignored();
    ReadNotes notes;
    notes.add(report_, count_, LineInput::kName, entry);
    notes.noteIgnored();
    notes.addUnknownWords(tokens_);
  }

private:
  void take() {
    std::string_view line = input_.line();
    try {
      io::requireUtf8(line);
      const std::vector<rt::Slot> &read = reader_->read(line);
      rt::Slot *args = heap_.allocate(slots_);
      std::copy_n(read.data(), slots_, args);
      tokens_.endRecord(/*kept=*/true);
      submit(args);
    } catch (const io::TextError &error) {
      tokens_.endRecord(/*kept=*/false);
      std::string message = fmt::format("{}:{}:{}: {}", LineInput::kName, input_.number(),
                                        error.offset + 1, error.text());
      if (report_.skipped >= reading_.skipBad) {
        int64_t number = count_++;
        answers_.put(number, writer_.noResult(number, "error: " + message + "\n"));
      } else if (report_.skipped++ == 0) {
        report_.firstSkipped = message;
      }
    }
  }

  void submit(const rt::Slot *args) {
    // They live as long as the request.
    auto values = std::make_shared<io::SlotHeap>(std::exchange(heap_, {}));
    rt::Request request{.instance = {args, count_++}};
    if (writer_.form().isPrinted && writer_.form().isNumbered)
      request.emitted = [this](const rt::Instance &instance, const rt::Slot *value) {
        answers_.write(writer_.emission(instance.index, value));
      };
    request.done = [this, values, instance = request.instance,
                    line = input_.number()](const rt::Outcome &outcome) {
      std::string place = fmt::format("{}:{}", LineInput::kName, line);
      answers_.put(instance.index, writer_.outcome(instance, place, outcome));
    };
    answers_.expect(request.instance.index, input_.line());
    engine_.submit(std::move(request));
  }

  LineInput &input_;
  AnswerWriter &writer_;
  AnswerQueue &answers_;
  rt::Engine &engine_;
  io::ReadOptions reading_;
  io::VocabularyReader tokens_;
  io::SlotHeap heap_;
  const int64_t slots_;
  std::unique_ptr<io::InstanceReader> reader_;
  io::ReadReport report_;
  int64_t count_ = 0;
};

} // namespace

const io::DataFormat *lineFormat(const io::ReadOptions &reading, LineInput &input) {
  if (reading.format && !io::isOfLines(*reading.format))
    return nullptr;
  if (!input.next() || io::isGzip(input.soFar()))
    return nullptr;
  io::SourceText first{LineInput::kName, std::string(input.soFar())};
  io::requireEightBit(first);
  first.text = input.line();
  const io::DataFormat &format = reading.format ? *reading.format : io::detectFormat(first);
  return io::isOfLines(format) ? &format : nullptr;
}

int runLines(const LoadedModel &loaded, rt::Session &session, LineInput &input,
             const io::DataFormat &format, const DataOptions &data, unsigned most,
             AnswerWriter &writer, OutputFile &output) {
  AnswerQueue answers(output, /*inOrder=*/!writer.form().isNumbered);
  rt::Engine engine(session, {.mostRunning = most});
  LineRequests requests(loaded, input, format, data, writer, answers, engine);
  std::exception_ptr failure;
  {
    std::jthread reader([&](const std::stop_token &stop) {
      try {
        requests.readAll(kAhead * int64_t(most), stop);
      } catch (...) {
        failure = std::current_exception();
        answers.ended().request_stop();
      }
    });
    // However this ends, the reader waits for no line then.
    struct Closing {
      LineInput &input;
      ~Closing() { input.close(); }
    } closing{input};
    try {
      engine.run(answers.ended().get_token());
    } catch (const InternalError &) {
      keepStandardInput(answers.lines());
      throw;
    }
  }
  if (failure)
    std::rethrow_exception(failure);
  output.finish();
  requests.noteReadOver(loaded.model().entry);
  if (!answers.failed())
    return kOk;
  fmt::print(stderr, "error: {} of {} instances failed\n", answers.failed(), requests.count());
  return kFailed;
}

} // namespace sheaf::tool
