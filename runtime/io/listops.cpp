#include "runtime/io/listops.h"

#include "runtime/model/error.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <vector>

namespace sheaf::io {

namespace {

enum Operator { Max, Min, Med, SumMod };
constexpr const char *kWords[] = {"[MAX", "[MIN", "[MED", "[SM"};

int valueOf(Operator op, std::vector<int> args) {
  std::sort(args.begin(), args.end());
  int sum = 0;
  for (int a : args)
    sum += a;
  size_t middle = args.size() / 2;
  switch (op) {
  case Max:
    return args.back();
  case Min:
    return args.front();
  case Med:
    return args.size() % 2 ? args[middle] : (args[middle - 1] + args[middle]) / 2;
  case SumMod:
    break;
  }
  return sum % 10;
}

/// An expression whose arguments are being made.
struct Open {
  Operator op;
  int64_t wanted;
  std::vector<int> values;
  std::string tree; ///< the operator with the arguments so far
};

} // namespace

ListOps::ListOps(const ListOpsOptions &options) : options_(options) {
  if (options.maxDepth < 1 || options.maxDepth > 1000)
    throw UserError(fmt::format("max-depth {}: expected 1 to 1000", options.maxDepth));
  if (options.maxArgs < 2 || options.maxArgs > 100)
    throw UserError(fmt::format("max-args {}: expected 2 to 100", options.maxArgs));
  if (!(options.nested >= 0 && options.nested <= 1))
    throw UserError(fmt::format("nested {}: expected 0 to 1", options.nested));
  nestedBelow_ = static_cast<uint64_t>(std::llround(options.nested * 0x1p32));
}

/// splitmix64: small, known, and the same everywhere.
uint64_t ListOps::random() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

uint64_t ListOps::below(uint64_t n) { return (random() >> 32) * n >> 32; }

void ListOps::append(std::string &out) {
  state_ = options_.seed;
  state_ = random() ^ ++made_ * 0xd1342543de82ef95u;
  std::vector<Open> open;
  int64_t words = 0;
  auto begin = [&] {
    auto op = static_cast<Operator>(below(4));
    int64_t wanted = 2 + static_cast<int64_t>(below(static_cast<uint64_t>(options_.maxArgs - 1)));
    words += 2;
    open.push_back({op, wanted, {}, fmt::format("(0 {})", kWords[op])});
  };
  begin();
  for (;;) {
    Open &top = open.back();
    int value = 0;
    std::string tree;
    if (static_cast<int64_t>(top.values.size()) == top.wanted) {
      value = valueOf(top.op, top.values);
      tree = fmt::format("({} {} (0 ]))", value, top.tree);
      open.pop_back();
      if (open.empty()) {
        out += tree + '\n';
        return;
      }
    } else if (static_cast<int64_t>(open.size()) < options_.maxDepth && words < options_.maxWords &&
               random() >> 32 < nestedBelow_) {
      begin();
      continue;
    } else {
      value = static_cast<int>(below(10));
      ++words;
      tree = fmt::format("({} {})", value, value);
    }
    Open &parent = open.back();
    parent.values.push_back(value);
    parent.tree = fmt::format("({} {} {})", valueOf(parent.op, parent.values), parent.tree, tree);
  }
}

} // namespace sheaf::io
