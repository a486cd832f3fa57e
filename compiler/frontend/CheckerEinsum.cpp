//===- CheckerEinsum.cpp - Sums of products by letters --------------------===//
//
// einsum("nd,dh->nh", x, w) becomes the operators that one would write: products of matrices where
// a letter of both sides is summed, products of elements where none is, sums, and movements of axes
// between them. What fits as it stands is taken as it stands, so weights are packed and products
// are fused as in the form that is written out; the order of sums is theirs, too.
//
//===----------------------------------------------------------------------===//

#include "compiler/frontend/CheckerOps.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace sheaf {

struct OperatorCalls::Einsum {
  OperatorCalls &calls;
  SourceRange range;
  std::string output;

  /// A tensor, and the letter of each of its axes.
  struct Term {
    std::string letters;
    E value;
  };

  static bool has(const std::string &letters, char letter) {
    return letters.find(letter) != std::string::npos;
  }
  static std::string filtered(const std::string &letters, auto &&keep) {
    std::string result;
    std::copy_if(letters.begin(), letters.end(), std::back_inserter(result), keep);
    return result;
  }
  /// In the order of the output; what it has not comes after that.
  std::string ordered(const std::string &letters) const {
    std::string result = letters;
    std::sort(result.begin(), result.end(), [&](char a, char b) {
      return std::pair(output.find(a), letters.find(a)) <
             std::pair(output.find(b), letters.find(b));
    });
    return result;
  }

  E apply(const char *name, std::vector<const typed::Expr *> operands, ops::Attrs attrs = {}) {
    auto *node = calls.make<typed::ApplyExpr>(range, nullptr);
    node->op = ops::OpTable::get().find(name);
    node->operands = std::move(operands);
    node->attrs = std::move(attrs);
    std::vector<ops::OperandType> types;
    for (const typed::Expr *operand : node->operands) {
      auto type =
          calls.operandType(const_cast<E>(operand), operand->range, "an argument of 'einsum'");
      if (!type)
        return calls.error(range);
      types.push_back(*type);
    }
    return calls.finishApply(node, std::move(types), range);
  }

  Dim extentOf(const Term &term, char letter) const {
    TypeRef type = calls.types.resolve(term.value->type);
    if (!type->is(TypeKind::Tensor)) // an operator has refused it
      return 1;
    return type->tensor.dims[term.letters.find(letter)];
  }
  Dim extentOf(const Term &term, const std::string &letters) const {
    Dim product = 1;
    for (char letter : letters)
      product = product * extentOf(term, letter);
    return product;
  }

  /// The term with its axes in another order.
  void arrange(Term &term, const std::string &letters) {
    for (size_t i = 0; i < letters.size(); ++i) {
      size_t at = term.letters.find(letters[i]);
      if (at == i)
        continue;
      term.value = apply("transpose", {term.value},
                         {{"axis1", static_cast<int64_t>(i)}, {"axis2", static_cast<int64_t>(at)}});
      std::swap(term.letters[i], term.letters[at]);
    }
  }

  void sumOut(Term &term, const std::string &letters) {
    // From the back, so that the places of those before stay.
    for (size_t i = term.letters.size(); i-- > 0;)
      if (has(letters, term.letters[i])) {
        term.value = apply("sum", {term.value},
                           {{"axis", static_cast<int64_t>(i)}, {"keepdims", int64_t{0}}});
        term.letters.erase(i, 1);
      }
  }

  /// The axes of each group as one axis, in this order; a group without letters is none.
  E grouped(Term term, const std::vector<std::string> &groups) {
    std::string order;
    std::vector<Dim> extents;
    bool joins = false;
    for (const std::string &group : groups) {
      order += group;
      joins |= group.size() > 1;
    }
    arrange(term, order);
    for (const std::string &group : groups)
      if (!group.empty())
        extents.push_back(extentOf(term, group));
    return joins ? apply("reshape", {term.value}, {{"dims", extents}}) : term.value;
  }

  /// Axes of extent 1 for the letters that the term has not, so that it broadcasts.
  E spread(Term term, const std::string &letters) {
    arrange(term, filtered(letters, [&](char letter) { return has(term.letters, letter); }));
    bool begun = false;
    for (size_t i = 0; i < letters.size(); ++i) {
      begun |= has(term.letters, letters[i]);
      if (begun && !has(term.letters, letters[i])) {
        // Leading axes that are not there broadcast by themselves.
        size_t place = 0;
        for (size_t j = 0; j < i; ++j)
          place += has(term.letters, letters[j]);
        term.value = apply("expand_dims", {term.value}, {{"axis", static_cast<int64_t>(place)}});
        term.letters.insert(place, 1, letters[i]);
      }
    }
    return term.value;
  }

  /// Whether b @ a needs fewer movements than a @ b. The result has the columns of the right side
  /// last; a vector stands on the side where the matrix fits as it is.
  bool isBetterSwapped(const Term &a, const Term &b, const std::string &left,
                       const std::string &right, const std::string &batch) const {
    auto firstOf = [&](const Term &term) {
      return filtered(term.letters, [&](char c) { return !has(batch, c); }).front();
    };
    if (!left.empty() && !right.empty())
      return ordered(left + right).back() == left.back();
    if (!left.empty())
      return firstOf(a) != left.front();
    return !right.empty() && firstOf(b) == right.front();
  }

  /// The product of two terms, summed over the letters that nothing needs any more.
  Term product(Term a, Term b, const std::string &needed) {
    auto only = [&](const Term &x, const Term &y) {
      return filtered(x.letters, [&](char c) { return !has(y.letters, c) && !has(needed, c); });
    };
    sumOut(a, only(a, b));
    sumOut(b, only(b, a));
    std::string batch =
        ordered(filtered(a.letters, [&](char c) { return has(b.letters, c) && has(needed, c); }));
    auto own = [&](const Term &x, const Term &y) {
      return ordered(filtered(x.letters, [&](char c) { return !has(y.letters, c); }));
    };
    auto summedOf = [&](const Term &x) {
      return filtered(x.letters, [&](char c) {
        return has(a.letters, c) && has(b.letters, c) && !has(needed, c);
      });
    };
    if (isBetterSwapped(a, b, own(a, b), own(b, a), batch))
      std::swap(a, b);
    std::string left = own(a, b), right = own(b, a), summed = summedOf(b);
    if (summed.empty()) {
      std::string all = ordered(batch + left + right);
      return {all, apply("mul", {spread(a, all), spread(b, all)})};
    }
    if (left.empty() && right.empty()) {
      if (batch.empty() && summed.size() == 1)
        return {"", apply("dot", {a.value, b.value})};
      std::string all = batch + summed;
      Term result{all, apply("mul", {spread(a, all), spread(b, all)})};
      sumOut(result, summed);
      return result;
    }
    Term result{batch + left + right, nullptr};
    if (batch.empty()) {
      // Rows of rows are rows; of a weight all columns are one axis.
      std::vector<std::string> rows;
      for (char letter : left)
        rows.emplace_back(1, letter);
      rows.push_back(summed);
      E x = grouped(a, rows), y = grouped(b, {summed, right});
      result.value = apply("matmul", {x, y});
    } else {
      std::vector<std::string> sidesA, sidesB;
      for (char letter : batch) {
        sidesA.emplace_back(1, letter);
        sidesB.emplace_back(1, letter);
      }
      sidesA.insert(sidesA.end(), {left, summed});
      sidesB.insert(sidesB.end(), {summed, right});
      E x = grouped(a, sidesA), y = grouped(b, sidesB);
      auto at = static_cast<int64_t>(batch.size());
      if (left.empty())
        x = apply("expand_dims", {x}, {{"axis", at}});
      if (right.empty())
        y = apply("expand_dims", {y}, {{"axis", at + 1}});
      result.value = apply("matmul", {x, y});
      if (right.empty())
        result.value = apply("squeeze", {result.value}, {{"axis", at + 1}});
      if (left.empty())
        result.value = apply("squeeze", {result.value}, {{"axis", at}});
    }
    bool joined = right.size() > 1 || (!batch.empty() && left.size() > 1);
    if (joined) {
      std::vector<Dim> extents;
      for (char letter : result.letters)
        extents.push_back(extentOf(has(a.letters, letter) ? a : b, letter));
      result.value = apply("reshape", {result.value}, {{"dims", extents}});
    }
    return result;
  }

  E run(std::vector<Term> terms) {
    Term result = terms.front();
    for (size_t i = 1; i < terms.size(); ++i) {
      std::string needed = output;
      for (size_t j = i + 1; j < terms.size(); ++j)
        needed += terms[j].letters;
      result = product(std::move(result), terms[i], needed);
      if (calls.isError(result.value->type))
        return result.value;
    }
    sumOut(result, filtered(result.letters, [&](char c) { return !has(output, c); }));
    arrange(result, output);
    return result.value;
  }
};

OperatorCalls::E OperatorCalls::einsum(const std::vector<Arg> &args, SourceRange range) {
  constexpr const char *form = "it is written einsum(\"nd,dh->nh\", x, w)";
  const auto *literal =
      args.empty() || !args[0].syntax ? nullptr : args[0].syntax->as<StringLiteralExpr>();
  std::vector<E> values;
  bool bad = false;
  for (size_t i = literal ? 1 : 0; i < args.size(); ++i) {
    if (args[i].name) {
      diags.error(args[i].name->range,
                  fmt::format("'einsum' has no argument '{}'", args[i].name->name), form);
      bad = true;
    }
    values.push_back(bodies.inferArg(args[i]));
    bad |= isError(values.back()->type);
  }
  if (!literal)
    return fail(args.empty() ? range : args[0].range,
                "the first argument of 'einsum' says in quotes which letters the axes have", form);
  if (bad)
    return error(range);
  // A place in the text; there are no escapes among letters.
  auto failAt = [&](size_t at, size_t size, std::string message, std::string help = {}) {
    auto begin = static_cast<uint32_t>(literal->range.begin + 1 + at);
    return fail({begin, begin + static_cast<uint32_t>(size)}, std::move(message), std::move(help));
  };
  const std::string &text = literal->value;
  size_t arrow = std::min(text.find("->"), text.size());
  std::vector<Einsum::Term> terms{{}};
  std::vector<size_t> begins{0}; ///< of the terms in the text
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (i == arrow) {
      terms.push_back({});
      begins.push_back(i + 2);
      ++i;
    } else if (c == ',' && i < arrow) {
      terms.push_back({});
      begins.push_back(i + 1);
    } else if (c == '.') {
      return failAt(i, 1, "'einsum' takes no '...'", "give each axis a letter");
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      std::string &letters = terms.back().letters;
      if (Einsum::has(letters, c))
        return failAt(i, 1, fmt::format("'{}' stands twice in '{}'", c, letters + c),
                      i > arrow ? "" : "'einsum' takes no diagonals");
      letters += c;
    } else if (c != ' ') {
      return failAt(i, 1, fmt::format("'{}' is no letter", c), form);
    }
  }
  std::string output;
  if (arrow < text.size()) {
    output = terms.back().letters;
    terms.pop_back();
  } else {
    // As NumPy has it: the letters that stand in one term, by the alphabet.
    std::map<char, int> count;
    for (const Einsum::Term &term : terms)
      for (char c : term.letters)
        ++count[c];
    for (auto [c, times] : count)
      if (times == 1)
        output += c;
  }
  if (terms.size() != values.size())
    return fail(literal->range,
                fmt::format("'{}' has {} term{} for {} tensor{}", text, terms.size(),
                            terms.size() == 1 ? "" : "s", values.size(),
                            values.size() == 1 ? "" : "s"),
                form);
  std::map<char, size_t> firstWith; ///< by letter: a term that has it
  for (size_t i = 0; i < terms.size(); ++i) {
    Einsum::Term &term = terms[i];
    term.value = values[i];
    TypeRef type = types.resolve(values[i]->type);
    if (!type->is(TypeKind::Tensor))
      return fail(values[i]->range,
                  fmt::format("an argument of 'einsum' must be a tensor, but this is '{}'",
                              types.print(type)),
                  type->is(TypeKind::List) ? tensorOfListHelp(type) : "");
    if (type->tensor.dims.size() != term.letters.size())
      return failAt(begins[i], std::max<size_t>(term.letters.size(), 1),
                    fmt::format("'{}' has {} letter{}, but the tensor is '{}'", term.letters,
                                term.letters.size(), term.letters.size() == 1 ? "" : "s",
                                types.print(type)));
    for (size_t axis = 0; axis < term.letters.size(); ++axis) {
      char c = term.letters[axis];
      auto [it, isNew] = firstWith.try_emplace(c, i);
      if (isNew)
        continue;
      TypeRef first = types.resolve(values[it->second]->type);
      const Dim &before = first->tensor.dims[terms[it->second].letters.find(c)];
      const Dim &here = type->tensor.dims[axis];
      if (dims.same(before, here))
        continue;
      std::string a = dims.print(before), b = dims.print(here);
      bool areNumbers = dims.value(before) && dims.value(here);
      return fail(values[i]->range,
                  fmt::format("'{}' is {} in '{}' and {} in '{}'", c, a, types.print(first), b,
                              types.print(type)),
                  areNumbers ? ""
                             : fmt::format("if they are always equal, say so before: check {} == "
                                           "{}",
                                           a, b));
    }
  }
  for (size_t i = 0; i < output.size(); ++i)
    if (!firstWith.contains(output[i]))
      return failAt(text.find(output[i], arrow), 1,
                    fmt::format("'{}' stands in no term before the arrow", output[i]));
  return Einsum{*this, range, output}.run(std::move(terms));
}

} // namespace sheaf
