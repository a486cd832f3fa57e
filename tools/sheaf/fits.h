//===- fits.h - What `sheaf check --fits` asks ------------------*- C++ -*-===//
#ifndef SHEAF_TOOLS_SHEAF_FITS_H
#define SHEAF_TOOLS_SHEAF_FITS_H

#include "compiler/report/FitsReport.h"

#include <string>
#include <vector>

namespace sheaf::tool {

/// Reads `batch=64, words<=512`. `names`: sizes that may be bounded. Throws UsageError with the
/// text and a caret.
driver::FitsQuestion parseFits(const std::string &text, const std::vector<std::string> &names);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_FITS_H
