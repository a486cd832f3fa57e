// Any bytes as an artefact: a model that sessions can be made of, or an ArtefactError. Nothing of
// it is run. The mutator seals what it changes, so that checksums keep nothing from being tried.
#include "runtime/artefact/artefact.h"
#include "runtime/io/checksum.h"
#include "runtime/io/types.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

using namespace sheaf;
using namespace sheaf::artefact;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

uint64_t read64(const uint8_t *p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
void write64(uint8_t *p, uint64_t value) { std::memcpy(p, &value, sizeof value); }

/// Makes header, description and file agree in sizes and checksums.
void seal(std::vector<uint8_t> &file, uint64_t description) {
  std::memcpy(file.data(), kMagic, sizeof kMagic);
  file[8] = kVersion;
  file[9] = file[10] = file[11] = 0;
  write64(file.data() + 16, file.size());
  write64(file.data() + 24, description);
  write64(file.data() + 32, io::checksum(std::span(file).subspan(kHeaderBytes, description)));
  write64(file.data() + 56, io::checksum(std::span(file).first(56)));
}

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned int seed) {
  constexpr size_t most = size_t(1) << 18;
  if (size < kHeaderBytes || seed % 16 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  uint64_t length = std::min<uint64_t>(read64(data + 24), size - kHeaderBytes);
  // The description is mutated by itself; the sections keep their places in the file.
  std::vector<uint8_t> description(data + kHeaderBytes, data + kHeaderBytes + length);
  size_t room = std::min(most, std::max<size_t>(maxSize, kHeaderBytes) - kHeaderBytes);
  if (description.size() > room)
    return LLVMFuzzerMutate(data, size, maxSize);
  description.resize(room);
  length = LLVMFuzzerMutate(description.data(), length, room);
  std::vector<uint8_t> file(data, data + size);
  file.resize(std::max<size_t>(size, kHeaderBytes + length));
  std::copy_n(description.begin(), length, file.begin() + kHeaderBytes);
  seal(file, length);
  std::copy(file.begin(), file.end(), data);
  return file.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int file = memfd_create("artefact", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, static_cast<off_t>(size)) != 0 ||
      pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  try {
    OpenOptions options;
    options.checkWeights = size % 2;
    std::unique_ptr<Artefact> artefact = Artefact::open(path, options);
    const rt::Model &model = artefact->model();
    for (uint32_t type = 0; type < model.types.types.size(); ++type)
      io::typeName(model.types, type);
    artefact->vocabularies();
    rt::SessionOptions session;
    session.rowSpaceBytes = 1 << 20;
    session.hostStackBytes = 1 << 16;
    session.memoryLimit = 64 << 20;
    rt::Session made(model, session);
    for (size_t i = 0; i < model.params.size(); ++i) {
      rt::TensorView view = made.param(i);
      if (view.elements() > 0 && view.data[0] == 1 && view.data[1] == 2)
        made.findParam("x");
    }
  } catch (const UserError &) {
  }
  return 0;
}
