#include "runtime/artefact/encode.h"

namespace sheaf::artefact {

std::string FieldPath::text() const {
  std::string text = parent && *parent->name ? parent->text() + "." + name : name;
  return index < 0 ? text : text + "[" + std::to_string(index) + "]";
}

void FieldPath::damaged(const std::string &what) const {
  throw ArtefactError(Refusal::Damaged, "damaged: field " + text() + " " + what);
}

namespace {
uint32_t read32(std::span<const uint8_t> bytes) {
  return uint32_t(bytes[0]) | uint32_t(bytes[1]) << 8 | uint32_t(bytes[2]) << 16 |
         uint32_t(bytes[3]) << 24;
}
} // namespace

uint64_t Reader::read64(Bytes bytes) {
  return read32(bytes) | static_cast<uint64_t>(read32(bytes.subspan(4))) << 32;
}

Reader::Bytes Reader::element(Bytes &rest, const FieldPath &path) {
  if (rest.size() < 4)
    path.damaged("ends early");
  uint32_t length = read32(rest);
  if (length > rest.size() - 4)
    path.damaged("ends early");
  Bytes value = rest.subspan(4, length);
  rest = rest.subspan(4 + size_t(length));
  return value;
}

Reader::Reader(Bytes bytes, const FieldPath &path) : path_(path) {
  while (!bytes.empty()) {
    if (bytes.size() < 8)
      path.damaged("ends early");
    uint32_t number = read32(bytes);
    bytes = bytes.subspan(4);
    Bytes value = element(bytes, path);
    for (size_t i = 0; i < count_; ++i)
      if (fields_[i].number == number)
        path.damaged("has field " + std::to_string(number) + " twice");
    if (count_ == kMostFields)
      path.damaged("has too many fields");
    fields_[count_++] = {number, value, false};
  }
}

std::optional<Reader::Bytes> Reader::take(uint32_t number) {
  for (size_t i = 0; i < count_; ++i)
    if (fields_[i].number == number) {
      fields_[i].taken = true;
      return fields_[i].value;
    }
  return std::nullopt;
}

void Reader::finish() const {
  for (size_t i = 0; i < count_; ++i)
    if (!fields_[i].taken && !(fields_[i].number & kIgnorable)) {
      std::string where = path_.text();
      throw ArtefactError(Refusal::Newer,
                          "made by a newer Sheaf: " + (where.empty() ? "it" : where) +
                              " has a field " + std::to_string(fields_[i].number) +
                              " that this one does not know");
    }
}

} // namespace sheaf::artefact
