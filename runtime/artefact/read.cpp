#include "runtime/artefact/artefact.h"

#include "runtime/artefact/fields.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/native.h"
#include "runtime/io/checksum.h"
#include "runtime/io/text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sheaf::artefact {

namespace {

using Bytes = std::span<const uint8_t>;

uint64_t number(Bytes bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value |= static_cast<uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

bool hasMagic(Bytes bytes) {
  return bytes.size() >= sizeof kMagic && std::memcmp(bytes.data(), kMagic, sizeof kMagic) == 0;
}

/// The description's bytes.
Bytes readHeader(Bytes file) {
  if (!hasMagic(file))
    throw ArtefactError(Refusal::NotAnArtefact,
                        "not an artefact: it does not begin as 'sheaf build' writes them");
  if (file.size() < kHeaderBytes)
    throw ArtefactError(Refusal::Damaged, "cut short: it ends inside of its header");
  // First of all: what follows may mean something else in another version.
  uint64_t version = number(file, 8, 4);
  if (version == 1)
    throw ArtefactError(Refusal::Older, "made by Sheaf 0.1: build it again");
  if (version != kVersion)
    throw ArtefactError(Refusal::Newer, "made by a newer Sheaf: it has version " +
                                            std::to_string(version) + ", this one reads version " +
                                            std::to_string(kVersion));
  if (number(file, 56, 8) != io::checksum(file.first(56)))
    throw ArtefactError(Refusal::Damaged, "damaged: the checksum of its header is wrong");
  uint64_t size = number(file, 16, 8);
  if (size != file.size())
    throw ArtefactError(Refusal::Damaged,
                        (file.size() < size ? "cut short: it has " : "damaged: it has ") +
                            std::to_string(file.size()) + " of " + std::to_string(size) + " bytes");
  uint64_t bytes = number(file, 24, 8);
  if (bytes > file.size() - kHeaderBytes)
    throw ArtefactError(Refusal::Damaged, "damaged: its description ends outside of it");
  Bytes description = file.subspan(kHeaderBytes, bytes);
  if (io::checksum(description) != number(file, 32, 8))
    throw ArtefactError(Refusal::Damaged, "damaged: the checksum of its description is wrong");
  return description;
}

void checkAbi(const Description &d) {
  if (d.abi != kAbi)
    throw ArtefactError(d.abi > kAbi ? Refusal::Newer : Refusal::Older,
                        "made by " + std::string(d.abi > kAbi ? "a newer" : "an older") +
                            " Sheaf: field abi is " + std::to_string(d.abi) +
                            ", this runtime is of " + std::to_string(kAbi));
}

std::string nameOf(size_t section) { return "sections[" + std::to_string(section) + "]"; }

/// Why this machine cannot run the code of a section.
std::optional<std::string> whyNotHere(const CodeSection &section, const std::string &name) {
  if (section.form != CodeSection::kImage)
    return "field " + name + ".form is " + io::quoted(section.form) +
           ", which this runtime does not know";
  if (section.target.architecture != rt::kArchitecture)
    return "made for another machine: field " + name + ".architecture is " +
           io::quoted(section.target.architecture) + ", this one is '" + rt::kArchitecture + "'";
  if (std::optional<std::string> feature = rt::missingFeature(section.target.features))
    return "made for CPU " + io::quoted(section.target.cpu) + ": field " + name + ".features has " +
           io::quoted(*feature) + ", which this machine lacks (build with --target-cpu for others)";
  if (!section.libraries.empty())
    return "field " + name + ".libraries: it needs the library " +
           io::quoted(section.libraries[0].name) + ", which this runtime cannot load";
  return std::nullopt;
}

/// Of the sections of the back end that is asked for the first that runs here.
size_t sectionFor(const Description &d, const std::string &backend) {
  std::string why, others;
  for (size_t i = 0; i < d.sections.size(); ++i) {
    const CodeSection &section = d.sections[i];
    if (section.backend != backend) {
      if (std::string name = io::quoted(section.backend); others.find(name) == others.npos)
        others += (others.empty() ? "" : ", ") + name;
      continue;
    }
    std::optional<std::string> problem = whyNotHere(section, nameOf(i));
    if (!problem)
      return i;
    why += (why.empty() ? "" : "; ") + *problem;
  }
  if (why.empty())
    why = "has no code for " + io::quoted(backend) + (others.empty() ? "" : ", but for " + others);
  throw ArtefactError(Refusal::OtherMachine, why);
}

/// Reads what the section that is taken says more.
void take(Description &d, size_t section) {
  d.taken = section;
  FieldPath sections{nullptr, "sections", static_cast<int64_t>(section)}, path{&sections, "body"};
  const std::string &body = d.sections[section].body;
  rt::CpuCode code;
  ImageFields all{d.image, code, d.model.frameBytes};
  Reader reader({reinterpret_cast<const uint8_t *>(body.data()), body.size()}, path);
  fields(reader, all);
  reader.finish();
  if (code.kernels.size() != d.model.kernels.size())
    path.damaged("has not the code of each kernel");
  d.model.code = rt::ModelCode(std::make_unique<rt::CpuCode>(std::move(code)));
}

/// What no checksum covers: the bytes before, between and after the sections.
void checkPadding(std::vector<const Section *> sections, Bytes file) {
  std::sort(sections.begin(), sections.end(),
            [](const Section *a, const Section *b) { return a->offset < b->offset; });
  uint64_t end = kHeaderBytes + number(file, 24, 8); // of the description
  auto check = [&](uint64_t next) {
    for (; end < next; ++end)
      if (file[end] != 0)
        throw ArtefactError(Refusal::Damaged, "damaged: byte " + std::to_string(end) +
                                                  ", between its parts, is not zero");
  };
  for (const Section *section : sections) {
    check(section->offset);
    end = std::max(end, section->offset + section->bytes);
  }
  check(file.size());
}

void checkSections(const Description &d, Bytes file, const OpenOptions &options) {
  auto check = [&](const std::string &name, const Section &section, bool withChecksum,
                   uint64_t page) {
    if (section.offset % page != 0 || section.offset > file.size() ||
        section.bytes > file.size() - section.offset)
      throw ArtefactError(Refusal::Damaged, "damaged: field " + name + " lies outside of the file");
    if (withChecksum &&
        io::checksum(file.subspan(section.offset, section.bytes), options.stop) != section.checksum)
      throw ArtefactError(Refusal::Damaged,
                          "damaged: field " + name + ".checksum is not that of the bytes");
  };
  for (size_t i = 0; i < d.sections.size(); ++i) {
    check(nameOf(i) + ".code", d.sections[i].code, true,
          i == d.taken ? uint64_t(rt::kCodePage) : 1);
    check(nameOf(i) + ".packed", d.sections[i].packed, options.checkWeights, kPackedPage);
  }
  check("param_section", d.paramSection, options.checkWeights, rt::kCodePage);
  if (d.code().code.bytes != d.image.layout.bytes())
    throw ArtefactError(Refusal::Damaged, "damaged: field " + nameOf(d.taken) +
                                              ".code.bytes is not the size of the code");
  if (d.paramSection.bytes != uint64_t(d.model.paramGranules) * rt::kGranuleBytes)
    throw ArtefactError(Refusal::Damaged,
                        "damaged: field param_section.bytes is not the size of the parameters");
}

} // namespace

Description parse(Bytes file, const OpenOptions &options) {
  if (!options.sha256.empty()) {
    std::string wanted = options.sha256;
    std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                   [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
    if (std::string found = io::sha256(file, options.stop); found != wanted)
      throw ArtefactError(Refusal::Digest,
                          "not the file that was asked for: its SHA-256 is " + found);
  }
  Description description;
  Reader reader(readHeader(file), FieldPath());
  fields(reader, description);
  reader.finish();
  checkAbi(description);
  for (CodeSection &section : description.sections)
    section.target.derive();
  take(description, sectionFor(description, options.backend));
  checkSections(description, file, options);
  verify(description);
  // Files do not say it.
  for (size_t i = 0; i < description.model.kernels.size(); ++i)
    description.model.kernels[i].weights =
        rt::weightReads(rt::cpuCode(description.model).kernels[i], description.model.params);
  std::vector<const Section *> parts{&description.paramSection};
  for (const CodeSection &section : description.sections)
    parts.insert(parts.end(), {&section.code, &section.packed});
  checkPadding(std::move(parts), file);
  return description;
}

bool beginsAsArtefact(std::string_view text) {
  return hasMagic({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
}

bool isArtefact(const std::string &path) {
  if (path.ends_with(".sheafc"))
    return true;
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return false;
  // Of a pipe nothing may be read: what it holds would be lost.
  struct stat status;
  uint8_t begin[sizeof kMagic] = {};
  bool found = fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
               pread(file, begin, sizeof begin, 0) == sizeof begin && hasMagic(begin);
  close(file);
  return found;
}

std::unique_ptr<Artefact> Artefact::open(const std::string &path, const OpenOptions &options) {
  std::unique_ptr<Artefact> artefact(new Artefact());
  artefact->name_ = path;
  auto notReadable = [&](const std::string &why) {
    throw ArtefactError(Refusal::NotReadable, path, why);
  };
  artefact->file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (artefact->file_ < 0 || fstat(artefact->file_, &status) != 0)
    notReadable(std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    notReadable("not a file");
  auto size = static_cast<size_t>(status.st_size);
  if (size > 0) {
    void *mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, artefact->file_, 0);
    if (mapped == MAP_FAILED)
      notReadable(std::strerror(errno));
    artefact->bytes_ = {static_cast<const uint8_t *>(mapped), size};
  }
  try {
    artefact->description_ = parse(artefact->bytes_, options);
  } catch (const ArtefactError &error) {
    throw ArtefactError(error.why, path, error.what());
  }

  Description &d = artefact->description_;
  artefact->code_ =
      std::make_unique<rt::LoadedCode>(d.image.layout, artefact->file_, d.code().code.offset);
  artefact->setAddresses();
  artefact->weights_.params = {artefact->file_, d.paramSection.offset};
  for (const PackedRange &range : d.image.packed)
    artefact->weights_.packed.push_back(
        artefact->bytes_.subspan(d.code().packed.offset + range.offset, range.bytes));
  d.model.stored = &artefact->weights_;
  return artefact;
}

void Artefact::setAddresses() {
  Description &d = description_;
  const uint8_t *base = code_->base();
  d.model.entry.fn = std::bit_cast<rt::EntryFn>(base + d.image.functions.entry);
  if (d.image.functions.foldWeights)
    d.model.foldWeights = std::bit_cast<rt::EntryFn>(base + *d.image.functions.foldWeights);
  for (size_t i = 0; i < d.model.kernels.size(); ++i)
    rt::cpuCode(d.model).kernels[i].fn =
        std::bit_cast<rt::KernelFn>(base + d.image.functions.kernels[i]);
  if (d.model.training)
    rt::addNativeKernels(d.model, d.target().fma, d.image.serpentine);
}

Artefact::~Artefact() {
  if (!bytes_.empty())
    munmap(const_cast<uint8_t *>(bytes_.data()), bytes_.size());
  if (file_ >= 0)
    close(file_);
}

io::Vocabularies Artefact::vocabularies() const {
  io::Vocabularies all;
  for (const VocabularyDesc &desc : description_.vocabularies)
    all.set(desc.name,
            desc.text.empty()
                ? io::Vocabulary::ofSize(desc.size)
                : io::Vocabulary::parse(
                      {name_ + ": the vocabulary of " + io::tokenTypeName(desc.name), desc.text}));
  return all;
}

} // namespace sheaf::artefact
