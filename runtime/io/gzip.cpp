#include "runtime/io/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

namespace sheaf::io {

namespace {

constexpr std::string_view kMagic = "\x1F\x8B";

class Inflater {
public:
  explicit Inflater(const std::string &name) : name_(name) {
    // 16: with a header and a check sum as gzip has them.
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK)
      throw PlacedError({name}, "there is no memory to decompress it");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater &) = delete;
  Inflater &operator=(const Inflater &) = delete;

  /// All members: compressed files may be put one after the other.
  std::string run(std::string_view compressed) {
    constexpr size_t kPiece = size_t{1} << 30; // zlib counts in 32 bits
    std::string text;
    for (size_t used = 0;;) {
      if (stream_.avail_in == 0) {
        size_t size = std::min(compressed.size(), kPiece);
        stream_.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(compressed.data()));
        stream_.avail_in = static_cast<uInt>(size);
        compressed.remove_prefix(size);
      }
      if (used == text.size())
        text.resize(std::max(2 * used, size_t{1} << 16));
      size_t room = std::min(text.size() - used, kPiece);
      stream_.next_out = reinterpret_cast<Bytef *>(text.data() + used);
      stream_.avail_out = static_cast<uInt>(room);
      int status = inflate(&stream_, Z_NO_FLUSH);
      used += room - stream_.avail_out;
      bool isRead = stream_.avail_in == 0 && compressed.empty();
      if (status == Z_STREAM_END && isRead) {
        text.resize(used);
        return text;
      }
      if (status == Z_STREAM_END)
        inflateReset(&stream_);
      else if (status != Z_OK && status != Z_BUF_ERROR)
        fail(stream_.msg ? stream_.msg : "damaged");
      else if (isRead && stream_.avail_out > 0)
        fail("it ends too early");
    }
  }

private:
  [[noreturn]] void fail(const char *why) const {
    throw PlacedError({name_}, fmt::format("cannot be decompressed: {}", why));
  }

  const std::string &name_;
  z_stream stream_ = {};
};

} // namespace

bool isGzip(std::string_view bytes) { return bytes.starts_with(kMagic); }

SourceText decompressed(SourceText source) {
  if (isGzip(source.text))
    source.text = Inflater(source.name).run(source.text);
  return source;
}

SourceText readData(const std::string &path) { return decompressed(readSource(path)); }

} // namespace sheaf::io
