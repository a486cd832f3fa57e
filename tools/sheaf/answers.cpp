//===- answers.cpp - What `sheaf run` prints of instances -----------------===//
#include "tools/sheaf/answers.h"

#include <fmt/format.h>

namespace sheaf::tool {

AnswerWriter::AnswerWriter(const rt::Session &session, const io::Vocabularies &vocabularies,
                           AnswerForm form)
    : model_(session.model()), form_(form),
      values_(
          model_.types,
          [&session](uint32_t type, const rt::Slot *slots) { return session.tensor(type, slots); },
          &vocabularies) {}

std::string AnswerWriter::begin(int64_t instance) const {
  return form_.isNumbered ? fmt::format("{{\"instance\": {}, \"result\": ", instance)
                          : std::string();
}

Answer AnswerWriter::outcome(const rt::Instance &instance, const std::string &place,
                             const rt::Outcome &outcome) {
  if (!outcome.ok())
    return noResult(instance.index, fmt::format("{}: error: instance {}: {}\n", place,
                                                instance.index, outcome.error->message()));
  if (!form_.isPrinted)
    return {};
  std::string line = begin(instance.index);
  if (form_.isNumbered)
    values_.append(line, model_.entry.ownResult(model_.types), outcome.slots);
  else
    values_.appendOutcome(line, model_.entry, outcome.slots);
  return {line + end(), {}};
}

Answer AnswerWriter::noResult(int64_t instance, std::string error) const {
  return {form_.isPrinted ? begin(instance) + "null" + end() : std::string(), std::move(error)};
}

std::string AnswerWriter::emission(int64_t instance, const rt::Slot *value) {
  std::string line = fmt::format("{{\"instance\": {}, \"emitted\": ", instance);
  values_.append(line, *model_.entry.emits, value);
  return line + "}\n";
}

} // namespace sheaf::tool
