#include "tools/sheaf/recorded_reads.h"

namespace sheaf::tool {

RecordedReads::RecordedReads(rt::Session &session, rt::SessionOptions options,
                             const std::function<void(rt::Session &)> &initialise)
    : session_(session) {
  if (!session.model().reads || session.computes())
    return;
  options.device = nullptr;
  reader_.emplace(session.model(), options);
  initialise(*reader_);
  reader_->setReadLog(&log_);
}

void RecordedReads::record(std::span<const rt::Instance> instances) {
  if (!reader_)
    return;
  log_.clear();
  reader_->run(instances);
  session_.replayReads(&log_);
}

} // namespace sheaf::tool
