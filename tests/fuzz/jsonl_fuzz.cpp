// Any bytes as JSON lines, an array of JSON or a table for entries of every type: values or a
// UserError. What was read is written and read again, and must come out the same.
#include "runtime/io/output.h"
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
    using rt::DType;
    uint32_t i = types.integer(), x = types.real(), b = types.boolean(), w = types.token();
    uint32_t tree = types.binaryTree();
    uint32_t rose = types.data("Rose");
    uint32_t free = types.tensor(DType::F32, {-1, 2}, {"?", "2"});
    uint32_t pair = types.tuple({free, i});
    types.ctor(rose, "Rose", {{"value", pair}, {"children", types.list(rose)}});
    types.ctor(rose, "Nil", {});
    uint32_t maybe = types.data("Maybe"), outer = types.data("Outer");
    types.ctor(maybe, "None", {});
    types.ctor(maybe, "Some", {{"w", w}});
    types.ctor(outer, "Has", {{"m", maybe}});
    types.ctor(outer, "Nothing", {});
    all.push_back(test::entry({{"m", maybe}, {"o", types.list(outer)}}));
    all.push_back(test::entry({{"i", i}, {"x", x}, {"b", b}, {"w", types.list(w)}}));
    all.push_back(test::entry({{"t", tree}}));
    all.push_back(test::entry({{"r", rose}}));
    all.push_back(test::entry({{"m", types.tensor(DType::F32, {-1, -1}, {"n", "k"})},
                               {"v", types.tensor(DType::F16, {-1}, {"k"})},
                               {"e", types.tensor(DType::I64, {-1}, {"n + 2*k"})}}));
    all.push_back(test::entry({{"g", types.tensor(DType::BF16, {2, 2})},
                               {"s", types.tensor(DType::F32, {})},
                               {"i", types.tensor(DType::I32, {-1}, {"?"})},
                               {"b", types.tensor(DType::Bool, {-1}, {"?"})},
                               {"w", types.tokens({-1}, {"n"})}}));
    all.push_back(test::entry({{"l", types.list(types.tuple({types.list(x), b}))}}));
    Vocabulary vocabulary;
    vocabulary.add("a");
    vocabulary.add("b\t\"");
    vocabularies.set("", vocabulary);
  }
};

std::string written(const Entries &entries, const rt::EntryDesc &entry, const std::string &text,
                    const ReadOptions &options) {
  VocabularyReader tokens(entries.vocabularies);
  Dataset data = readDataset(SourceText{"data", text}, entries.types.table, entry, tokens, options);
  JsonValueWriter writer(entries.types.table, JsonValueWriter::inputTensors(entries.types.table),
                         &entries.vocabularies);
  std::string out;
  for (int64_t i = 0; i < data.size(); ++i) {
    writer.appendArgs(out, entry, data.args(i));
    out += '\n';
  }
  return out;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Entries entries;
  if (size < 2)
    return 0;
  const rt::EntryDesc &entry = entries.all[data[0] % entries.all.size()];
  ReadOptions options;
  options.format = dataFormats()[data[1] % dataFormats().size()];
  options.strict = data[0] & 32;
  options.skipBad = data[0] & 64 ? 2 : 0;
  std::string text(reinterpret_cast<const char *>(data) + 2, size - 2);
  std::string once;
  try {
    once = written(entries, entry, text, options);
  } catch (const UserError &) {
    return 0;
  }
  options.format = parseDataFormat("jsonl");
  options.strict = true;
  if (written(entries, entry, once, options) != once)
    std::abort();
  return 0;
}
