//===- error.h - Why an artefact is refused ---------------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_ARTEFACT_ERROR_H
#define SHEAF_RUNTIME_ARTEFACT_ERROR_H

#include "runtime/model/error.h"

namespace sheaf::artefact {

enum class Refusal {
  NotReadable,   ///< the file, as the system says
  NotAnArtefact, ///< something else
  Damaged,       ///< cut short, changed, or inconsistent
  Older,         ///< made by an earlier Sheaf
  Newer,         ///< made by a later Sheaf in a form that this one does not know
  OtherMachine,  ///< code for a processor that this one is not
  Digest         ///< not the file whose SHA-256 was asked for
};

/// The message names the field where one is wrong.
class ArtefactError : public PlacedError {
public:
  ArtefactError(Refusal why, const std::string &message)
      : PlacedError({}, message, message), why(why) {}
  ArtefactError(Refusal why, const std::string &file, const std::string &message)
      : PlacedError({file}, message), why(why) {}
  Refusal why;
};

} // namespace sheaf::artefact

#endif // SHEAF_RUNTIME_ARTEFACT_ERROR_H
