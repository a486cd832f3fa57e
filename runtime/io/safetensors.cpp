#include "runtime/io/safetensors.h"

#include "runtime/io/crc32c.h"

#include "runtime/io/half.h"
#include "runtime/io/json.h"
#include "runtime/model/convert.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace sheaf::io {

using rt::DType;

static constexpr FileType kFileTypes[] = {
    {"F32", 4},  {"F16", 2},     {"BF16", 2},    {"F64", 8}, {"I32", 4},    {"I64", 8},
    {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I8", 1},  {"I16", 2},    {"U8", 1},
    {"U16", 2},  {"U32", 4},     {"U64", 8},     {"C64", 8}, {"F8_E8M0", 1}};

const FileType *findFileType(std::string_view name) {
  for (const FileType &type : kFileTypes)
    if (name == type.name)
      return &type;
  return nullptr;
}

const FileType *fileTypeOf(DType dtype) { return findFileType(rt::infoOf(dtype).safetensors); }

int64_t FileTensor::elements() const { return static_cast<int64_t>(data.size()) / type->bytes; }

static std::string shapeText(const std::vector<int64_t> &shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string FileTensor::typeName() const { return type->name + shapeText(shape); }

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

constexpr uint64_t kMaxHeader = 100'000'000; // the format's own limit
constexpr size_t kMaxRank = 64;

/// Reads the header's JSON.
class HeaderReader {
public:
  HeaderReader(std::string_view text, const std::string &file) : json_(text, 8), file_(file) {}

  struct Entry {
    FileTensor tensor;
    uint64_t begin = 0, end = 0;
  };

  void run() {
    try {
      expect(JsonEvent::BeginObject, "an object");
      while (json_.next() == JsonEvent::Key) {
        std::string name(json_.text());
        if (!names_.insert(name).second)
          fail(fmt::format("{} is there twice", quoted(name)));
        if (name == "__metadata__")
          readMetadata();
        else
          readTensor(name);
      }
      json_.next();
    } catch (const TextError &error) {
      throw PlacedError({file_},
                        fmt::format("byte {} of the header: {}", error.offset, error.message));
    }
  }

  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;

private:
  [[noreturn]] void fail(std::string message) {
    throw TextError{json_.offset(), std::move(message)};
  }

  void expect(JsonEvent wanted, const std::string &what) {
    JsonEvent event = json_.next();
    if (event != wanted)
      fail(fmt::format("expected {}, found {}", what, describeEvent(event, json_.text())));
  }

  void readMetadata() {
    if (json_.peek() == JsonEvent::Null) { // as none
      json_.next();
      return;
    }
    expect(JsonEvent::BeginObject, "an object of strings as __metadata__");
    while (json_.next() == JsonEvent::Key) {
      std::string key(json_.text());
      expect(JsonEvent::String, fmt::format("a string for the metadata {}", quoted(key)));
      if (!metadata.emplace(key, json_.text()).second)
        fail(fmt::format("the metadata {} is there twice", quoted(key)));
    }
  }

  uint64_t number(const std::string &what) {
    expect(JsonEvent::Number, what);
    int64_t value = 0;
    if (!parseInteger(json_.text(), value) || value < 0)
      fail(fmt::format("expected {}, found {}", what,
                       describeEvent(JsonEvent::Number, json_.text())));
    return static_cast<uint64_t>(value);
  }

  void readTensor(const std::string &name) {
    Entry entry;
    entry.tensor.name = name;
    entry.tensor.type = nullptr;
    std::string who = fmt::format("tensor {}", quoted(name));
    bool hasShape = false, hasOffsets = false;
    expect(JsonEvent::BeginObject, fmt::format("an object for {}", who));
    while (json_.next() == JsonEvent::Key) {
      std::string key(json_.text());
      if ((key == "dtype" && entry.tensor.type) || (key == "shape" && hasShape) ||
          (key == "data_offsets" && hasOffsets))
        fail(fmt::format("{} has the member {} twice", who, quoted(key)));
      if (key == "dtype") {
        expect(JsonEvent::String, fmt::format("the dtype of {} as a string", who));
        entry.tensor.type = findFileType(json_.text());
        if (!entry.tensor.type)
          fail(fmt::format("{} has the unknown dtype {}", who, quoted(json_.text())));
      } else if (key == "shape") {
        hasShape = true;
        expect(JsonEvent::BeginArray, fmt::format("the shape of {} as an array", who));
        while (json_.peek() != JsonEvent::EndArray) {
          if (entry.tensor.shape.size() == kMaxRank)
            fail(fmt::format("{} has more than {} axes", who, kMaxRank));
          entry.tensor.shape.push_back(
              static_cast<int64_t>(number(fmt::format("an extent of {}", who))));
        }
        json_.next();
      } else if (key == "data_offsets") {
        hasOffsets = true;
        expect(JsonEvent::BeginArray, fmt::format("the data_offsets of {} as an array", who));
        entry.begin = number(fmt::format("where the data of {} begin", who));
        entry.end = number(fmt::format("where the data of {} end", who));
        expect(JsonEvent::EndArray, fmt::format("two data_offsets of {}", who));
      } else { // the format's own library reads over others, too
        json_.skip(json_.next());
      }
    }
    for (const char *missing :
         {!entry.tensor.type ? "dtype" : nullptr, !hasShape ? "shape" : nullptr,
          !hasOffsets ? "data_offsets" : nullptr})
      if (missing)
        fail(fmt::format("{} has no {}", who, missing));
    checkSize(entry, who);
    entries.push_back(std::move(entry));
  }

  void checkSize(const Entry &entry, const std::string &who) {
    uint64_t bytes = static_cast<uint64_t>(entry.tensor.type->bytes);
    bool overflow = false, isEmpty = false;
    for (int64_t extent : entry.tensor.shape)
      isEmpty |= extent == 0;
    for (int64_t extent : entry.tensor.shape)
      overflow |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes);
    if (isEmpty)
      bytes = 0;
    else if (overflow || bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      fail(fmt::format("{} is too large: {}", who, entry.tensor.typeName()));
    if (entry.end < entry.begin || entry.end - entry.begin != bytes)
      fail(fmt::format("{} is {} of {} bytes, but its data_offsets are [{}, {}]", who,
                       entry.tensor.typeName(), bytes, entry.begin, entry.end));
  }

  JsonPull json_;
  const std::string &file_;
  std::set<std::string> names_;
};

} // namespace

/// What a file is that is taken for another kind of weights; null: nothing that is known.
static const char *otherKind(std::span<const uint8_t> bytes) {
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  using namespace std::string_view_literals;
  if (text.starts_with("PK\x03\x04"sv))
    return "a zip archive, such as torch.save and numpy.savez write: save its tensors with "
           "safetensors.torch.save_file or safetensors.numpy.save_file";
  if (text.size() > 1 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5)
    return "a Python pickle, such as torch.save wrote: save its tensors with "
           "safetensors.torch.save_file";
  if (text.starts_with("\x89HDF\r\n"sv))
    return "an HDF5 file";
  if (text.starts_with("GGUF"sv))
    return "a GGUF file";
  if (text.starts_with("\x93NUMPY"sv))
    return "a NumPy array: save it with safetensors.numpy.save_file, which gives it a name";
  auto isText = [](uint8_t byte) { return byte >= ' ' || (byte >= '\t' && byte <= '\r'); };
  std::span<const uint8_t> first = bytes.first(std::min<size_t>(bytes.size(), 64));
  if (bytes.size() > 8 && std::all_of(first.begin(), first.end(), isText) && utf8Length(text) > 0)
    return "a text";
  return nullptr;
}

bool isSafetensors(std::span<const uint8_t> bytes) {
  return bytes.size() > 8 && bytes[8] == '{' && !bytes[7] && !bytes[6] && !bytes[5] && !bytes[4];
}

SafetensorsFile SafetensorsFile::parse(std::span<const uint8_t> bytes, const std::string &name) {
  SafetensorsFile file;
  file.name_ = name;
  if (const char *other = isSafetensors(bytes) ? nullptr : otherKind(bytes))
    throw PlacedError({name}, fmt::format("not a safetensors file, but {}", other));
  if (bytes.size() < 8)
    throw PlacedError({name},
                      fmt::format("not a safetensors file: {}, too short for the header's length",
                                  plural(static_cast<int64_t>(bytes.size()), "byte")));
  uint64_t headerBytes = 0;
  for (int i = 7; i >= 0; --i)
    headerBytes = headerBytes << 8 | bytes[static_cast<size_t>(i)];
  if (headerBytes > kMaxHeader)
    throw PlacedError({name},
                      fmt::format("not a safetensors file: a header of {} bytes is over the "
                                  "limit of {}",
                                  headerBytes, kMaxHeader));
  if (headerBytes > bytes.size() - 8)
    throw PlacedError({name},
                      fmt::format("truncated: the header has {} bytes, the file only {} after "
                                  "its length",
                                  headerBytes, bytes.size() - 8));
  std::string_view text(reinterpret_cast<const char *>(bytes.data()) + 8, headerBytes);
  if (!text.starts_with('{'))
    throw PlacedError({name}, "not a safetensors file: the header does not begin with '{'");
  HeaderReader header(text, name);
  header.run();

  std::span<const uint8_t> data = bytes.subspan(8 + headerBytes);
  std::sort(header.entries.begin(), header.entries.end(),
            [](const HeaderReader::Entry &a, const HeaderReader::Entry &b) {
              return std::tie(a.begin, a.end, a.tensor.name) <
                     std::tie(b.begin, b.end, b.tensor.name);
            });
  file.tensors_.reserve(header.entries.size());
  uint64_t covered = 0;
  const std::string *before = nullptr;
  for (HeaderReader::Entry &entry : header.entries) {
    if (entry.end > data.size())
      throw PlacedError({name},
                        fmt::format("truncated: the data of tensor {} end at byte {}, but there "
                                    "are only {}",
                                    quoted(entry.tensor.name), entry.end, data.size()));
    if (entry.begin < covered)
      throw PlacedError({name}, fmt::format("the data of tensors {} and {} overlap",
                                            quoted(*before), quoted(entry.tensor.name)));
    if (entry.begin > covered)
      throw PlacedError({name},
                        fmt::format("{} before the data of tensor {} belong to no tensor",
                                    plural(static_cast<int64_t>(entry.begin - covered), "byte"),
                                    quoted(entry.tensor.name)));
    covered = entry.end;
    entry.tensor.data = data.subspan(entry.begin, entry.end - entry.begin);
    file.byName_.emplace(entry.tensor.name, file.tensors_.size());
    file.tensors_.push_back(std::move(entry.tensor));
    before = &file.tensors_.back().name;
  }
  if (covered < data.size())
    throw PlacedError({name},
                      fmt::format("{} after the last tensor belong to no tensor",
                                  plural(static_cast<int64_t>(data.size() - covered), "byte")));
  file.metadata_ = std::move(header.metadata);
  return file;
}

SafetensorsFile SafetensorsFile::open(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    throw NotReadable(path, std::strerror(errno));
  struct stat info;
  void *mapping = nullptr;
  size_t size = 0;
  const char *reason = nullptr;
  if (::fstat(fd, &info) != 0) {
    reason = std::strerror(errno);
  } else if (!S_ISREG(info.st_mode)) {
    reason = "not a regular file";
  } else if (info.st_size > 0) {
    size = static_cast<size_t>(info.st_size);
    mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED) {
      mapping = nullptr;
      reason = std::strerror(errno);
    }
  }
  ::close(fd);
  if (reason)
    throw NotReadable(path, reason);
  try {
    SafetensorsFile file = parse({static_cast<const uint8_t *>(mapping), size}, path);
    file.mapping_ = mapping;
    file.mappedBytes_ = size;
    return file;
  } catch (...) {
    if (mapping)
      ::munmap(mapping, size);
    throw;
  }
}

SafetensorsFile::SafetensorsFile(SafetensorsFile &&other) noexcept
    : name_(std::move(other.name_)), tensors_(std::move(other.tensors_)),
      byName_(std::move(other.byName_)), metadata_(std::move(other.metadata_)),
      mapping_(std::exchange(other.mapping_, nullptr)), mappedBytes_(other.mappedBytes_) {}

SafetensorsFile::~SafetensorsFile() {
  if (mapping_)
    ::munmap(mapping_, mappedBytes_);
}

void SafetensorsFile::forget(std::span<const uint8_t> data) const {
  auto begin = reinterpret_cast<uintptr_t>(data.data()), end = begin + data.size();
  auto mapped = reinterpret_cast<uintptr_t>(mapping_);
  if (!mapping_ || begin < mapped || end > mapped + mappedBytes_)
    return;
  auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin < end) // of a file that is only read, so nothing is lost
    ::madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

const FileTensor *SafetensorsFile::find(const std::string &name) const {
  auto it = byName_.find(name);
  return it == byName_.end() ? nullptr : &tensors_[it->second];
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

namespace {

template <typename T> T load(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T> void store(uint8_t *to, T value) { std::memcpy(to, &value, sizeof(T)); }

void storeReal(uint8_t *to, DType dtype, double value) {
  if (dtype == DType::F32)
    store(to, static_cast<float>(value));
  else
    store(to, dtype == DType::F16 ? toF16(value) : toBF16(value));
}

} // namespace

std::optional<std::string> convertElements(const FileTensor &tensor, DType dtype,
                                           std::vector<uint8_t> &out) {
  std::string_view from = tensor.type->name;
  size_t count = static_cast<size_t>(tensor.elements());
  size_t fromBytes = static_cast<size_t>(tensor.type->bytes);
  size_t toBytes = static_cast<size_t>(rt::dtypeBytes(dtype));
  bool fromReal = from == "F32" || from == "F16" || from == "BF16" || from == "F64";
  bool fromInteger = from == "I32" || from == "I64" || from == "BOOL";
  bool toReal = dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
  bool isSame = from == fileTypeOf(dtype)->name;
  if (!isSame && ((!fromReal && !fromInteger) || (fromReal && !toReal) || dtype == DType::Bool))
    return fmt::format("{} does not convert to {}", from, fileTypeOf(dtype)->name);
  out.resize(count * toBytes);
  const uint8_t *source = tensor.data.data();
  if (isSame && fromBytes == toBytes) {
    if (count)
      std::memcpy(out.data(), source, out.size());
    return std::nullopt;
  }
  for (size_t i = 0; i < count; ++i, source += fromBytes) {
    uint8_t *to = out.data() + i * toBytes;
    if (fromReal) {
      storeReal(to, dtype,
                from == "F32"    ? load<float>(source)
                : from == "F64"  ? load<double>(source)
                : from == "BF16" ? rt::bf16ToFloat(load<uint16_t>(source))
                                 : rt::f16ToFloat(load<uint16_t>(source)));
      continue;
    }
    int64_t value = from == "I32"   ? load<int32_t>(source)
                    : from == "I64" ? load<int64_t>(source)
                                    : *source;
    if (from == "BOOL" && value > 1)
      return fmt::format("element {} of BOOL is {}, neither 0 nor 1", i, value);
    if (dtype == DType::F32) {
      store(to, static_cast<float>(value));
    } else if (toReal) {
      storeReal(to, dtype, static_cast<double>(value));
    } else if (dtype == DType::I64) {
      store(to, value);
    } else {
      if (value < std::numeric_limits<int32_t>::min() ||
          value > std::numeric_limits<int32_t>::max())
        return fmt::format("element {} is {}, beyond I32", i, value);
      store(to, static_cast<int32_t>(value));
    }
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {

/// The checksum of metadata and tensors.
class Checksum {
public:
  /// `key`: where the checksum itself stands.
  Checksum(const std::map<std::string, std::string> &metadata, const std::string &key) {
    for (const auto &[name, value] : metadata)
      if (name != key)
        add(name, {reinterpret_cast<const uint8_t *>(value.data()), value.size()});
  }
  void add(const std::string &name, std::span<const uint8_t> data) {
    crc_ = crc32c(name.data(), name.size(), crc_);
    crc_ = crc32c(data.data(), data.size(), crc_);
  }
  std::string text() const { return fmt::format("{:08x}", crc_); }

private:
  uint32_t crc_ = 0;
};

} // namespace

void SafetensorsFile::requireChecksum(const std::string &key) const {
  auto sum = metadata_.find(key);
  if (sum == metadata_.end())
    throw PlacedError({name_}, "its metadata have no '" + key + "'");
  Checksum checksum(metadata_, key);
  for (const FileTensor &tensor : tensors_)
    checksum.add(tensor.name, tensor.data);
  if (checksum.text() != sum->second)
    throw PlacedError({name_}, "the file is damaged: its checksum is another");
}

void writeSafetensors(const std::string &path, std::span<const TensorToWrite> tensors,
                      std::map<std::string, std::string> metadata, const char *checksumKey) {
  /// A tensor and its data as they are in the file.
  struct Entry {
    const TensorToWrite *tensor;
    std::vector<uint8_t> narrowed;
    std::span<const uint8_t> data;
  };
  std::vector<Entry> order;
  std::set<std::string> names;
  for (const TensorToWrite &tensor : tensors) {
    int64_t elements = 1;
    for (int64_t extent : tensor.shape)
      elements *= extent;
    if (static_cast<int64_t>(tensor.data.size()) != elements * rt::dtypeBytes(tensor.dtype))
      throw InternalError(fmt::format("weight '{}' has {} bytes for shape {}", tensor.name,
                                      tensor.data.size(), shapeText(tensor.shape)));
    if (!names.insert(tensor.name).second)
      throw InternalError(fmt::format("weight '{}' is written twice", tensor.name));
  }
  for (int64_t bytes : {8, 4, 2, 1})
    for (const TensorToWrite &tensor : tensors)
      if (fileTypeOf(tensor.dtype)->bytes == bytes)
        order.push_back({&tensor, {}, tensor.data});
  for (Entry &entry : order) {
    if (entry.tensor->dtype != DType::Bool)
      continue;
    for (size_t i = 0; i < entry.data.size(); i += 4)
      entry.narrowed.push_back(load<int32_t>(entry.data.data() + i) != 0);
    entry.data = entry.narrowed;
  }
  if (checksumKey) {
    Checksum checksum(metadata, checksumKey);
    for (const Entry &entry : order)
      checksum.add(entry.tensor->name, entry.data);
    metadata[checksumKey] = checksum.text();
  }

  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto &[key, value] : metadata) {
      if (!header.ends_with('{'))
        header += ',';
      appendJsonString(header, key);
      header += ':';
      appendJsonString(header, value);
    }
    header += '}';
  }
  int64_t offset = 0;
  for (const auto &[tensor, narrowed, data] : order) {
    if (header.size() > 1)
      header += ',';
    auto bytes = static_cast<int64_t>(data.size());
    appendJsonString(header, tensor->name);
    header += fmt::format(":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          fileTypeOf(tensor->dtype)->name, fmt::join(tensor->shape, ","), offset,
                          offset + bytes);
    offset += bytes;
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');

  AtomicFile file(path);
  uint8_t length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<uint8_t>(static_cast<uint64_t>(header.size()) >> (8 * i));
  file.write(length, sizeof(length));
  file.write(header);
  for (const Entry &entry : order)
    file.write(entry.data.data(), entry.data.size());
  file.commit();
}

} // namespace sheaf::io
