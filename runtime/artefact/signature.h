//===- signature.h - Which values a model takes -----------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_ARTEFACT_SIGNATURE_H
#define SHEAF_RUNTIME_ARTEFACT_SIGNATURE_H

#include "runtime/artefact/format.h"

#include <string>

namespace sheaf::artefact {

/// What the types of the arguments are, and all that values of them may hold, in one text: models
/// of one signature take each other's encoded values.
std::string signature(const Description &description);

} // namespace sheaf::artefact

#endif // SHEAF_RUNTIME_ARTEFACT_SIGNATURE_H
