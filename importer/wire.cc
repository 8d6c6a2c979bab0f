#include "importer/wire.h"

#include "runtime/base/error.h"

namespace tandem::wire {
namespace {

[[noreturn]] void cut_short() {
  throw InvalidModel("the file is no ONNX model, or it is cut short or damaged (a protobuf field reaches past its message)");
}
[[noreturn]] void malformed() { throw InvalidModel("the file is no ONNX model, or it is damaged (malformed protobuf)"); }

}  // namespace

Bytes Reader::take(std::uint64_t count) {
  if (count > rest_.size()) cut_short();
  const Bytes taken = rest_.first(static_cast<std::size_t>(count));
  rest_ = rest_.subspan(static_cast<std::size_t>(count));
  return taken;
}

std::uint64_t Reader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(take(1)[0]);
    if (shift == 63 && byte > 1) malformed();
    value |= (byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  malformed();
}

bool Reader::next(Field& field) {
  if (rest_.empty()) return false;
  const std::uint64_t tag = varint();
  if (tag >> 32 != 0 || tag >> 3 == 0) malformed();
  field = {.number = static_cast<std::uint32_t>(tag >> 3), .type = static_cast<Type>(tag & 7), .varint = 0, .bytes = {}};
  switch (field.type) {
    case Type::kVarint:
      field.varint = varint();
      return true;
    case Type::kFixed64:
      field.bytes = take(8);
      return true;
    case Type::kBytes:
      field.bytes = take(varint());
      return true;
    case Type::kFixed32:
      field.bytes = take(4);
      return true;
  }
  malformed();
}

std::size_t varint_size(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>((value & 0x7f) | 0x80));
  out.push_back(static_cast<char>(value));
}

void append_tag(std::string& out, std::uint32_t number, Type type) {
  append_varint(out, std::uint64_t{number} << 3 | static_cast<std::uint64_t>(type));
}

void append_integer(std::string& out, std::uint32_t number, std::uint64_t value) {
  append_tag(out, number, Type::kVarint);
  append_varint(out, value);
}

void append_bytes(std::string& out, std::uint32_t number, std::string_view content) {
  append_tag(out, number, Type::kBytes);
  append_varint(out, content.size());
  out.append(content);
}

}  // namespace tandem::wire
