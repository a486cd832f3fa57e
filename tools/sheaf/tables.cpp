//===- tables.cpp - What there is, as tables ------------------------------===//
#include "tools/sheaf/tables.h"

#include "compiler/driver/Compiler.h"
#include "runtime/io/formats.h"
#include "runtime/model/dtypes.h"
#include "runtime/train/optimizer.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf::tool {

using driver::Json;

namespace {

Json passRows() {
  Json rows = Json::array();
  for (const driver::Pass &pass : driver::passes())
    rows.push_back({{"name", pass.name},
                    {"description", pass.description},
                    {"required", pass.required},
                    {"parts", pass.parts}});
  return rows;
}

Json optimisationRows() {
  Json rows = Json::array();
  for (const driver::Optimisation &optimisation : driver::optimisations())
    rows.push_back({{"name", optimisation.name},
                    {"description", optimisation.meaning},
                    {"kind", optimisation.kind}});
  return rows;
}

Json targetRows() {
  Json rows = Json::array();
  for (const driver::Target &target : driver::targets())
    rows.push_back({{"name", target.name},
                    {"description", target.description},
                    {"on_this_machine", target.onThisMachine}});
  return rows;
}

Json operatorRows() {
  Json rows = Json::array();
  for (const driver::Operator &op : driver::operators())
    rows.push_back({{"name", op.name},
                    {"signature", op.signature},
                    {"description", op.description},
                    {"family", op.family},
                    {"gradient", op.gradient},
                    {"expands", op.expands}});
  return rows;
}

Json formatRows() {
  Json rows = Json::array();
  for (const io::DataFormat *format : io::dataFormats())
    rows.push_back({{"name", format->name},
                    {"description", format->description},
                    {"extensions", format->extensions},
                    {"begins", format->begins},
                    {"example", format->example}});
  return rows;
}

Json optimiserRows() {
  Json rows = Json::array();
  for (const rt::OptimizerInfo &info : rt::optimizers())
    rows.push_back(
        {{"name", info.name}, {"description", info.description}, {"options", info.options}});
  return rows;
}

Json dtypeRows() {
  constexpr const char *kinds[] = {"float", "int", "bool"};
  Json rows = Json::array();
  for (const rt::DTypeInfo &info : rt::kDTypes) {
    const char *kind = kinds[static_cast<size_t>(info.kind)];
    rows.push_back(
        {{"name", info.name},
         {"description", fmt::format("{} of {} bit{}", kind, info.bits, info.bits == 1 ? "" : "s")},
         {"kind", kind},
         {"bits", info.bits},
         {"row_bytes", info.rowBytes},
         {"dlpack_code", info.dlpackCode},
         {"dlpack_bits", info.dlpackBits},
         {"mlir", info.mlir},
         {"safetensors", info.safetensors}});
  }
  return rows;
}

/// A member as a cell.
std::string cell(const Json &value) {
  if (value.is_string())
    return value.get<std::string>();
  if (value.is_boolean())
    return value.get<bool>() ? "yes" : "no";
  if (!value.is_array())
    return value.dump();
  std::string text;
  for (const Json &element : value)
    text += (text.empty() ? "" : " ") + cell(element);
  return text;
}

} // namespace

std::span<const Table> tables() {
  static const std::vector<Table> all = {
      {"passes", "the passes, in order", passRows, {"name", "description"}},
      {"optimisations", "what --without takes", optimisationRows, {"name", "description"}},
      {"targets", "--target", targetRows, {"name", "description", "on_this_machine"}},
      {"operators", "on tensors", operatorRows, {"name", "signature", "description"}},
      {"dtypes", "element types of tensors", dtypeRows, {"name", "description", "safetensors"}},
      {"optimisers", "--optimizer", optimiserRows, {"name", "description", "options"}},
      {"formats", "of data, --data-format", formatRows, {"name", "extensions", "description"}},
  };
  return all;
}

const Table *findTable(std::string_view name) {
  std::span<const Table> all = tables();
  auto it = std::find_if(all.begin(), all.end(), [&](const Table &t) { return t.name == name; });
  return it == all.end() ? nullptr : &*it;
}

std::string tableText(const Table &table) {
  std::vector<std::vector<std::string>> lines;
  std::vector<size_t> widths(table.shown.size());
  for (const Json &row : table.rows()) {
    std::vector<std::string> &line = lines.emplace_back();
    for (std::string_view member : table.shown) {
      line.push_back(cell(row.at(member)));
      size_t &width = widths[line.size() - 1];
      width = std::max(width, line.back().size());
    }
  }
  std::string text;
  for (const std::vector<std::string> &line : lines) {
    for (size_t i = 0; i + 1 < line.size(); ++i)
      text += fmt::format("{:<{}}  ", line[i], widths[i]);
    text += line.back() + "\n";
  }
  return text;
}

} // namespace sheaf::tool
