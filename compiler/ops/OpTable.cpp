//===- OpTable.cpp - All operators ----------------------------------------===//

#include "compiler/ops/Shape.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>

namespace sheaf::ops {

/// The function that adds the records of a file.
#define FAMILY(name)                                                                               \
  Family {                                                                                         \
    #name, [](std::vector<Op> &ops) {                                                              \
      extern void add##name(std::vector<Op> &);                                                    \
      add##name(ops);                                                                              \
    }                                                                                              \
  }

OpTable::OpTable() {
  struct Family {
    std::string_view name;
    void (*add)(std::vector<Op> &);
  };
  static constexpr Family families[] = {
      FAMILY(Activations),
      FAMILY(Attention),
      FAMILY(Elementwise),
      FAMILY(Functions),
      FAMILY(Casts),
      FAMILY(Reductions),
      FAMILY(Movement),
      FAMILY(Indexing),
      FAMILY(Selection),
      FAMILY(Products),
      FAMILY(Factors),
      FAMILY(Normalise),
      FAMILY(Losses),
      FAMILY(CrossEntropy),
      FAMILY(Convolution),
      FAMILY(Filters),
      FAMILY(Placement),
      FAMILY(Scans),
      FAMILY(Constants),
      FAMILY(Random),
      FAMILY(Training),
      // After the operators that they apply.
      FAMILY(Folds),
  };
  for (const Family &family : families) {
    size_t begin = ops_.size();
    family.add(ops_);
    for (Op &op : std::span(ops_).subspan(begin))
      op.family = family.name;
  }
  addGradients(ops_);
  std::sort(ops_.begin(), ops_.end(), [](const Op &a, const Op &b) { return a.name < b.name; });
}
#undef FAMILY

bool Op::draws() const {
  return std::any_of(params.begin(), params.end(),
                     [](const Param &param) { return param.kind == ParamKind::Key; });
}

static std::string written(const Attr &value) {
  if (auto *number = std::get_if<int64_t>(&value))
    return std::to_string(*number);
  if (auto *number = std::get_if<double>(&value)) {
    char text[32];
    return {text, std::to_chars(text, std::end(text), *number).ptr};
  }
  auto *dim = std::get_if<Dim>(&value);
  return dim ? dim->str() : "none";
}

std::string Op::signature() const {
  std::string text;
  for (const Param &param : params) {
    if (param.kind == ParamKind::Key)
      continue;
    text += (text.empty() ? "" : ", ") + param.name;
    if (param.kind == ParamKind::Tensors || param.kind == ParamKind::Extents)
      text += "...";
    if (param.defaultValue)
      text += "=" + written(*param.defaultValue);
    else if (param.optional)
      text += "=" + param.leftOut;
  }
  return name + "(" + text + ")";
}

const OpTable &OpTable::get() {
  static const OpTable table;
  return table;
}

const Op *OpTable::find(std::string_view name) const {
  auto it = std::lower_bound(ops_.begin(), ops_.end(), name,
                             [](const Op &op, std::string_view key) { return op.name < key; });
  return it != ops_.end() && it->name == name ? &*it : nullptr;
}

Attrs canonicalAttrs(const Op &op, std::span<const OperandType> operands, Attrs attrs) {
  const TensorType *first = operands.empty() ? nullptr : operands[0].tensor();
  int64_t rank = first ? static_cast<int64_t>(first->dims.size()) : 0;
  if (op.axisOfResult)
    ++rank;
  for (const Param &param : op.params) {
    if (param.defaultValue)
      attrs.try_emplace(param.name, *param.defaultValue);
    if (param.kind != ParamKind::Static || !param.name.starts_with("axis"))
      continue;
    auto it = attrs.find(param.name);
    if (it == attrs.end())
      continue;
    if (auto *axis = std::get_if<int64_t>(&it->second); axis && *axis < 0)
      *axis += rank;
  }
  return attrs;
}

} // namespace sheaf::ops
