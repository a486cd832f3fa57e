// Vocabularies of no model.
#include "tests/artefact/message_of.h"

#include "sheaf/sheaf.hpp"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace fs = std::filesystem;

namespace {

class OwnWords : public testing::Test {
protected:
  void SetUp() override {
    directory = fs::temp_directory_path() / ("sheaf-words-" + std::to_string(getpid()));
    fs::create_directories(directory);
  }
  void TearDown() override { fs::remove_all(directory); }
  std::string write(const std::string &name, const std::string &text) const {
    std::ofstream(directory / name) << text;
    return directory / name;
  }
  std::string read(const std::string &name) const {
    std::ostringstream text;
    text << std::ifstream(directory / name).rdbuf();
    return text.str();
  }
  fs::path directory;
};

TEST_F(OwnWords, AreMadeSavedAndLoaded) {
  sheaf::Words made({"<unk>", "yes", "no", "\xc3\xa4 b"});
  EXPECT_EQ(made.size(), 4);
  EXPECT_EQ(made.token("no"), 2);
  EXPECT_EQ(made.token("maybe"), 0);
  EXPECT_EQ(made.word(3), "\xc3\xa4 b");
  EXPECT_EQ(sheaf_words_word(made.get(), 4), nullptr);
  EXPECT_EQ(sheaf_words_word(made.get(), -1), nullptr);
  made.save(directory / "v.txt");
  EXPECT_EQ(read("v.txt"), "<unk>\nyes\nno\n\xc3\xa4 b\n");
  sheaf::Words loaded = sheaf::Words::load(directory / "v.txt");
  EXPECT_EQ(loaded.size(), 4);
  EXPECT_EQ(loaded.hash(), made.hash());
  EXPECT_NE(loaded.hash(), sheaf::Words({"<unk>", "yes"}).hash());
}

TEST_F(OwnWords, AreCountedInData) {
  std::string text = write("d.txt", "b a b\nc b a\n");
  sheaf::Words words = sheaf::Words::count(text);
  EXPECT_EQ(words.size(), 4);
  EXPECT_EQ(words.token("b"), 1);
  EXPECT_EQ(words.token("a"), 2);
  sheaf_count_options few{};
  few.min_count = 2;
  EXPECT_EQ(sheaf::Words::count(text, few).size(), 3);
  few.max_size = 2;
  EXPECT_EQ(sheaf::Words::count(text, few).size(), 2);
  sheaf_count_options tags{};
  tags.format = "tagged";
  tags.name = "tag";
  std::string tagged = write("t.txt", "Punk|I-MISC band|O\n");
  EXPECT_EQ(sheaf::Words::count(tagged, tags).token("O"), 2);
  tags.name = "other";
  EXPECT_NE(messageOf([&] { sheaf::Words::count(tagged, tags); }, SHEAF_INVALID).find("'other'"),
            std::string::npos);
}

TEST_F(OwnWords, HaveASizeAlone) {
  sheaf_words *raw = nullptr;
  ASSERT_EQ(sheaf_words_make(nullptr, 7, &raw), SHEAF_OK);
  sheaf::Words words(raw);
  EXPECT_EQ(words.size(), 7);
  EXPECT_EQ(words.token("any"), 0);
  EXPECT_EQ(sheaf_words_word(words.get(), 1), nullptr);
  messageOf([&] { words.save(directory / "v.txt"); }, SHEAF_INVALID);
}

TEST_F(OwnWords, SayWhatIsWrong) {
  EXPECT_EQ(messageOf([] { sheaf::Words({"a"}); }, SHEAF_INVALID),
            "word 0 of the vocabulary, 'a', is not '<unk>'");
  EXPECT_EQ(messageOf([] { sheaf::Words({"<unk>", "a", "a"}); }, SHEAF_INVALID),
            "word 2 of the vocabulary, 'a', is there twice");
  EXPECT_EQ(messageOf([] { sheaf::Words(std::vector<std::string>{}); }, SHEAF_INVALID),
            "the vocabulary has size 0");
  messageOf([&] { sheaf::Words::load(directory / "nowhere"); }, SHEAF_NOT_READABLE);
  messageOf([&] { sheaf::Words::count(directory / "nowhere"); }, SHEAF_NOT_READABLE);
  std::string twice = write("v.txt", "<unk>\na\na\n");
  EXPECT_EQ(messageOf([&] { sheaf::Words::load(twice); }, SHEAF_INVALID).find(twice + ":3: "), 0u);
  std::string empty = write("d.txt", "\n");
  messageOf([&] { sheaf::Words::count(empty); }, SHEAF_INVALID);
  sheaf_count_options format{};
  format.format = "none";
  messageOf([&] { sheaf::Words::count(twice, format); }, SHEAF_INVALID);
  sheaf_words *words = nullptr;
  EXPECT_EQ(sheaf_words_of_model(nullptr, "", &words), SHEAF_INVALID);
  EXPECT_EQ(sheaf_words_size(nullptr), -1);
  EXPECT_EQ(sheaf_words_hash(nullptr), nullptr);
  sheaf_words_release(nullptr);
}

} // namespace
