//===- Value.cpp - Values of the oracle -----------------------------------===//

#include "compiler/oracle/Value.h"

#include <algorithm>

namespace sheaf::oracle {
namespace {

using Kind = Cell::Kind;

Value makeCell(Kind kind, int64_t number, std::vector<Value> children, int32_t height = 0) {
  return std::make_shared<const Cell>(kind, number, std::move(children), height);
}

int32_t height(const Value &list) { return cell(list).height; }
const Value &left(const Value &list) { return cell(list).children[0]; }
const Value &right(const Value &list) { return cell(list).children[1]; }

Value join(Value a, Value b) {
  int64_t size = length(a) + length(b);
  int32_t tall = std::max(height(a), height(b)) + 1;
  std::vector<Value> children;
  children.push_back(std::move(a));
  children.push_back(std::move(b));
  return makeCell(Kind::Join, size, std::move(children), tall);
}

/// Joins two trees whose heights differ by at most 2, by a rotation if it must be.
Value balance(const Value &a, const Value &b) {
  if (height(b) > height(a) + 1) {
    if (height(left(b)) > height(right(b)))
      return join(join(a, left(left(b))), join(right(left(b)), right(b)));
    return join(join(a, left(b)), right(b));
  }
  if (height(a) > height(b) + 1) {
    if (height(right(a)) > height(left(a)))
      return join(join(left(a), left(right(a))), join(right(right(a)), b));
    return join(left(a), join(right(a), b));
  }
  return join(a, b);
}

Value build(std::vector<Value> &elements, size_t begin, size_t end) {
  if (end - begin == 1) {
    std::vector<Value> child;
    child.push_back(std::move(elements[begin]));
    return makeCell(Kind::Leaf, 1, std::move(child), 1);
  }
  size_t middle = begin + (end - begin) / 2;
  return join(build(elements, begin, middle), build(elements, middle, end));
}

} // namespace

Cell::~Cell() {
  // A chain of cells would take one machine frame a link.
  std::vector<Value> pending = std::move(children);
  while (!pending.empty()) {
    Value value = std::move(pending.back());
    pending.pop_back();
    auto *child = std::get_if<CellPtr>(&value);
    if (!child || !*child || child->use_count() != 1)
      continue;
    auto &below = const_cast<Cell &>(**child).children;
    std::move(below.begin(), below.end(), std::back_inserter(pending));
    below.clear();
  }
}

Value makeTuple(std::vector<Value> fields) { return makeCell(Kind::Tuple, 0, std::move(fields)); }

Value makeData(int64_t ctor, std::vector<Value> fields) {
  return makeCell(Kind::Data, ctor, std::move(fields));
}

Value makeTensor(ops::RefTensor tensor) {
  return std::make_shared<const ops::RefTensor>(std::move(tensor));
}

Value makeList(std::vector<Value> elements) {
  if (elements.empty())
    return makeCell(Kind::Empty, 0, {});
  return build(elements, 0, elements.size());
}

Value concat(const Value &a, const Value &b) {
  if (length(a) == 0)
    return b;
  if (length(b) == 0)
    return a;
  if (height(a) > height(b) + 1)
    return balance(left(a), concat(right(a), b));
  if (height(b) > height(a) + 1)
    return balance(concat(a, left(b)), right(b));
  return join(a, b);
}

int64_t length(const Value &list) { return cell(list).number; }

Value element(const Value &list, int64_t index) {
  const Value *at = &list;
  while (cell(*at).kind == Kind::Join) {
    int64_t before = length(left(*at));
    if (index < before) {
      at = &left(*at);
    } else {
      index -= before;
      at = &right(*at);
    }
  }
  return cell(*at).children[0];
}

Value slice(const Value &list, int64_t lo, int64_t hi) {
  if (lo == 0 && hi == length(list))
    return list;
  if (lo == hi)
    return makeList({});
  // Only a list of two parts can be cut: a single element is taken whole or not at all.
  int64_t before = length(left(list));
  Value first = slice(left(list), std::min(lo, before), std::min(hi, before));
  Value second = slice(right(list), std::max(lo, before) - before, std::max(hi, before) - before);
  return concat(first, second);
}

std::vector<Value> elements(const Value &list) {
  std::vector<Value> result;
  result.reserve(static_cast<size_t>(length(list)));
  std::vector<const Value *> pending = {&list};
  while (!pending.empty()) {
    const Cell &at = cell(*pending.back());
    pending.pop_back();
    if (at.kind == Kind::Leaf)
      result.push_back(at.children[0]);
    else if (at.kind == Kind::Join) {
      pending.push_back(&at.children[1]);
      pending.push_back(&at.children[0]);
    }
  }
  return result;
}

} // namespace sheaf::oracle
