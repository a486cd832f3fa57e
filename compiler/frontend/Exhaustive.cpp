//===- Exhaustive.cpp - What the arms of a match cover --------------------===//

#include "compiler/frontend/Exhaustive.h"

#include <algorithm>
#include <map>
#include <set>

namespace sheaf {
namespace {

using typed::Pattern;
using typed::PatternKind;

bool isWild(const Pattern *pattern) {
  return !pattern || pattern->kind == PatternKind::Wildcard || pattern->kind == PatternKind::Bind;
}

/// What a pattern tests at its head. Patterns of one column have one type, so the numbers of two
/// heads compare.
int64_t headOf(const Pattern &pattern) {
  switch (pattern.kind) {
  case PatternKind::Int:
  case PatternKind::Bool:
    return pattern.value;
  case PatternKind::Constructor:
    return pattern.constructor;
  case PatternKind::Cons:
    return 1;
  default:
    return 0;
  }
}

/// The heads that a column's values can have, when they are few enough to write down.
struct Signature {
  bool finite = false;
  int64_t count = 0;
  std::optional<int64_t> only = {}; ///< the one that they have, if that is known

  bool has(int64_t head) const { return !only || *only == head; }
};

Signature signatureOf(const Pattern &pattern) {
  switch (pattern.kind) {
  case PatternKind::Bool:
    return {true, 2};
  case PatternKind::Tuple:
    return {true, 1};
  case PatternKind::Nil:
  case PatternKind::Cons:
    if (pattern.length)
      return {true, 2, *pattern.length > 0};
    return {true, 2};
  case PatternKind::Constructor:
    return {true, static_cast<int64_t>(pattern.type->data->constructors.size())};
  default:
    return {};
  }
}

size_t arity(const Pattern &sample, int64_t head) {
  switch (sample.kind) {
  case PatternKind::Tuple:
    return sample.args.size();
  case PatternKind::Nil:
  case PatternKind::Cons:
    return head == 1 ? 2 : 0;
  case PatternKind::Constructor:
    return sample.type->data->constructors[head].fields.size();
  default:
    return 0;
  }
}

std::string spell(const Pattern &sample, int64_t head, const std::vector<std::string> &args) {
  auto list = [&](const std::string &open) {
    std::string text = open;
    for (size_t i = 0; i < args.size(); ++i)
      text += (i ? ", " : "") + args[i];
    return text + ")";
  };
  switch (sample.kind) {
  case PatternKind::Bool:
    return head ? "true" : "false";
  case PatternKind::Int:
    return std::to_string(head);
  case PatternKind::Tuple:
    return list("(");
  case PatternKind::Constructor: {
    const std::string &name = sample.type->data->constructors[head].name;
    return args.empty() ? name : list(name + "(");
  }
  case PatternKind::Nil:
  case PatternKind::Cons: {
    if (head == 0)
      return "[]";
    if (args[1] == "[]")
      return "[" + args[0] + "]";
    if (args[1].starts_with("["))
      return "[" + args[0] + ", " + args[1].substr(1);
    bool nested = args[0].find(" :: ") != std::string::npos;
    return (nested ? "(" + args[0] + ")" : args[0]) + " :: " + args[1];
  }
  default:
    return "_";
  }
}

using Row = std::vector<const Pattern *>;

/// The first column, taken from the front: rows are kept reversed, so that it is the last entry.
const Pattern *first(const Row &row) { return row.back(); }

/// The rows that a value with this head may match, with the head's arguments in place of it.
std::vector<Row> specialise(const std::vector<Row> &matrix, int64_t head, size_t arity) {
  std::vector<Row> result;
  for (const Row &row : matrix) {
    const Pattern *pattern = first(row);
    if (!isWild(pattern) && headOf(*pattern) != head)
      continue;
    Row next(row.begin(), row.end() - 1);
    for (size_t i = arity; i > 0; --i)
      next.push_back(isWild(pattern) ? nullptr : pattern->args[i - 1]);
    result.push_back(std::move(next));
  }
  return result;
}

/// The rows that match any head.
std::vector<Row> rest(const std::vector<Row> &matrix) {
  std::vector<Row> result;
  for (const Row &row : matrix)
    if (isWild(first(row)))
      result.emplace_back(row.begin(), row.end() - 1);
  return result;
}

/// A pattern of the first column with a head, or null if all are wild; and the heads that occur.
const Pattern *sampleOf(const std::vector<Row> &matrix, std::set<int64_t> &heads) {
  const Pattern *sample = nullptr;
  for (const Row &row : matrix)
    if (!isWild(first(row))) {
      sample = first(row);
      heads.insert(headOf(*sample));
    }
  return sample;
}

} // namespace

/// On success `witness` holds a pattern for each column, the first column last.
bool Coverage::missing(std::vector<Row> matrix, size_t width, Witness &witness) {
  steps += matrix.size() + 1;
  if (gaveUp())
    return false;
  if (width == 0)
    return matrix.empty();
  std::set<int64_t> heads;
  const typed::Pattern *sample = sampleOf(matrix, heads);
  if (!sample) {
    if (!missing(rest(matrix), width - 1, witness))
      return false;
    witness.push_back("_");
    return true;
  }
  Signature signature = signatureOf(*sample);
  if (signature.only)
    heads = {*signature.only};
  if (signature.only ||
      (signature.finite && static_cast<int64_t>(heads.size()) == signature.count)) {
    for (int64_t head : heads) {
      size_t count = arity(*sample, head);
      if (!missing(specialise(matrix, head, count), width - 1 + count, witness))
        continue;
      std::vector<std::string> args(witness.rbegin(), witness.rbegin() + count);
      witness.resize(witness.size() - count);
      witness.push_back(spell(*sample, head, args));
      return true;
    }
    return false;
  }
  if (!missing(rest(matrix), width - 1, witness))
    return false;
  int64_t absent = 0;
  while (heads.contains(absent))
    ++absent;
  witness.push_back(spell(*sample, absent, std::vector<std::string>(arity(*sample, absent), "_")));
  return true;
}

bool Coverage::useful(std::vector<Row> matrix, Row row) {
  steps += matrix.size() + 1;
  if (gaveUp())
    return true;
  if (row.empty())
    return matrix.empty();
  const typed::Pattern *pattern = first(row);
  std::set<int64_t> heads;
  const typed::Pattern *sample = sampleOf(matrix, heads);
  auto withHead = [&](const typed::Pattern &of, int64_t head) {
    size_t count = arity(of, head);
    return useful(specialise(matrix, head, count), specialise({row}, head, count).front());
  };
  if (!isWild(pattern))
    return withHead(*pattern, headOf(*pattern));
  if (sample) {
    Signature signature = signatureOf(*sample);
    if (signature.finite && static_cast<int64_t>(heads.size()) == signature.count)
      return std::any_of(heads.begin(), heads.end(),
                         [&](int64_t head) { return withHead(*sample, head); });
  }
  row.pop_back();
  return useful(rest(matrix), std::move(row));
}

std::vector<std::string> Coverage::missing() {
  std::vector<Row> matrix;
  for (const typed::Pattern *pattern : rows)
    matrix.push_back({pattern});
  std::set<int64_t> heads;
  const typed::Pattern *sample = sampleOf(matrix, heads);
  std::vector<std::string> examples;
  if (!sample || !signatureOf(*sample).finite) {
    Witness witness;
    if (missing(std::move(matrix), 1, witness))
      examples.push_back(witness.front());
  } else {
    Signature signature = signatureOf(*sample);
    for (int64_t head = 0; head < signature.count; ++head) {
      if (!signature.has(head))
        continue;
      size_t count = arity(*sample, head);
      Witness witness;
      if (missing(specialise(matrix, head, count), count, witness))
        examples.push_back(spell(*sample, head, {witness.rbegin(), witness.rend()}));
    }
  }
  return gaveUp() ? std::vector<std::string>() : examples;
}

bool Coverage::isUseful(const typed::Pattern &pattern, size_t count) {
  // Long matches of ints are common enough to spare them a look at all rows before each.
  if (pattern.kind == typed::PatternKind::Int) {
    for (; indexed < count; ++indexed) {
      if (isWild(rows[indexed]))
        firstWild = std::min(firstWild, indexed);
      else
        ints.try_emplace(rows[indexed]->value, indexed);
    }
    auto same = ints.find(pattern.value);
    return firstWild >= count && (same == ints.end() || same->second >= count);
  }
  std::vector<Row> matrix;
  for (size_t i = 0; i < count; ++i)
    matrix.push_back({rows[i]});
  return useful(std::move(matrix), {&pattern});
}

} // namespace sheaf
