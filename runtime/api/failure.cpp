// What went wrong, as structs.
#include "runtime/api/failure.h"
#include "runtime/api/options.h"

#include <charconv>

namespace sheaf::api {

sheaf_cause causeOf(RunError::Cause cause) {
  switch (cause) {
  case RunError::Cause::Program:
    return SHEAF_PROGRAM;
  case RunError::Cause::Limit:
    return SHEAF_LIMIT;
  case RunError::Cause::Memory:
    return SHEAF_TOO_LITTLE_MEMORY;
  case RunError::Cause::Deadline:
    return SHEAF_DEADLINE;
  case RunError::Cause::Cancelled:
    return SHEAF_CANCELLED;
  }
  return SHEAF_PROGRAM;
}

/// A message begins with `FILE:LINE: ` where a line of the program is to blame.
FailedAt failedAt(const RunError &error) {
  FailedAt at{error.instance()};
  const std::string &text = error.message();
  for (size_t end = text.find(": "); end != std::string::npos; end = text.find(": ", end + 1)) {
    size_t colon = end ? text.rfind(':', end - 1) : std::string::npos;
    if (colon == std::string::npos || colon == 0)
      continue;
    int64_t line = 0;
    auto [rest, wrong] = std::from_chars(text.data() + colon + 1, text.data() + end, line);
    if (wrong != std::errc() || rest != text.data() + end || line < 1)
      continue;
    at.file = text.substr(0, colon);
    at.line = line;
    at.column = error.column();
    at.message = end + 2;
    break;
  }
  return at;
}

sheaf_failure failureOf(const std::string &text, sheaf_cause cause, const FailedAt &at,
                        const std::string &place) {
  sheaf_failure told{};
  told.cause = cause;
  told.instance = at.instance;
  told.text = text.c_str();
  told.message = told.text + at.message;
  told.file = at.file.empty() ? nullptr : at.file.c_str();
  told.line = at.line;
  told.column = at.column;
  told.place = place.empty() ? nullptr : place.c_str();
  return told;
}

sheaf_failure failureOf(const std::optional<FailedInstance> &failed) {
  if (failed)
    return failureOf(failed->error.message(), causeOf(failed->error.cause()), failed->at,
                     failed->place);
  sheaf_failure none{};
  none.instance = -1;
  return none;
}

} // namespace sheaf::api

using namespace sheaf::api;

sheaf_status sheaf_result_failure(const sheaf_result *result, size_t instance,
                                  sheaf_failure *failure) {
  return guarded([&] {
    const ResultData &data = *given(result, "result").data;
    if (instance >= data.items.size())
      throw Invalid("the result has no instance " + std::to_string(instance) + " but " +
                    std::to_string(data.items.size()));
    const ResultData::Item &item = data.items[instance];
    sheaf_failure told =
        item.hasEnded() ? failureOf(std::nullopt) : failureOf(item.error, item.cause, item.at);
    tell(told, given(failure, "failure"), "failure");
  });
}
