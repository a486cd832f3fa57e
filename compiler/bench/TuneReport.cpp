//===- TuneReport.cpp - What the tuner tells ------------------------------===//
#include "compiler/bench/Tune.h"
#include "compiler/report/ReportJson.h"

#include <fmt/format.h>

#include <algorithm>

namespace sheaf::driver {

namespace {

bool isChosen(const TunedRow &row) { return row.choice.tuning != kernels::Tuning(); }

std::string nameOf(const TunedRow &row) {
  size_t others = row.names.size() - 1;
  return others ? fmt::format("{} and {} more", row.names[0], others) : row.names[0];
}

/// What became of a kernel, in one word; the schema has them all.
std::string_view outcomeOf(const TunedRow &row) {
  if (isChosen(row))
    return "chosen";
  if (!row.searched)
    return row.share < kLeastShare ? "short" : "fixed";
  if (row.choice.unconfirmed)
    return "unconfirmed";
  return row.choice.tried ? "default" : "untried";
}

std::string_view meaning(std::string_view outcome) {
  if (outcome == "short")
    return "takes too little time to be tried";
  if (outcome == "fixed")
    return "has one tiling only";
  if (outcome == "untried")
    return "there was no time to try it";
  if (outcome == "unconfirmed")
    return "one seemed faster, and there was no time to confirm it";
  return "the default stays";
}

std::string ratioText(const Ratio &ratio) {
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", ratio.median, ratio.low, ratio.high);
}

/// What was kept, or why nothing was.
std::string keptText(const TuneReport &report) {
  if (!report.kept.problem.empty())
    return "not kept: " + report.kept.problem + "\n";
  return fmt::format("{} choices kept in the store {}\n", report.kept.kept, report.kept.directory);
}

} // namespace

std::string tuneText(const TuneReport &report) {
  size_t name = 6, own = 7, chosen = 6;
  for (const TunedRow &row : report.rows) {
    name = std::max(name, nameOf(row).size());
    own = std::max(own, row.byDefault.size());
    chosen = std::max(chosen, row.chosen.size());
  }
  std::string out = fmt::format("{:<{}} {:>9} {:>8} {:>9} {:>6}  {:<{}}  {:<{}}  {:>5}  {}\n",
                                "kernel", name, "records", "launches", "ms", "share", "default",
                                own, "chosen", chosen, "tried", "times as fast");
  for (const TunedRow &row : report.rows) {
    std::string result = row.choice.ratio.pairs ? ratioText(row.choice.ratio) + "; " : "";
    result =
        isChosen(row) ? ratioText(row.choice.ratio) : result + std::string(meaning(outcomeOf(row)));
    out += fmt::format("{:<{}} {:>9} {:>8} {:>9.3f} {:>5.1f}%  {:<{}}  {:<{}}  {:>5}  {}\n",
                       nameOf(row), name, row.records, row.launches, row.ms, row.share * 100,
                       row.byDefault.empty() ? "-" : row.byDefault, own,
                       isChosen(row) ? row.chosen : "-", chosen, row.choice.tried, result);
  }
  size_t left = 0;
  for (const TunedRow &row : report.rows)
    left = std::max(left, row.choice.left);
  out += fmt::format(
      "{} of {} mini-batches of {} instances, {} trials, {:.1f} s{}\n", report.batches,
      report.batchesOfAll, report.batch, report.trials, report.seconds,
      left ? fmt::format("; {} trials more had no time: give more --seconds", left) : "");
  auto any = [&](auto is) { return std::any_of(report.rows.begin(), report.rows.end(), is); };
  if (report.all.pairs)
    out += fmt::format("with the choices all kernels together are {} times as fast as with the "
                       "defaults, by {} pairs\n",
                       ratioText(report.all), report.all.pairs);
  else if (any(isChosen))
    out += "there was no time to time the choices together: give more --seconds\n";
  else if (any([](const TunedRow &row) { return row.choice.unconfirmed; }))
    out += "there was no time to confirm what seemed faster: give more --seconds\n";
  else
    out += "nothing was clearly faster than the defaults\n";
  return out + keptText(report);
}

std::string tuneJson(const TuneReport &report) {
  auto ratioJson = [](const Ratio &ratio) -> Json {
    return {
        {"median", ratio.median}, {"low", ratio.low}, {"high", ratio.high}, {"pairs", ratio.pairs}};
  };
  Json kernels = Json::array();
  for (const TunedRow &row : report.rows) {
    Json kernel = {
        {"names", row.names},        {"place", row.place},     {"records", row.records},
        {"launches", row.launches},  {"ms", row.ms},           {"share", row.share},
        {"default", row.byDefault},  {"tiling", row.chosen},   {"outcome", outcomeOf(row)},
        {"tried", row.choice.tried}, {"left", row.choice.left}};
    if (row.choice.ratio.pairs)
      kernel["ratio"] = ratioJson(row.choice.ratio);
    kernels.push_back(std::move(kernel));
  }
  Json json = reportJson("tune", 1,
                         {{"model", report.model},
                          {"dims", report.dims},
                          {"cpu", report.target.cpu},
                          {"batch", report.batch},
                          {"batches", report.batches},
                          {"batches_of_data", report.batchesOfAll},
                          {"trials", report.trials},
                          {"seconds", report.seconds},
                          {"kernels", kernels},
                          {"store",
                           {{"directory", report.kept.directory},
                            {"kept", report.kept.kept},
                            {"problem", report.kept.problem}}}});
  if (report.all.pairs)
    json["ratio"] = ratioJson(report.all);
  return jsonText(json);
}

} // namespace sheaf::driver
