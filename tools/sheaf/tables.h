//===- tables.h - What there is, as tables ----------------------*- C++ -*-===//
//
// `sheaf help passes` and its like. Tests and the tables of docs ask these instead of keeping lists
// of their own.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_TOOLS_SHEAF_TABLES_H
#define SHEAF_TOOLS_SHEAF_TABLES_H

#include "compiler/report/ReportJson.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sheaf::tool {

struct Table {
  std::string_view name; ///< of `sheaf help NAME`
  std::string_view what; ///< it lists
  /// One object for each thing, all with the same members.
  driver::Json (*rows)();
  /// The members that the table for people shows, in order.
  std::vector<std::string_view> shown;
};

std::span<const Table> tables();

/// Null if there is none of that name.
const Table *findTable(std::string_view name);

/// Lines of columns.
std::string tableText(const Table &table);

} // namespace sheaf::tool

#endif // SHEAF_TOOLS_SHEAF_TABLES_H
