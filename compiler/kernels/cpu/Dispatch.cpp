//===- Dispatch.cpp - Who computes the products of a block ----------------===//
#include "compiler/kernels/cpu/Dispatch.h"

#include <algorithm>

namespace sheaf::kernels::cpu {

namespace {

std::string leftOut(std::string_view name) {
  return "left out (--without " + std::string(name) + ")";
}

const vendor::LoadedLibrary &loaded(const vendor::KnownLibrary &known) {
  const auto &all = vendor::loadedLibraries();
  return *std::find_if(all.begin(), all.end(), [&](const vendor::LoadedLibrary &library) {
    return library.known.name == known.name;
  });
}

} // namespace

Dispatch::Dispatch(NumericClass numericClass, const std::set<std::string> &without, int64_t first)
    : numericClass_(numericClass), without_(without), order_{nullptr} {
  for (const vendor::KnownLibrary &known : vendor::knownLibraries())
    order_.push_back(&known);
  if (first > 0 && first <= static_cast<int64_t>(order_.size()))
    std::rotate(order_.begin(), order_.begin() + first - 1, order_.begin() + first);
}

std::optional<std::string> Dispatch::refusal(const vendor::KnownLibrary &known,
                                             const ProductQuestion &question) const {
  if (numericClass_ == NumericClass::Exact)
    return "it does not keep the order of sums, and the numeric class is exact";
  if (without_.contains(known.module))
    return leftOut(known.module);
  const vendor::LoadedLibrary &library = loaded(known);
  if (!library.table)
    return library.problem;
  if (question.bf16)
    return "the factors are in bf16";
  if (!question.shape)
    return "the right operand is no packed matrix of weights";
  if (!library.table->accepts(&*question.shape))
    return "it has no kernel for these extents";
  return std::nullopt;
}

ProductAnswer Dispatch::ask(const ProductQuestion &question) {
  ProductAnswer answer;
  std::string taken;
  for (const vendor::KnownLibrary *known : order_) {
    Verdict verdict{known ? known->name : "generated", ""};
    std::optional<std::string> reason;
    if (known) {
      reason = refusal(*known, question);
      if (!reason && taken.empty() && taken_ && taken_ != loaded(*known).table)
        reason = std::string("the block takes ") + taken_->name;
    } else if (without_.contains(std::string(kGeneratedSwitch))) {
      reason = leftOut(kGeneratedSwitch);
    }
    if (reason) {
      verdict.reason = "refuses: " + *reason;
    } else if (!taken.empty()) {
      verdict.reason = "not needed after " + taken;
    } else {
      taken = verdict.implementation;
      if (known)
        answer.library = taken_ = loaded(*known).table;
    }
    answer.verdicts.push_back(std::move(verdict));
  }
  // Somebody must.
  if (taken.empty())
    for (Verdict &verdict : answer.verdicts)
      if (verdict.implementation == "generated")
        verdict.reason.clear();
  return answer;
}

std::string describeLibraries(NumericClass numericClass) {
  std::string text;
  if (numericClass == NumericClass::Exact)
    return text;
  text = " any";
  for (const vendor::LoadedLibrary &library : vendor::loadedLibraries())
    if (library.table)
      text += " " + library.known.name + " " + library.table->version;
  return text;
}

} // namespace sheaf::kernels::cpu
