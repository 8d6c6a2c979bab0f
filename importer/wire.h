// Protobuf's wire format: fields of a message in memory, and small helpers to write them. Only what the importer and exporter need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tandem::wire {

using Bytes = std::span<const std::byte>;

enum class Type : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  std::uint32_t number = 0;
  Type type = Type::kVarint;
  std::uint64_t varint = 0;  // kVarint
  Bytes bytes;               // kBytes: the content; kFixed64, kFixed32: the 8 or 4 bytes
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

// Walks the fields of one message. Throws InvalidModel where the bytes are no message (cut short, a varint over 10 bytes, a group).
class Reader {
 public:
  explicit Reader(Bytes message) : rest_(message) {}
  // False at the end.
  bool next(Field& field);
  bool done() const { return rest_.empty(); }
  // One varint at the front; for packed fields.
  std::uint64_t varint();

 private:
  Bytes take(std::uint64_t count);
  Bytes rest_;
};

std::size_t varint_size(std::uint64_t value);
void append_varint(std::string& out, std::uint64_t value);
void append_tag(std::string& out, std::uint32_t number, Type type);
void append_integer(std::string& out, std::uint32_t number, std::uint64_t value);
void append_bytes(std::string& out, std::uint32_t number, std::string_view content);

}  // namespace tandem::wire
