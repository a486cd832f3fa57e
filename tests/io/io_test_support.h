//===- io_test_support.h - Types and files for tests of readers -*- C++ -*-===//
#ifndef SHEAF_TESTS_IO_IO_TEST_SUPPORT_H
#define SHEAF_TESTS_IO_IO_TEST_SUPPORT_H

#include "tests/io/type_builder.h"

#include "runtime/io/jsonl.h"
#include "runtime/io/output.h"
#include "runtime/io/read.h"
#include "runtime/io/text.h"
#include "runtime/io/trees.h"
#include "runtime/io/vocab.h"

#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace sheaf::io::test {

inline Vocabulary vocabulary(std::vector<std::string> words) {
  Vocabulary result;
  for (const std::string &word : words)
    result.add(word);
  return result;
}

/// What a UserError says; fails when there is none.
inline std::string userError(const std::function<void()> &f) {
  try {
    f();
  } catch (const UserError &error) {
    return error.what();
  }
  ADD_FAILURE() << "no UserError was thrown";
  return {};
}

/// A directory that is removed with its files.
class TemporaryDirectory {
public:
  TemporaryDirectory() {
    char path[] = "/tmp/sheaf-io-test-XXXXXX";
    path_ = ::mkdtemp(path);
  }
  ~TemporaryDirectory() {
    std::string command = "rm -rf '" + path_ + "'";
    if (std::system(command.c_str()) != 0)
      ADD_FAILURE() << "cannot remove " << path_;
  }
  std::string file(const std::string &name) const { return path_ + "/" + name; }
  std::string write(const std::string &name, std::string_view text) const {
    AtomicFile out(file(name));
    out.write(text);
    out.commit();
    return file(name);
  }

private:
  std::string path_;
};

/// Reads a text for an entry and writes the arguments back as JSON, one line each.
class Bench {
public:
  Types types;
  rt::EntryDesc main;
  Vocabularies vocabularies;
  bool strict = false;
  ReadOptions options;

  Dataset read(const std::string &text, const std::string &name = "data") {
    VocabularyReader tokens(vocabularies, strict);
    return readDataset(SourceText{name, text}, types.table, main, tokens, options);
  }
  std::string roundTrip(const std::string &text, const std::string &name = "data") {
    Dataset data = read(text, name);
    JsonValueWriter writer(types.table, JsonValueWriter::inputTensors(types.table), &vocabularies);
    std::string out;
    for (int64_t i = 0; i < data.size(); ++i) {
      if (i)
        out += '\n';
      writer.appendArgs(out, main, data.args(i));
    }
    return out;
  }
  std::string error(const std::string &text, const std::string &name = "data") {
    return userError([&] { read(text, name); });
  }
};

} // namespace sheaf::io::test

#endif // SHEAF_TESTS_IO_IO_TEST_SUPPORT_H
