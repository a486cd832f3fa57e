#include "tests/io/io_test_support.h"

namespace sheaf::io::test {
namespace {

Vocabulary parse(const std::string &text) { return Vocabulary::parse({"v.txt", text}); }
std::string parseError(const std::string &text) {
  return userError([&] { parse(text); });
}

TEST(Vocabulary, LinesAreNumbers) {
  Vocabulary v = parse("<unk>\nthe\ngood film\n");
  EXPECT_EQ(v.size(), 3);
  EXPECT_EQ(v.find("the"), 1);
  EXPECT_EQ(v.find("good film"), 2);
  EXPECT_EQ(v.find("bad"), -1);
  EXPECT_EQ(v.id("bad"), 0);
  EXPECT_EQ(v.word(0), "<unk>");
  EXPECT_EQ(v.word(2), "good film");
  EXPECT_EQ(v.word(3), "");
  EXPECT_EQ(v.word(-1), "");
}

TEST(Vocabulary, LineEndsAndByteOrderMarkDoNotMatter) {
  EXPECT_EQ(parse("\xEF\xBB\xBF<unk>\r\na\r\nb").hash(), parse("<unk>\na\nb\n").hash());
}

TEST(Vocabulary, HashTellsContentAndOrder) {
  EXPECT_EQ(parse("<unk>\n").hash(), "44ea0f435fd8ea51");
  EXPECT_NE(parse("<unk>\na\nb\n").hash(), parse("<unk>\nb\na\n").hash());
  EXPECT_NE(parse("<unk>\nab\n").hash(), parse("<unk>\na\nb\n").hash());
  EXPECT_NE(Vocabulary::ofSize(3).hash(), Vocabulary::ofSize(4).hash());
}

TEST(Vocabulary, BadFiles) {
  EXPECT_EQ(parseError(""), "v.txt: an empty vocabulary: its first line must be '<unk>'");
  EXPECT_EQ(parseError("the\n"), "v.txt:1: the first line of a vocabulary is '<unk>', found 'the'");
  EXPECT_EQ(parseError("<unk>\na\n\nb\n"), "v.txt:3: an empty line in a vocabulary");
  EXPECT_EQ(parseError("<unk>\na\nb\na\n"), "v.txt:4: 'a' stands on line 2 already");
  EXPECT_EQ(parseError("<unk>\na\n<unk>\n"), "v.txt:3: '<unk>' stands on line 1 already");
  EXPECT_EQ(userError([] { Vocabulary::load("/nowhere/v.txt"); }),
            "cannot read '/nowhere/v.txt': No such file or directory");
  EXPECT_EQ(userError([] { Vocabulary::load("/tmp"); }), "cannot read '/tmp': Is a directory");
}

TEST(Vocabulary, SavesAndLoads) {
  TemporaryDirectory directory;
  Vocabulary v = vocabulary({"b", "a", "\xC3\xA9t\xC3\xA9", "a b"});
  EXPECT_FALSE(v.add("a"));
  v.save(directory.file("v.txt"));
  Vocabulary back = Vocabulary::load(directory.file("v.txt"));
  EXPECT_EQ(back.hash(), v.hash());
  EXPECT_EQ(back.find("a b"), 4);
  EXPECT_EQ(userError([&] { v.save(directory.file("no/v.txt")); }),
            "cannot write '" + directory.file("no/v.txt") + "': No such file or directory");
}

TEST(Vocabulary, KeepsEveryWord) {
  std::vector<std::string> words = {
      "",   "\n",      "\r",      "\r\n",   "x\r",   "a\nb",   std::string("\0", 1),
      "\t", " ",       "\"",      "\"\"",   "\"a\"", "\\n",    "\"\\n\"",
      "\\", "\"a\\\"", "\"\\x\"", "\"\\\"", "\x7F",  "a\"\\\""};
  Vocabulary v = vocabulary(words);
  Vocabulary back = parse(v.fileText());
  ASSERT_EQ(back.size(), static_cast<int64_t>(words.size()) + 1);
  for (size_t i = 0; i < words.size(); ++i)
    EXPECT_EQ(back.word(static_cast<int64_t>(i) + 1), words[i]) << i;
  EXPECT_EQ(back.hash(), v.hash());
  EXPECT_EQ(v.hash(), contentHash(v.fileText()));
  // What was a word before is one still.
  EXPECT_EQ(vocabulary({"\"quoted\"", "\\n", "\\/"}).fileText(), "<unk>\n\"quoted\"\n\\n\n\\/\n");
  EXPECT_EQ(vocabulary({"\n", ""}).fileText(), "<unk>\n\"\\n\"\n\"\"\n");
}

TEST(Vocabulary, NotUtf8) {
  EXPECT_TRUE(parseError("<unk>\na\ncaf\xE9\n").starts_with("v.txt:3:4: invalid UTF-8 ('\\xE9')"));
  EXPECT_TRUE(parseError(std::string("<unk>\na\0b\n", 9)).starts_with("v.txt:2:2: a NUL byte"));
  EXPECT_TRUE(parseError("\xFF\xFE<").starts_with("v.txt:1:1: this is UTF-16"));
}

TEST(WordCounter, ByFrequencyThenFirstAppearance) {
  WordCounter counter;
  for (const char *word : {"c", "a", "b", "b", "a", "d", "<unk>", "", "x\ny"})
    counter.count(word);
  Vocabulary v = counter.build();
  EXPECT_EQ(v.size(), 7);
  EXPECT_EQ(v.word(1), "a");
  EXPECT_EQ(v.word(2), "b");
  EXPECT_EQ(v.word(3), "c");
  EXPECT_EQ(v.word(4), "d");
  EXPECT_EQ(v.word(5), "");
  EXPECT_EQ(v.word(6), "x\ny");
  EXPECT_EQ(counter.build({2, INT64_MAX}).size(), 3);
  EXPECT_EQ(counter.build({1, 3}).size(), 3);
}

TEST(Vocabularies, Options) {
  TemporaryDirectory directory;
  std::string file = directory.write("v.txt", "<unk>\na\n");
  Vocabularies all;
  all.add(file);
  EXPECT_EQ(all.hashes(), all.find("")->hash());
  all.add("tag=" + file);
  ASSERT_TRUE(all.find("tag"));
  EXPECT_EQ(all.find("tag")->size(), 2);
  EXPECT_EQ(all.find("word"), nullptr);
  std::string hash = all.find("")->hash();
  EXPECT_EQ(all.hashes(), "=" + hash + ",tag=" + hash);
  EXPECT_EQ(userError([&] { all.add("tag=" + file); }),
            "vocabulary tag=" + file + ": the vocabulary of 'token<tag>' is given twice");
  EXPECT_EQ(userError([&] { all.add("word="); }), "vocabulary word=: expected FILE or NAME=FILE");
  EXPECT_EQ(userError([&] { all.add("=" + file); }),
            "vocabulary =" + file + ": the vocabulary of 'token' is given twice");
}

TEST(VocabularyReader, CountsUnknownWords) {
  Vocabularies all;
  all.set("", vocabulary({"a"}));
  VocabularyReader reader(all);
  uint32_t v = reader.open("");
  EXPECT_EQ(reader.open(""), v);
  EXPECT_EQ(reader.number(v, "a"), 1);
  EXPECT_EQ(reader.number(v, "b"), 0);
  EXPECT_EQ(reader.number(v, "b"), 0);
  ASSERT_EQ(reader.unknown().size(), 1u);
  EXPECT_EQ(reader.unknown()[0].words, 3);
  EXPECT_EQ(reader.unknown()[0].unknown, 2);
  EXPECT_EQ(reader.unknown()[0].examples, std::vector<std::string>{"b"});
  EXPECT_EQ(userError([&] { reader.open("tag"); }), "no vocabulary for 'token<tag>'");
  EXPECT_EQ(VocabularyReader(all, true).open(""), 0u);
}

TEST(Text, Quoted) {
  EXPECT_EQ(quoted("a\tb\n\x01\xFF"), "'a\\tb\\n\\x01\\xFF'");
  EXPECT_EQ(quoted("0123456789", 4), "'0123...'");
  EXPECT_EQ(quoted("\xC3\xA9\xC3\xA9\xC3\xA9", 3), "'\xC3\xA9\xC3\xA9...'");
}

TEST(Text, AtomicFileLeavesNothingWithoutCommit) {
  TemporaryDirectory directory;
  std::string file = directory.write("a", "old");
  {
    AtomicFile out(file);
    out.write("new");
  }
  EXPECT_EQ(readSource(file).text, "old");
  EXPECT_EQ(::access((file + ".tmp" + std::to_string(::getpid()) + "-0").c_str(), F_OK), -1);
}

} // namespace
} // namespace sheaf::io::test
