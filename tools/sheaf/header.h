//===- header.h - A model's types as C++ ------------------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_HEADER_H
#define SHEAF_TOOLS_SHEAF_HEADER_H

#include "runtime/model/model.h"

#include <string>

namespace sheaf::tool {

/// A header for include/sheaf/sheaf.hpp: a struct for every data type of the entry's arguments and
/// result, `Arguments`,
/// `Result`, and the functions `add` and `result` that convert. In a namespace named after
/// the model. `source` is named in its first line.
std::string cppHeader(const rt::Model &model, const std::string &source);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_HEADER_H
