#include "runtime/artefact/artefact.h"

#include "runtime/artefact/fields.h"
#include "runtime/io/checksum.h"
#include "runtime/io/text.h"

#include <algorithm>

namespace sheaf::artefact {

namespace {

using Bytes = std::span<const uint8_t>;

uint64_t alignTo(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// A range that is written piece by piece, and its checksum's bytes.
std::vector<uint8_t> joined(const std::vector<Bytes> &pieces, std::vector<PackedRange> &ranges) {
  constexpr uint64_t page = 4096;
  std::vector<uint8_t> all;
  for (Bytes piece : pieces) {
    // On a line of the cache, and for large ones on a page.
    all.resize(alignTo(all.size(), piece.size() >= page ? page : uint64_t(rt::kGranuleBytes)));
    ranges.push_back({all.size(), piece.size()});
    all.insert(all.end(), piece.begin(), piece.end());
  }
  return all;
}

} // namespace

// Padding may hold anything in a session; here it is zero, so that equal models make equal files.

std::vector<uint8_t> paramRows(const rt::Session &session) {
  const rt::Model &model = session.model();
  std::vector<uint8_t> rows(uint64_t(model.paramGranules) * rt::kGranuleBytes), elements;
  for (size_t i = 0; i < model.params.size(); ++i) {
    rt::TensorView view = session.param(i);
    elements.resize(static_cast<size_t>(view.elements() * rt::dtypeBytes(view.dtype)));
    view.copyTo(elements.data());
    rt::toRowLayout(view.shape, view.dtype, elements.data(),
                    rows.data() + uint64_t(model.params[i].id) * rt::kGranuleBytes);
  }
  return rows;
}

namespace {

/// What the section that was taken says (ImageBody), as it stands in a file.
std::string bodyOf(const Description &description) {
  ImageBody image = description.image;
  rt::CpuCode code = rt::cpuCode(description.model);
  uint64_t frameBytes = description.model.frameBytes;
  ImageFields all{image, code, frameBytes};
  Writer writer;
  fields(writer, all);
  return {writer.bytes().begin(), writer.bytes().end()};
}

std::vector<uint8_t> message(const Description &description) {
  Description whole = description;
  whole.code().body = bodyOf(description);
  Writer writer;
  fields(writer, whole);
  return writer.bytes();
}

/// What all sections of a file have in common.
std::vector<uint8_t> neutralPart(const rt::Model &model) {
  rt::Model copy = model;
  Writer writer;
  fields(writer, copy);
  return writer.bytes();
}

void put(std::vector<uint8_t> &out, size_t at, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i)
    out[at + i] = static_cast<uint8_t>(value >> (8 * i));
}

} // namespace

std::vector<uint8_t> encode(const Description &description, uint64_t fileBytes) {
  std::vector<uint8_t> bytes = message(description);
  std::vector<uint8_t> header(kHeaderBytes);
  std::copy(std::begin(kMagic), std::end(kMagic), header.begin());
  put(header, 8, kVersion, 4);
  put(header, 16, fileBytes, 8);
  put(header, 24, bytes.size(), 8);
  put(header, 32, io::checksum(bytes), 8);
  put(header, 56, io::checksum(Bytes(header).first(56)), 8);
  bytes.insert(bytes.begin(), header.begin(), header.end());
  return bytes;
}

Description describe(const rt::Model &model, const rt::LoadedCode &code, const rt::Target &target,
                     std::string numerics, const io::Vocabularies &vocabularies,
                     std::string producer) {
  Description d;
  d.producer = std::move(producer);
  CodeSection &section = d.sections.emplace_back();
  section.backend = rt::CpuCode::kTarget;
  section.target = target;
  section.numerics = std::move(numerics);
  d.image.layout = code.layout();
  Functions &functions = d.image.functions;
  functions.entry = code.offsetOf(std::bit_cast<const void *>(model.entry.fn));
  if (model.foldWeights)
    functions.foldWeights = code.offsetOf(std::bit_cast<const void *>(model.foldWeights));
  d.model = model;
  // The last of the native kernels says how they were asked for.
  d.image.serpentine = model.training && rt::cpuCode(model).kernels.back().serpentine;
  // Native kernels, which stand last, are the runtime's own.
  rt::CpuCode &kernels = rt::cpuCode(d.model);
  auto isOwn = [&](const rt::CpuKernel &kernel) {
    return code.offsetOf(std::bit_cast<const void *>(kernel.fn)) < code.layout().bytes();
  };
  while (!kernels.kernels.empty() && !isOwn(kernels.kernels.back())) {
    kernels.kernels.pop_back();
    d.model.kernels.pop_back();
  }
  for (const rt::CpuKernel &kernel : kernels.kernels)
    functions.kernels.push_back(code.offsetOf(std::bit_cast<const void *>(kernel.fn)));
  for (const auto &[name, vocabulary] : vocabularies.all())
    d.vocabularies.push_back({name, vocabulary.size(), vocabulary.hash(),
                              vocabulary.hasWords() ? vocabulary.fileText() : ""});
  return d;
}

void write(const std::string &path, std::span<const Part> parts,
           const io::Vocabularies &vocabularies, const std::string &producer) {
  struct Contents {
    std::vector<uint8_t> image, packed;
  };
  std::vector<Contents> contents;
  Description d;
  std::vector<uint8_t> params = paramRows(parts.front().session), neutral;
  uint64_t page = 0;
  for (const Part &part : parts) {
    Description one = describe(part.session.model(), part.code, part.target, part.numerics,
                               vocabularies, producer);
    Contents &its = contents.emplace_back();
    its.image = part.code.image();
    its.packed = joined(part.session.packedWeights(), one.image.packed);
    CodeSection section = one.code();
    section.body = bodyOf(one);
    section.code = {0, its.image.size(), io::checksum(its.image)};
    section.packed = {0, its.packed.size(), io::checksum(its.packed)};
    page = std::max(page, rt::codePage(part.target.architecture));
    if (contents.size() == 1) {
      neutral = neutralPart(one.model);
      d = std::move(one);
      d.sections.clear();
    } else if (neutralPart(one.model) != neutral || paramRows(part.session) != params) {
      throw UserError("code for CPU " + io::quoted(part.target.cpu) +
                      " cannot stand in one file with that for " +
                      io::quoted(parts.front().target.cpu) +
                      ": they differ in more than code (build a file for each)");
    }
    d.sections.push_back(std::move(section));
  }
  d.paramSection = {0, params.size(), io::checksum(params)};

  struct Place {
    Section *section;
    Bytes bytes;
    uint64_t page;
  };
  std::vector<Place> sections{{&d.paramSection, params, page}};
  for (size_t i = 0; i < parts.size(); ++i) {
    sections.push_back(
        {&d.sections[i].code, contents[i].image, rt::codePage(parts[i].target.architecture)});
    sections.push_back({&d.sections[i].packed, contents[i].packed, kPackedPage});
  }
  // Numbers have one length, so where the sections lie does not change how long it is.
  uint64_t end = kHeaderBytes + message(d).size();
  for (auto &[section, bytes, itsPage] : sections) {
    section->offset = alignTo(end, itsPage);
    end = section->offset + bytes.size();
  }

  io::AtomicFile file(path);
  uint64_t written = 0;
  auto append = [&](Bytes bytes) {
    file.write(bytes.data(), bytes.size());
    written += bytes.size();
  };
  append(encode(d, end));
  for (const auto &[section, bytes, itsPage] : sections) {
    append(std::vector<uint8_t>(section->offset - written));
    append(bytes);
  }
  file.commit();
}

} // namespace sheaf::artefact
