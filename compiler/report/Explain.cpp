//===- Explain.cpp - What the compiler made of a model --------------------===//
#include "compiler/report/Explain.h"

#include "compiler/report/ReportJson.h"
#include "runtime/cpu/packing.h"
#include "runtime/model/growth.h"
#include "runtime/model/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace sheaf::driver {

namespace {

std::string join(const std::vector<std::string> &words, const char *separator = ", ") {
  return fmt::format("{}", fmt::join(words, separator));
}

bool isFolded(const rt::Model &model, const rt::ParamDesc *param) {
  return std::find(model.folded.begin(), model.folded.end(),
                   static_cast<uint32_t>(param - model.params.data())) != model.folded.end();
}

std::string paramType(const rt::ParamDesc &param) {
  return fmt::format("{}[{}]", rt::dtypeName(param.dtype), fmt::join(param.shape, ", "));
}

/// How a kernel wants a weight.
std::string weightText(const rt::Model &model, const rt::WeightUse &use) {
  if (use.kind == rt::WeightUse::Raw)
    return fmt::format("{} as it is", model.params[use.param].name);
  std::vector<std::string> views;
  for (const rt::PackView &view : use.views) {
    std::vector<std::string> parts;
    for (const rt::PackSegment &segment : view.segments)
      parts.push_back(fmt::format("{}[{}:{}]{}", model.params[segment.param].name, segment.kBegin,
                                  segment.kEnd, segment.transposed ? " transposed" : ""));
    views.push_back(fmt::format("{} from column {}", join(parts, " then "), view.column));
  }
  // The gates of a cell are views of one product that differ in their first column.
  if (use.kind == rt::WeightUse::Foreign)
    return fmt::format("in the form of {}: {} columns, {}", use.library->name, use.width,
                       join(views));
  return fmt::format("packed once: {} columns in panels of {} x {} lanes, {}: {}", use.width,
                     use.vectors, use.lanes,
                     use.views.size() == 1 ? "1 view"
                                           : fmt::format("{} views {}", use.views.size(),
                                                         use.kind == rt::WeightUse::PanelsByView
                                                             ? "one after the other"
                                                             : "side by side"),
                     join(views, "; "));
}

const char *wordKind(rt::RecordWord::Kind kind) {
  switch (kind) {
  case rt::RecordWord::Row:
    return "row";
  case rt::RecordWord::Int:
    return "int";
  case rt::RecordWord::Float:
    return "float";
  case rt::RecordWord::Extent:
    return "extent";
  case rt::RecordWord::List:
    return "list of rows";
  case rt::RecordWord::Out:
    return "result";
  }
  return "?";
}

std::string wordText(const rt::RecordWord &word) {
  if (word.kind == rt::RecordWord::Out || word.name.empty())
    return wordKind(word.kind);
  return fmt::format("{} {}", wordKind(word.kind), word.name);
}

/// When a record of the kernel may run.
std::string depthText(const rt::KernelDesc &kernel) {
  std::string phase =
      kernel.phase ? fmt::format("of phase {}, or if that is deeper, ", kernel.phase) : "";
  std::vector<std::string> rows;
  for (const rt::RecordWord &word : kernel.layout)
    if (word.kind == rt::RecordWord::Row)
      rows.push_back(word.name.empty() ? "its row" : word.name);
    else if (word.kind == rt::RecordWord::List)
      rows.push_back("the deepest element of " + word.name);
  if (rows.empty())
    return fmt::format("0{}: nothing that it reads is made by another record",
                       kernel.phase ? fmt::format(" of phase {}", kernel.phase) : "");
  if (kernel.phase)
    phase = "the first " + phase;
  if (rows.size() == 1)
    return fmt::format("{}that of {}, which is one more than its record's", phase, rows[0]);
  return fmt::format("{}that of the deepest of {}, which is one more than its record's", phase,
                     join(rows));
}

std::string flopText(const rt::KernelDesc &kernel) {
  std::vector<std::string> terms;
  for (const rt::FlopTerm &term : kernel.flop) {
    std::string text = fmt::format("{:.0f}", term.coefficient);
    for (uint32_t word : term.extentWords) {
      // Extents are named by the word of the record that holds them.
      if (const rt::RecordWord *entry = rt::entryAt(kernel, word))
        text += " x " + (entry->name.empty() ? "extent" : entry->name);
    }
    terms.push_back(text);
  }
  return terms.empty() ? "none" : join(terms, " + ") + " FLOP a record";
}

double rawBytes(const rt::ParamDesc &param) {
  return static_cast<double>(rt::tensorGranules(param.shape, param.dtype) * rt::kGranuleBytes);
}

/// Bytes of the panels that hold a parameter, whole or in part, for all kernels together. Kernels
/// that want the same panels share them.
double packedBytes(const rt::Model &model, const rt::ParamDesc &param) {
  auto number = static_cast<uint32_t>(&param - model.params.data());
  std::set<std::string> seen;
  double bytes = 0;
  for (const rt::CpuKernel &kernel : rt::cpuCode(model).kernels)
    for (const rt::WeightUse &use : kernel.weights) {
      if (use.kind == rt::WeightUse::Raw)
        continue;
      int64_t own = 0, all = 0;
      for (const rt::PackView &view : use.views)
        for (const rt::PackSegment &segment : view.segments) {
          all += segment.kEnd - segment.kBegin;
          own += segment.param == number ? segment.kEnd - segment.kBegin : 0;
        }
      if (own && seen.insert(weightText(model, use)).second)
        bytes += static_cast<double>(rt::packedBytes(use).value()) * static_cast<double>(own) /
                 static_cast<double>(all);
    }
  return bytes;
}

/// Names of the blocks that use a parameter.
std::vector<std::string> usersOf(const CompiledModel &model, const std::string &param) {
  std::vector<std::string> users;
  for (const BlockInfo &block : model.blocks())
    if (std::find(block.weights.begin(), block.weights.end(), param) != block.weights.end())
      users.push_back(block.name);
  return users;
}

std::string resultText(const rt::Model &model) {
  uint64_t bytes = 0;
  for (const rt::ParamDesc &param : model.params)
    bytes += rt::tensorGranules(param.shape, param.dtype) * rt::kGranuleBytes;
  return fmt::format("{} parameters of {:.1f} MB together", model.params.size(),
                     static_cast<double>(bytes) / (1 << 20));
}

/// What an engine that keeps results must have for a token more of each, where their type says it.
std::string growthText(const rt::Model &model) {
  int64_t bytes = rt::growthBytes(model.types, model.entry.ownResult(model.types)).value_or(0);
  return bytes > 0 ? fmt::format("result: {} bytes more for a row more of each tensor that grows\n",
                                 bytes)
                   : "";
}

} // namespace

std::string storeText(const store::Use &use) {
  if (use.directory.empty())
    return fmt::format("code: {} pieces compiled, no store\n", use.made);
  return fmt::format("code: {} pieces from the store {}, {} compiled{}\n", use.found, use.directory,
                     use.made, use.problem.empty() ? "" : "; it is not used: " + use.problem);
}

nlohmann::ordered_json storeJson(const store::Use &use) {
  return {{"directory", use.directory},
          {"found", use.found},
          {"compiled", use.made},
          {"kept", use.kept},
          {"problem", use.problem}};
}

std::string explainText(const CompiledModel &compiled) {
  const rt::Model &model = compiled.model();
  const rt::Target &target = compiled.target();
  std::string out = fmt::format("{}: {}, {} kernels, {} KB of code for {} ({} f32 a vector, {} "
                                "registers{}; caches of {} and {})\n",
                                model.name, resultText(model), model.kernels.size(),
                                (compiled.codeBytes() + 1023) / 1024, target.cpu, target.lanes,
                                target.registers, target.fma ? "" : ", no fused multiply-add",
                                bytesText(static_cast<double>(target.caches.l1)),
                                bytesText(static_cast<double>(target.caches.l2)));
  out += storeText(compiled.storeUse());
  out += growthText(model);

  out += "\nshared by all instances\n";
  for (const rt::ParamDesc &param : model.params) {
    std::vector<std::string> users = usersOf(compiled, param.name);
    double packed = packedBytes(model, param);
    out += fmt::format("  {} : {}{}; {}{}\n", param.name, paramType(param),
                       !param.synthetic          ? ""
                       : isFolded(model, &param) ? ", computed from weights when they are loaded"
                                                 : ", a constant",
                       users.empty() ? "read by address" : "weight of " + join(users),
                       packed > 0 ? fmt::format("; packed, {}, and kept as it is beside that, {}",
                                                bytesText(packed), bytesText(rawBytes(param)))
                                  : "");
  }

  out += "\nblocks: one record an application, one kernel call a depth and block\n";
  for (size_t i = 0; i < model.kernels.size(); ++i) {
    const rt::KernelDesc &kernel = model.kernels[i];
    const rt::CpuKernel &code = rt::cpuCode(model).kernels[i];
    const BlockInfo &block = compiled.blocks()[i];
    std::vector<std::string> words;
    for (const rt::RecordWord &word : kernel.layout)
      words.push_back(wordText(word));
    out += fmt::format("  {} ({}), in the program {}\n", block.name, block.place, block.symbol);
    out += fmt::format("    fused: {}\n", join(block.operators));
    out += fmt::format("    record: {} words: {}\n", kernel.words, join(words));
    out += fmt::format("    depth: {}\n", depthText(kernel));
    out += fmt::format("    products: {}\n", flopText(kernel));
    for (const rt::WeightUse &use : code.weights)
      out += fmt::format("    weight: {}\n", weightText(model, use));
    if (code.panels > 1)
      out +=
          fmt::format("    threads: split by records, or by {} pieces of columns when records are "
                      "few\n",
                      code.panels);
    else
      out += "    threads: split by records\n";
    if (code.serpentine)
      out +=
          "    panels: at every other launch last to first, beginning with what is in the cache\n";
    for (const std::string &remark : block.remarks)
      out += fmt::format("    kernel: {}\n", remark);
  }

  out += "\nplaces: what is recorded where, with what it is batched and why\n";
  for (const FunctionInfo &function : compiled.functions()) {
    out +=
        fmt::format("  {} ({}): {}\n", function.name, function.place, join(function.notes, "; "));
    for (const SiteInfo &site : function.sites) {
      out += fmt::format("    {}: {}\n", site.place, site.what);
      for (const std::string &note : site.notes)
        out += fmt::format("      {}\n", note);
    }
  }

  out += "\npasses\n";
  std::string pass;
  for (const Remark &remark : compiled.remarks()) {
    if (remark.pass != pass) {
      pass = remark.pass;
      out += fmt::format("  {}\n", pass);
    }
    out += fmt::format("    {}: {}\n", remark.place, remark.text);
  }

  out += "\nleave one out with --without NAME\n";
  for (const Optimisation &optimisation : optimisations())
    out += fmt::format("  {:<20} {}\n", optimisation.name, optimisation.meaning);

  out += "\ntime\n";
  for (const PhaseTime &time : compiled.times())
    out += fmt::format("  {:<20} {:8.2f} ms\n", time.name, time.ms);
  return out;
}

std::string explainJson(const CompiledModel &compiled, const RunReport *report,
                        const SourceFile &source) {
  const rt::Model &model = compiled.model();
  const rt::Target &target = compiled.target();
  Json params = Json::array();
  for (const rt::ParamDesc &param : model.params)
    params.push_back({{"name", param.name},
                      {"type", paramType(param)},
                      {"constant", param.synthetic},
                      {"raw_bytes", static_cast<uint64_t>(rawBytes(param))},
                      {"packed_bytes", static_cast<uint64_t>(packedBytes(model, param))},
                      {"blocks", usersOf(compiled, param.name)}});
  Json blocks = Json::array();
  for (size_t i = 0; i < model.kernels.size(); ++i) {
    const rt::KernelDesc &kernel = model.kernels[i];
    const rt::CpuKernel &code = rt::cpuCode(model).kernels[i];
    const BlockInfo &block = compiled.blocks()[i];
    Json words = Json::array();
    for (const rt::RecordWord &word : kernel.layout)
      words.push_back({{"kind", wordKind(word.kind)}, {"name", word.name}});
    Json lines = Json::array();
    for (const LineShare &line : block.lines)
      lines.push_back({{"place", line.place}, {"share", line.share}});
    Json parts = Json::array();
    for (const PartShare &part : block.parts)
      parts.push_back({{"layer", part.layer}, {"calls", part.calls}, {"share", part.share}});
    Json weights = Json::array();
    for (const rt::WeightUse &use : code.weights)
      weights.push_back(weightText(model, use));
    blocks.push_back({{"name", block.name},
                      {"symbol", block.symbol},
                      {"place", block.place},
                      {"operators", block.operators},
                      {"words", words},
                      {"phase", kernel.phase},
                      {"depth", depthText(kernel)},
                      {"products", flopText(kernel)},
                      {"weights", block.weights},
                      {"weight_forms", weights},
                      {"panels", code.panels},
                      {"serpentine", code.serpentine},
                      {"scratch_bytes", code.scratchBytes},
                      {"tiling", block.tiling},
                      {"tuned", block.tuned},
                      {"remarks", block.remarks},
                      {"lines", lines},
                      {"parts", parts}});
  }
  Json used = Json::array();
  for (size_t i = 1; i < source.files().size(); ++i)
    used.push_back({{"name", source.files()[i].name()}, {"text", source.files()[i].text()}});
  Json functions = Json::array();
  for (const FunctionInfo &function : compiled.functions()) {
    Json sites = Json::array();
    for (const SiteInfo &site : function.sites)
      sites.push_back({{"place", site.place}, {"what", site.what}, {"notes", site.notes}});
    functions.push_back({{"name", function.name},
                         {"place", function.place},
                         {"notes", function.notes},
                         {"sites", sites}});
  }
  Json remarks = Json::array();
  for (const Remark &remark : compiled.remarks())
    remarks.push_back({{"pass", remark.pass}, {"place", remark.place}, {"text", remark.text}});
  Json times = Json::array();
  for (const PhaseTime &time : compiled.times())
    times.push_back({{"phase", time.name}, {"ms", time.ms}});
  std::optional<int64_t> growth = rt::growthBytes(model.types, model.entry.ownResult(model.types));
  Json root =
      reportJson("explain", 2,
                 {{"model", model.name},
                  {"source", {{"name", source.name()}, {"text", source.text()}, {"used", used}}},
                  {"dims", model.dims},
                  {"target",
                   {{"cpu", target.cpu},
                    {"lanes", target.lanes},
                    {"registers", target.registers},
                    {"fma", target.fma},
                    {"caches", {{"l1", target.caches.l1}, {"l2", target.caches.l2}}}}},
                  {"code_bytes", compiled.codeBytes()},
                  {"growth_bytes", growth ? Json(*growth) : Json(nullptr)},
                  {"store", storeJson(compiled.storeUse())},
                  {"params", params},
                  {"blocks", blocks},
                  {"functions", functions},
                  {"remarks", remarks},
                  {"times", times}});
  if (report)
    root["mini_batch"] = runReportJson(compiled, *report);
  return jsonText(root);
}

} // namespace sheaf::driver
