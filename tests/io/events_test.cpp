#include "runtime/io/crc32c.h"
#include "runtime/io/events.h"
#include "tests/io/io_test_support.h"

#include <cstring>
#include <filesystem>
#include <fstream>

namespace sheaf::io::test {
namespace {

TEST(Crc32c, KnownValues) {
  // RFC 3720, appendix B.4, and the check value of the catalogue of CRCs.
  std::string zeros(32, '\0'), ones(32, '\xff'), up(32, '\0'), down(32, '\0');
  for (int i = 0; i < 32; ++i) {
    up[i] = static_cast<char>(i);
    down[i] = static_cast<char>(31 - i);
  }
  EXPECT_EQ(crc32c(zeros.data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c(ones.data(), 32), 0x62a8ab43u);
  EXPECT_EQ(crc32c(up.data(), 32), 0x46dd794eu);
  EXPECT_EQ(crc32c(down.data(), 32), 0x113fdb5cu);
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c("", 0), 0u);
}

TEST(Crc32c, PartsGiveTheSameAsTheWhole) {
  std::string text = "the quick brown fox jumps over the lazy dog";
  uint32_t whole = crc32c(text.data(), text.size());
  for (size_t i = 0; i <= text.size(); ++i)
    EXPECT_EQ(crc32c(text.data() + i, text.size() - i, crc32c(text.data(), i)), whole);
}

/// The records of an event file, as a reader of TFRecord takes them.
std::vector<std::string> recordsOf(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::string> records;
  auto mask = [](uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; };
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    uint32_t ofLength = 0, ofData = 0;
    std::memcpy(&length, bytes.data() + at, 8);
    std::memcpy(&ofLength, bytes.data() + at + 8, 4);
    EXPECT_EQ(ofLength, mask(crc32c(bytes.data() + at, 8)));
    records.push_back(bytes.substr(at + 12, length));
    std::memcpy(&ofData, bytes.data() + at + 12 + length, 4);
    EXPECT_EQ(ofData, mask(crc32c(records.back().data(), length)));
    at += 16 + length;
  }
  return records;
}

TEST(Events, RecordsAndTheirBytes) {
  std::string directory = ::testing::TempDir() + "sheaf-events";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);
  EventFile file(directory, 300);
  std::vector<std::pair<std::string, double>> numbers = {{"loss", 0.5}, {"lr", 2}};
  file.scalars(301, numbers);
  std::vector<std::string> records = recordsOf(file.path());
  ASSERT_EQ(records.size(), 3u);
  // After wall_time (field 1, a double).
  EXPECT_EQ(records[0].substr(9), std::string("\x10\x00\x1a\x0d", 4) + "brain.Event:2");
  EXPECT_EQ(records[1].substr(9), "\x10\xac\x02\x3a\x02\x08\x01");
  EXPECT_EQ(records[2].substr(9), std::string("\x10\xad\x02\x2a\x18"
                                              "\x0a\x0b\x0a\x04loss\x15\x00\x00\x00\x3f"
                                              "\x0a\x09\x0a\x02lr\x15\x00\x00\x00\x40",
                                              29));
  EXPECT_EQ(userError([&] { EventFile(directory + "/none", 0); }).substr(0, directory.size()),
            directory);
}

} // namespace
} // namespace sheaf::io::test
