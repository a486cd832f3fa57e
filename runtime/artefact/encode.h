//===- encode.h - Numbered fields as bytes ----------------------*- C++ -*-===//
//
// A message is a sequence of fields: the number (u32), the length of the value in bytes (u32), the
// value. All numbers are little endian. A value is
//
//   a number, truth value or enumerator   8 bytes (a double: its bits)
//   a text                                its bytes
//   a list of numbers                     8 bytes each
//   any other list                        for each element its length (u32) and its value
//   anything else                         a message
//
// What fields a type has is said once, for the writer and the reader (fields.h): a function
// `fields(archive, value)` that calls archive(number, name, member) for each. A number is never
// used again for something else. A reader refuses a number that it does not know, unless it has the
// bit kIgnorable; a field that it misses is damage, unless it is a std::optional.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_ARTEFACT_ENCODE_H
#define SHEAF_RUNTIME_ARTEFACT_ENCODE_H

#include "runtime/artefact/error.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace sheaf::artefact {

/// Fields whose numbers have this bit may be skipped by readers that do not know them.
constexpr uint32_t kIgnorable = uint32_t(1) << 31;

template <typename T> constexpr bool isNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <typename T> constexpr bool isOptional = false;
template <typename T> constexpr bool isOptional<std::optional<T>> = true;
template <typename T> constexpr bool isVector = false;
template <typename T> constexpr bool isVector<std::vector<T>> = true;

template <typename T>
constexpr bool isNumberMap = std::is_same_v<T, std::map<std::string, int64_t>> ||
                             std::is_same_v<T, std::map<std::string, double>>;

/// One entry of a map, as a message; of a double its bits.
struct NamedNumber {
  std::string name;
  int64_t number = 0;
};
template <typename Archive> void fields(Archive &a, NamedNumber &x) {
  a(1, "name", x.name);
  a(2, "number", x.number);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

class Writer {
public:
  template <typename T> void operator()(uint32_t number, const char *, const T &member) {
    if constexpr (isOptional<T>) {
      if (member)
        (*this)(number, "", *member);
    } else {
      put32(number);
      size_t at = reserveLength();
      value(member);
      fillLength(at);
    }
  }
  const std::vector<uint8_t> &bytes() const { return bytes_; }

private:
  void put32(uint32_t x) {
    for (int shift = 0; shift < 32; shift += 8)
      bytes_.push_back(static_cast<uint8_t>(x >> shift));
  }
  void put64(uint64_t x) {
    put32(static_cast<uint32_t>(x));
    put32(static_cast<uint32_t>(x >> 32));
  }
  size_t reserveLength() {
    put32(0);
    return bytes_.size();
  }
  void fillLength(size_t at) {
    size_t length = bytes_.size() - at;
    if (length > std::numeric_limits<uint32_t>::max())
      throw UserError("the model's description is too large for an artefact");
    for (size_t i = 0; i < 4; ++i)
      bytes_[at - 4 + i] = static_cast<uint8_t>(length >> (8 * i));
  }

  template <typename T> void value(const T &x) {
    if constexpr (std::is_same_v<T, double>) {
      put64(std::bit_cast<uint64_t>(x));
    } else if constexpr (isNumber<T>) {
      put64(static_cast<uint64_t>(x));
    } else if constexpr (std::is_same_v<T, std::string>) {
      bytes_.insert(bytes_.end(), x.begin(), x.end());
    } else if constexpr (isNumberMap<T>) {
      std::vector<NamedNumber> entries;
      for (const auto &[name, number] : x)
        entries.push_back({name, std::bit_cast<int64_t>(number)});
      value(entries);
    } else if constexpr (isVector<T>) {
      for (const auto &element : x) {
        if constexpr (isNumber<typename T::value_type>) {
          value(element);
        } else {
          size_t at = reserveLength();
          value(element);
          fillLength(at);
        }
      }
    } else {
      fields(*this, const_cast<T &>(x));
    }
  }

  std::vector<uint8_t> bytes_;
};

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Which field is being read; prints as `model.kernels[3].phase`.
struct FieldPath {
  const FieldPath *parent = nullptr;
  const char *name = "";
  int64_t index = -1;

  std::string text() const;
  [[noreturn]] void damaged(const std::string &what) const;
};

/// The largest enumerator of a type, found by its arguments' namespace.
template <typename T> constexpr uint64_t largestOf() {
  if constexpr (std::is_enum_v<T>)
    return static_cast<uint64_t>(lastEnumerator(T()));
  else if constexpr (std::is_same_v<T, bool>)
    return 1;
  else
    return static_cast<uint64_t>(std::numeric_limits<T>::max());
}

/// Reads one message, whatever its bytes are.
class Reader {
public:
  using Bytes = std::span<const uint8_t>;

  /// Throws ArtefactError, as all functions here do.
  Reader(Bytes bytes, const FieldPath &path);

  template <typename T> void operator()(uint32_t number, const char *name, T &member) {
    std::optional<Bytes> found = take(number);
    FieldPath path{&path_, name};
    if constexpr (isOptional<T>) {
      if (found) {
        member.emplace();
        value(*found, path, *member);
      }
    } else {
      if (!found)
        path.damaged("is missing");
      value(*found, path, member);
    }
  }

  /// After all fields: refuses those that nobody asked for.
  void finish() const;

  const FieldPath &path() const { return path_; }

private:
  struct Field {
    uint32_t number;
    Bytes value;
    bool taken;
  };
  static constexpr size_t kMostFields = 32;

  std::optional<Bytes> take(uint32_t number);
  /// Takes a length and so many bytes from the front.
  static Bytes element(Bytes &rest, const FieldPath &path);
  static uint64_t read64(Bytes bytes);

  template <typename T> static void value(Bytes bytes, const FieldPath &path, T &x) {
    if constexpr (isNumber<T>) {
      if (bytes.size() != sizeof(uint64_t))
        path.damaged("is no number");
      uint64_t raw = read64(bytes);
      if constexpr (std::is_same_v<T, double>) {
        x = std::bit_cast<double>(raw);
      } else if constexpr (std::is_signed_v<T>) {
        static_assert(sizeof(T) == sizeof raw);
        x = static_cast<T>(raw);
      } else {
        if (raw > largestOf<T>())
          path.damaged("is " + std::to_string(raw) + ", which is too large");
        x = static_cast<T>(raw);
      }
    } else if constexpr (std::is_same_v<T, std::string>) {
      x.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    } else if constexpr (isNumberMap<T>) {
      std::vector<NamedNumber> entries;
      value(bytes, path, entries);
      for (const NamedNumber &entry : entries)
        if (!x.emplace(entry.name, std::bit_cast<typename T::mapped_type>(entry.number)).second)
          path.damaged("has '" + entry.name + "' twice");
    } else if constexpr (isVector<T>) {
      using Element = typename T::value_type;
      if constexpr (isNumber<Element>) {
        if (bytes.size() % sizeof(uint64_t) != 0)
          path.damaged("is no list of numbers");
        x.reserve(bytes.size() / sizeof(uint64_t));
        for (int64_t i = 0; !bytes.empty(); ++i, bytes = bytes.subspan(sizeof(uint64_t)))
          value(bytes.first(sizeof(uint64_t)), FieldPath{path.parent, path.name, i},
                x.emplace_back());
      } else {
        for (int64_t i = 0; !bytes.empty(); ++i) {
          FieldPath each{path.parent, path.name, i};
          Bytes one = element(bytes, each);
          value(one, each, x.emplace_back());
        }
      }
    } else {
      Reader reader(bytes, path);
      fields(reader, x);
      reader.finish();
    }
  }

  FieldPath path_;
  std::array<Field, kMostFields> fields_;
  size_t count_ = 0;
};

} // namespace sheaf::artefact

#endif // SHEAF_RUNTIME_ARTEFACT_ENCODE_H
