#include "io/tensorboard.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/base/error.h"
#include "tests/support/files.h"

namespace tandem::io {
namespace {

TEST(Crc32c, PublishedVectors) {  // RFC 3720, appendix B.4; "123456789" is the usual check value
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising += c;
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(crc32c(""), 0u);
}

template <class T>
T number_at(const std::string& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// TFRecord: length, masked CRC of it, data, masked CRC of the data.
std::vector<std::string> records_of(const std::string& file) {
  const auto masked = [](std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; };
  const std::string bytes = test::read_text(file);
  std::vector<std::string> records;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = static_cast<std::size_t>(number_at<std::uint64_t>(bytes, at));
    EXPECT_EQ(number_at<std::uint32_t>(bytes, at + 8), masked(crc32c(bytes.substr(at, 8))));
    if (length > bytes.size() - at - 16) {
      ADD_FAILURE() << "a record is cut";
      break;
    }
    records.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(number_at<std::uint32_t>(bytes, at + 12 + length), masked(crc32c(records.back())));
    at += length + 16;
  }
  return records;
}

// The bytes of Event by hand: field 1 (double) 09, field 2 (varint) 10, field 3 (text) 1a, field 5 (Summary) 2a; of a value: tag 0a, float 15.
TEST(EventFile, BytesByHand) {
  const test::TemporaryFolder folder;
  EventFile file(folder.path());
  file.add(300, {{"loss", 0.5}, {"x", -2}});
  const auto records = records_of(file.path());
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].substr(0, 1), "\x09");
  EXPECT_GT(number_at<double>(records[0], 1), 1.6e9);
  EXPECT_EQ(records[0].substr(9), std::string("\x10\x00\x1a\x0d", 4) + "brain.Event:2");
  EXPECT_EQ(records[1].substr(9, 3), "\x10\xac\x02");
  const std::string loss = std::string("\x0a\x0b\x0a\x04loss\x15", 9) + std::string("\x00\x00\x00\x3f", 4);
  const std::string x = std::string("\x0a\x08\x0a\x01x\x15", 6) + std::string("\x00\x00\x00\xc0", 4);
  EXPECT_EQ(records[1].substr(12), "\x2a\x17" + loss + x);
}

TEST(EventFile, EachProcessThatGoesOnHasItsOwn) {
  const test::TemporaryFolder folder;
  EventFile first(folder.path()), second(folder.path());
  EXPECT_NE(first.path(), second.path());
  second.add(1, {{"loss", 1}});
  EXPECT_EQ(records_of(first.path()).size(), 1u);
  EXPECT_EQ(records_of(second.path()).size(), 2u);
  EXPECT_THROW(EventFile(folder / "none"), InvalidData);
}

}  // namespace
}  // namespace tandem::io
