//===- answers.h - What `sheaf run` prints of instances ---------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_ANSWERS_H
#define SHEAF_TOOLS_SHEAF_ANSWERS_H

#include "runtime/io/output.h"
#include "runtime/session/session.h"

#include <string>

namespace sheaf::tool {

struct Answer {
  std::string line;  ///< of the output; empty where none is wanted
  std::string error; ///< for standard error
};

struct AnswerForm {
  bool isPrinted = true;
  bool isNumbered = false; ///< each line says which instance it speaks of
};

/// Puts outcomes into words. All arguments must outlive it.
class AnswerWriter {
public:
  AnswerWriter(const rt::Session &session, const io::Vocabularies &vocabularies, AnswerForm form);

  AnswerForm form() const { return form_; }
  /// `place`: of the instance in the data.
  Answer outcome(const rt::Instance &instance, const std::string &place,
                 const rt::Outcome &outcome);
  /// Of an instance that did not come to run. May be called beside the others.
  Answer noResult(int64_t instance, std::string error) const;
  std::string emission(int64_t instance, const rt::Slot *value);

private:
  std::string begin(int64_t instance) const;
  const char *end() const { return form_.isNumbered ? "}\n" : "\n"; }

  const rt::Model &model_;
  const AnswerForm form_;
  io::JsonValueWriter values_;
};

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_ANSWERS_H
