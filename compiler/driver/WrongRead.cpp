//===- WrongRead.cpp - Whether what was read could be read ----------------===//
#include "compiler/driver/WrongRead.h"

#include <fmt/format.h>

#include <cmath>

namespace sheaf::driver {

std::string wrongRead(const rt::Model &model, const oracle::Replay &replay,
                      std::span<const double> allowed) {
  std::span<const oracle::Replay::Read> reads = replay.reads();
  for (size_t i = 0; i < reads.size(); ++i) {
    const oracle::Replay::Read &read = reads[i];
    double distance = std::fabs(read.distance), bound = allowed[allowed.size() == 1 ? 0 : i];
    if (distance <= bound)
      continue;
    bool isResult = read.place == oracle::Replay::kResult;
    std::string text =
        fmt::format("{} {:.9g}, the oracle {:.9g}",
                    isResult ? "the result holds the decision"
                             : model.readPlaces.at(read.place) + ": the compiled program reads",
                    read.logged, read.own);
    return std::isinf(distance) ? text
                                : text + fmt::format(", which is {:.2g} of max(1, max|b|) from "
                                                     "that; allowed {:.2g}",
                                                     distance, bound);
  }
  return {};
}

std::string wrongOrMissingRead(const rt::Model &model, const oracle::Replay &replay,
                               double allowed) {
  std::string wrong = wrongRead(model, replay, std::span(&allowed, 1));
  if (auto read = replay.leftOver(); wrong.empty() && read)
    wrong = model.readPlaces.at(read->place) +
            ": the compiled program reads what the oracle does not come to";
  return wrong;
}

} // namespace sheaf::driver
