//===- trees.cpp - Bracket trees as instances -----------------------------===//
#include "runtime/io/trees.h"
#include "runtime/io/formats.h"
#include "runtime/io/sentences.h"
#include "runtime/io/types.h"

#include <algorithm>
#include <fmt/format.h>

namespace sheaf::io {

namespace {

using rt::Slot;
using rt::TypeKind;

/// A parameter takes the tree, and maybe one the root's label.
class TreeReader final : public InstanceReader {
public:
  explicit TreeReader(const ReadContext &context)
      : context_(context), binding_(context.types, bind(context)) {
    args_.resize(context.entry.argTypes.size());
  }

  const std::vector<Slot> &read(std::string_view record) override {
    std::optional<int64_t> label;
    args_[tree_] = binding_.read(record, context_.tokens, context_.heap, label);
    if (label_) {
      if (!label)
        throw TextError{0, fmt::format("this tree has no label at its root, but '{}' has the "
                                       "parameter 'label: int'",
                                       context_.entry.name)};
      args_[*label_] = *label;
    }
    return args_;
  }

private:
  /// The type of the trees.
  uint32_t bind(const ReadContext &context) {
    const rt::TypeTable &types = context.types;
    const rt::EntryDesc &entry = context.entry;
    bool found = false;
    for (size_t i = 0; i < entry.argTypes.size(); ++i) {
      TypeKind kind = types.types[entry.argTypes[i]].kind;
      if (kind == TypeKind::Data && !found) {
        tree_ = i;
        found = true;
      } else if (kind == TypeKind::Int && entry.argNames[i] == "label" && !label_) {
        label_ = i;
      } else {
        throw UserError(fmt::format("bracket trees cannot give the parameter '{}: {}' of '{}'; "
                                    "they give one data type and 'label: int'",
                                    entry.argNames[i], typeName(types, entry.argTypes[i]),
                                    entry.name));
      }
    }
    if (!found)
      throw UserError(fmt::format("bracket trees need a parameter of a data type (or list<token>, "
                                  "which takes their words); '{}' has none",
                                  entry.name));
    return entry.argTypes[tree_];
  }

  const ReadContext context_;
  size_t tree_ = 0;
  std::optional<size_t> label_;
  TreeBinding binding_;
  std::vector<Slot> args_;
};

bool hasDataParameter(const ReadContext &context) {
  return std::any_of(context.entry.argTypes.begin(), context.entry.argTypes.end(),
                     [&](uint32_t t) { return context.types.types[t].kind == TypeKind::Data; });
}

std::unique_ptr<InstanceReader> treeReader(const ReadContext &context) {
  if (!hasDataParameter(context) && SentenceBinding::takesWords(context.types, context.entry))
    return std::make_unique<SentenceBinding>(context, SentenceBinding::Kind::Tree);
  return std::make_unique<TreeReader>(context);
}

bool beginsWithTree(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && isSpace(text[at]))
    ++at;
  return at < text.size() && text[at] == '(';
}

void countTree(std::string_view record, CountingReader &counter) {
  for (std::string_view word : treeWords(record))
    counter.words("").count(word);
}

} // namespace

const DataFormat kTreesFormat = {.name = "trees",
                                 .description = "bracket trees, one a line",
                                 .begins = "`(`",
                                 .example = "(3 (2 It) (4 (2 is) (3 good)))",
                                 .extensions = {},
                                 .detects = beginsWithTree,
                                 .records = recordsBy<LineRecords>,
                                 .reader = treeReader,
                                 .countWords = countTree};

} // namespace sheaf::io
