// Models that come from a compiler in this process.
#include "runtime/artefact/artefact.h"

#include <cerrno>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

namespace sheaf::artefact {

namespace {

using Bytes = std::span<const uint8_t>;

constexpr uint64_t kPage = rt::kCodePage;

uint64_t pagesFor(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

[[noreturn]] void refused(uint64_t bytes) {
  throw UserError("the machine refuses " + std::to_string(bytes) +
                  " bytes for weights: " + std::strerror(errno));
}

void writeAt(int file, uint64_t offset, Bytes bytes) {
  while (!bytes.empty()) {
    ssize_t written = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      refused(bytes.size());
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

} // namespace

std::unique_ptr<Artefact> Artefact::make(Compiled compiled,
                                         const std::function<void(rt::Session &)> &setWeights) {
  std::unique_ptr<Artefact> artefact(new Artefact());
  Description &d = artefact->description_ = std::move(compiled.description);
  artefact->name_ = d.model.name;
  artefact->code_ = std::make_unique<rt::LoadedCode>(d.image.layout, compiled.image);
  artefact->setAddresses();

  // Sessions map weights from a file that has no name, as they do those of an artefact's.
  artefact->file_ = memfd_create("sheaf weights", MFD_CLOEXEC);
  if (artefact->file_ < 0)
    refused(0);
  uint64_t end = 0;
  auto append = [&](Bytes bytes) {
    uint64_t begin = end;
    writeAt(artefact->file_, begin, bytes);
    end = pagesFor(begin + bytes.size());
    return PackedRange{begin, bytes.size()};
  };
  {
    rt::Session session(d.model);
    setWeights(session);
    session.packWeights();
    append(paramRows(session));
    for (Bytes copy : session.packedWeights())
      d.image.packed.push_back(append(copy));
  }
  if (end > 0) {
    void *mapped = ftruncate(artefact->file_, static_cast<off_t>(end)) == 0
                       ? mmap(nullptr, end, PROT_READ, MAP_PRIVATE, artefact->file_, 0)
                       : MAP_FAILED;
    if (mapped == MAP_FAILED)
      refused(end);
    artefact->bytes_ = {static_cast<const uint8_t *>(mapped), end};
  }
  artefact->weights_.params = {artefact->file_, 0};
  for (const PackedRange &range : d.image.packed)
    artefact->weights_.packed.push_back(artefact->bytes_.subspan(range.offset, range.bytes));
  d.model.stored = &artefact->weights_;
  return artefact;
}

void Artefact::save(const std::string &path) const {
  rt::SessionOptions options;
  options.onlyPacks = true;
  rt::Session session(model(), options);
  Part part{session, code(), description_.target(), description_.code().numerics};
  write(path, {&part, 1}, vocabularies(), description_.producer);
}

} // namespace sheaf::artefact
