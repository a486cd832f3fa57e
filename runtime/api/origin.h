//===- origin.h - What a model was compiled from ----------------*- C++ -*-===//
#ifndef SHEAF_RUNTIME_API_ORIGIN_H
#define SHEAF_RUNTIME_API_ORIGIN_H

#include "runtime/fit/config.h"

#include <map>
#include <string>
#include <vector>

namespace sheaf::api {

/// What an artefact does not tell.
struct ModelOrigin {
  fit::TrainConfig config; ///< what `sheaf train` would have been given for it
  std::map<std::string, std::vector<std::string>> storedNames; ///< io::LoadOptions::storedNames
};

} // namespace sheaf::api

#endif // SHEAF_RUNTIME_API_ORIGIN_H
