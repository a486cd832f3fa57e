// Errors as structs: of data, of sources, of instances.
#include "tests/artefact/message_of.h"

#include "sheaf/compiler.hpp"
#include "sheaf/gradients.hpp"
#include "sheaf/train.hpp"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <optional>

namespace fs = std::filesystem;

namespace {

class Errors : public testing::Test {
protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(sheaf_compiler_open(SHEAF_COMPILER_FILE), SHEAF_OK) << sheaf_error_message();
  }
  void SetUp() override {
    directory = fs::temp_directory_path() / ("sheaf-errors-" + std::to_string(getpid()));
    fs::create_directories(directory);
  }
  void TearDown() override { fs::remove_all(directory); }
  std::string write(const std::string &name, const std::string &text) const {
    std::ofstream(directory / name) << text;
    return directory / name;
  }
  static sheaf::CompileOptions ofText(const std::string &text) {
    sheaf::CompileOptions options;
    options.text = text;
    options.name = "given.sheaf";
    return options;
  }
  static sheaf::Error errorOf(const std::function<void()> &f) {
    try {
      f();
    } catch (const sheaf::Error &error) {
      return error;
    }
    return {SHEAF_OK, "nothing was thrown"};
  }
  static void expectPlace(const sheaf::Error &error, const std::string &file, int64_t line,
                          int64_t column, int64_t instance, const std::string &field) {
    const sheaf::Error::Place &place = error.place();
    EXPECT_EQ(place.file, file) << error.what();
    EXPECT_EQ(place.line, line) << error.what();
    EXPECT_EQ(place.column, column) << error.what();
    EXPECT_EQ(place.instance, instance) << error.what();
    EXPECT_EQ(place.field, field) << error.what();
  }

  fs::path directory;
};

TEST_F(Errors, OfDataHaveFileLineInstanceAndField) {
  sheaf::Model model =
      sheaf::compile(ofText("fn main(xs: list<int>, label: int) -> int = len(xs) + label\n"));
  std::string lines =
      write("d.jsonl", "{\"xs\": [1, 2], \"label\": 0}\n\n{\"xs\": [1, \"two\"], \"label\": 0}\n");
  sheaf::Error error = errorOf([&] { sheaf::readValues(model, lines); });
  EXPECT_EQ(error.status(), SHEAF_INVALID);
  expectPlace(error, lines, 3, 12, 1, "$.xs[1]");
  EXPECT_EQ(error.message().find("expected int"), 0u) << error.message();
  EXPECT_EQ(error.what(), lines + ":3:12: $.xs[1]: " + error.message());
  // What is read over does not count.
  std::string more = write("more.jsonl", "{\"xs\": [], \"label\": 0}\n{\"xs\"}\n{\"xs\": []}\n");
  sheaf_read_options reading{};
  reading.skip_bad = 1;
  error = errorOf([&] { sheaf::readValues(model, more, reading); });
  expectPlace(error, more, 3, 10, 1, "$");
  // Tables have columns.
  sheaf::Model row = sheaf::compile(ofText("fn main(a: int, b: float) -> int = a\n"));
  std::string table = write("d.csv", "a,b\n1,2.5\n2,many\n");
  error = errorOf([&] { sheaf::readValues(row, table); });
  expectPlace(error, table, 3, 3, 1, "$.b");
  // And vocabularies lines.
  std::string words = write("v.txt", "<unk>\na\na\n");
  error = errorOf([&] { sheaf::Words::load(words); });
  expectPlace(error, words, 3, 0, -1, "");
  EXPECT_EQ(error.what(), words + ":3: " + error.message());
  // What has no place has a message.
  error = errorOf([&] {
    sheaf::readValues(model, lines, [] {
      sheaf_read_options none{};
      none.format = "none";
      return none;
    }());
  });
  expectPlace(error, "", 0, 0, -1, "");
  EXPECT_EQ(error.message(), error.what());
}

TEST_F(Errors, OfFilesNameThem) {
  sheaf::CompileOptions options = ofText("param w : f32[2] = ones\nfn main(x: int) -> int = x\n");
  sheaf::Model model = sheaf::compile(options);
  sheaf::Session session;
  std::string nowhere = directory / "nowhere", bad = write("bad.safetensors", "no weights at all");
  auto expectFile = [&](sheaf_status status, const std::string &file, auto &&call) {
    sheaf::Error error = errorOf(call);
    EXPECT_EQ(error.status(), status) << error.what();
    expectPlace(error, file, 0, 0, -1, "");
    EXPECT_FALSE(error.message().empty());
    EXPECT_EQ(error.message().find(file), std::string::npos) << error.message();
    EXPECT_NE(std::string(error.what()).find(file), std::string::npos) << error.what();
  };
  auto compileWith = [&](auto member, const std::string &file) {
    return [&, member, file] {
      sheaf::CompileOptions with = options;
      with.*member = file;
      sheaf::compile(with);
    };
  };
  auto load = [&](const std::string &file) {
    return [&, file] { sheaf::loadWeights(session, model, file); };
  };
  expectFile(SHEAF_NOT_READABLE, nowhere, [&] { sheaf::readValues(model, nowhere); });
  expectFile(SHEAF_NOT_READABLE, nowhere, [&] { sheaf::Words::load(nowhere); });
  expectFile(SHEAF_NOT_READABLE, nowhere, [&] { sheaf::Model opened(nowhere); });
  expectFile(SHEAF_NOT_READABLE, nowhere, load(nowhere));
  expectFile(SHEAF_NOT_READABLE, nowhere, compileWith(&sheaf::CompileOptions::weights, nowhere));
  expectFile(SHEAF_NOT_READABLE, nowhere, compileWith(&sheaf::CompileOptions::wordsOf, nowhere));
  expectFile(SHEAF_INVALID, bad, load(bad));
  expectFile(SHEAF_INVALID, bad, compileWith(&sheaf::CompileOptions::weights, bad));
  expectFile(SHEAF_NOT_AN_ARTEFACT, bad, [&] { sheaf::Model opened(bad); });
  sheaf::saveWeights(session, model, directory / "one.safetensors");
  options = ofText("param v : f32[3] = ones\nfn main(x: int) -> int = x\n");
  model = sheaf::compile(options);
  expectFile(SHEAF_INVALID, directory / "one.safetensors", load(directory / "one.safetensors"));
}

TEST_F(Errors, OfSourcesHaveThePlaceOfTheFirst) {
  sheaf::CompileOptions options = ofText("fn main(x: int) -> int =\n  x + y\n");
  sheaf::Error error = errorOf([&] { sheaf::compile(options); });
  EXPECT_EQ(error.status(), SHEAF_NOT_COMPILED);
  expectPlace(error, "given.sheaf", 2, 7, -1, "");
  EXPECT_EQ(error.what(), "given.sheaf:2:7: error: " + error.message());
  sheaf_error raw{};
  raw.size = sizeof raw;
  ASSERT_EQ(sheaf_error_last(&raw), SHEAF_OK);
  EXPECT_EQ(raw.status, SHEAF_NOT_COMPILED);
  EXPECT_STREQ(raw.text, sheaf_error_message());
  EXPECT_STREQ(raw.message, error.message().c_str());
  EXPECT_STREQ(raw.file, "given.sheaf");
  EXPECT_EQ(raw.line, 2);
  EXPECT_EQ(raw.column, 7);
  EXPECT_EQ(raw.field, nullptr);
}

TEST_F(Errors, OfInstancesHaveThePlaceInTheProgram) {
  sheaf::CompileOptions options =
      ofText("fn main(x: int, deep: int) -> int = {\n"
             "  check x < 5, \"so: 3: many\";  check x != 3, \"three\";\n"
             "  down(deep)\n}\n"
             "fn down(n: int) -> int = if n == 0 { 0 } else { 1 + down(n - 1) }\n");
  sheaf::Model compiled = sheaf::compile(options);
  sheaf::save(compiled, directory / "m.sheafc");
  sheaf::Model opened((directory / "m.sheafc").string());
  for (const sheaf::Model *model : {&compiled, &opened}) {
    sheaf::Batch batch(*model);
    auto add = [&](int64_t x, int64_t deep, int64_t id) {
      batch.add(
          {batch.makeInt(model->argumentType(0), x), batch.makeInt(model->argumentType(1), deep)},
          id);
    };
    add(1, 1, 7);
    add(6, 1, 8);
    add(3, 1, 9);
    add(1, 1000, 10);
    sheaf_session_options limits{};
    limits.size = sizeof limits;
    limits.max_steps = 100;
    sheaf::Result result = sheaf::Session(limits).run(batch);
    sheaf::Failure none = result.failure(0), many = result.failure(1), three = result.failure(2),
                   deep = result.failure(3);
    EXPECT_EQ(none.cause, SHEAF_ENDED);
    EXPECT_EQ(none.instance, -1);
    EXPECT_EQ(none.text, "");
    EXPECT_EQ(many.cause, SHEAF_PROGRAM);
    EXPECT_EQ(many.instance, 8);
    EXPECT_EQ(many.text, "given.sheaf:2: so: 3: many");
    EXPECT_EQ(many.message, "so: 3: many");
    EXPECT_EQ(many.file, "given.sheaf");
    EXPECT_EQ(many.line, 2);
    EXPECT_EQ(three.message, "three");
    EXPECT_EQ(three.line, 2);
    EXPECT_EQ(three.instance, 9);
    EXPECT_GE(many.column, 3);
    EXPECT_GE(three.column, many.column + 20);
    EXPECT_EQ(deep.cause, SHEAF_LIMIT);
    EXPECT_EQ(deep.text, result.error(3));
    EXPECT_EQ(deep.file + ":" + std::to_string(deep.line) + ": " + deep.message, deep.text);
    messageOf([&] { result.failure(4); }, SHEAF_INVALID);
  }
  // Those of an engine, too; what no line is to blame for has none.
  sheaf::Engine engine(compiled);
  sheaf::Batch batch(compiled);
  batch.add(
      {batch.makeInt(compiled.argumentType(0), 6), batch.makeInt(compiled.argumentType(1), 1)}, 3);
  std::optional<sheaf::Failure> failure, cancelled;
  engine.submit(batch, [&](int64_t, const sheaf::Result &r) { failure = r.failure(0); });
  batch.add(
      {batch.makeInt(compiled.argumentType(0), 1), batch.makeInt(compiled.argumentType(1), 1)}, 4);
  sheaf::Stop stop;
  stop.request();
  sheaf_request_options request{};
  request.stop = stop.get();
  engine.submit(batch, [&](int64_t, const sheaf::Result &r) { cancelled = r.failure(0); }, request);
  while (engine.step()) {
  }
  ASSERT_TRUE(failure && cancelled);
  EXPECT_EQ(failure->instance, 3);
  EXPECT_EQ(failure->message, "so: 3: many");
  EXPECT_EQ(cancelled->instance, 4);
  EXPECT_EQ(cancelled->cause, SHEAF_CANCELLED);
  EXPECT_EQ(cancelled->file, "");
  EXPECT_EQ(cancelled->text, cancelled->message);
}

TEST_F(Errors, StructsSayTheirSize) {
  sheaf_error error{};
  EXPECT_EQ(sheaf_error_last(&error), SHEAF_INVALID);
  EXPECT_STREQ(sheaf_error_message(), "error.size is 0: set it to sizeof(sheaf_error)");
  EXPECT_EQ(sheaf_error_last(nullptr), SHEAF_INVALID);
  sheaf_failure failure{};
  EXPECT_EQ(sheaf_result_failure(nullptr, 0, &failure), SHEAF_INVALID);
}

} // namespace
