// Any bytes as a file of bracket trees, sentences or a vocabulary: values or a UserError.
#include "runtime/io/read.h"
#include "tests/io/type_builder.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

using namespace sheaf;
using namespace sheaf::io;

namespace {

struct Entries {
  test::Types types;
  Vocabularies vocabularies;
  std::vector<rt::EntryDesc> all;

  Entries() {
    uint32_t label = types.integer(), word = types.token(), words = types.list(word);
    uint32_t binary = types.binaryTree();
    uint32_t rich = types.data("Rich");
    uint32_t kids = types.list(rich);
    types.ctor(rich, "Word", {{"label", label}, {"word", word}});
    types.ctor(rich, "One", {{"only", rich}});
    types.ctor(rich, "Many", {{"kids", kids}, {"label", label}});
    all.push_back(test::entry({{"t", binary}}));
    all.push_back(test::entry({{"label", label}, {"t", rich}}));
    all.push_back(test::entry({{"words", words}, {"label", label}}));
    all.push_back(test::entry({{"words", types.tokens({-1}, {"n"})}, {"tags", words}}));
    Vocabulary vocabulary;
    vocabulary.add("a");
    vocabularies.set("", vocabulary);
  }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Entries entries;
  if (size < 2)
    return 0;
  SourceText source{"data", std::string(reinterpret_cast<const char *>(data) + 2, size - 2)};
  const rt::EntryDesc &entry = entries.all[data[0] % 4];
  ReadOptions options;
  size_t format = data[1] % (dataFormats().size() + 1); // the last: as the text tells
  options.format = format < dataFormats().size() ? dataFormats()[format] : nullptr;
  options.skipBad = data[0] & 32 ? 2 : 0;
  try {
    VocabularyReader tokens(entries.vocabularies, data[0] & 16);
    readDataset(source, entries.types.table, entry, tokens, options);
  } catch (const UserError &) {
  }
  try {
    buildVocabularies(source, options);
  } catch (const UserError &) {
  }
  try {
    Vocabulary read = Vocabulary::parse(source);
    if (Vocabulary::parse({"written", read.fileText()}).hash() != read.hash())
      std::abort();
  } catch (const UserError &) {
  }
  return 0;
}
