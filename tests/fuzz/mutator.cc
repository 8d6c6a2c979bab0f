#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <iterator>

#include "tests/fuzz/protobuf_tree.h"

namespace tandem::fuzz {

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t awkward_number(Random& r) {
  switch (r.below(6)) {
    case 0:
      return r.below(17);
    case 1:
      return ~std::uint64_t{0} - r.below(4);  // -1, -2, ...
    case 2:
      return (std::uint64_t{1} << r.below(64)) + r.below(3) - 1;
    case 3:
      return r.below(100000);
    case 4:
      return std::uint64_t{1} << 63;
    default:
      return r.next() >> r.below(64);
  }
}

namespace {

using Difference = Bytes::difference_type;

Difference offset(std::size_t n) { return static_cast<Difference>(n); }

// A block within `size` bytes, mostly short.
std::pair<std::size_t, std::size_t> block(std::size_t size, Random& r) {
  const std::size_t begin = r.below(size), most = size - begin;
  const std::size_t length = 1 + r.below(std::min(most, r.chance(80) ? std::size_t{16} : most));
  return {begin, std::min(begin + length, size)};
}

void write_integer(Bytes& bytes, std::size_t at, std::size_t width, bool little, std::uint64_t value) {
  for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i) {
    const std::size_t shift = 8 * (little ? i : width - 1 - i);
    bytes[at + i] = static_cast<std::uint8_t>(value >> shift);
  }
}

void awkward_integer(Bytes& bytes, std::size_t within, Random& r) {
  const std::size_t width = std::size_t{1} << r.below(4);
  write_integer(bytes, r.below(std::min(within, bytes.size())), width, r.chance(50), awkward_number(r));
}

void damage_once(Bytes& bytes, std::span<const std::uint8_t> other, Random& r) {
  if (bytes.empty()) {
    bytes.push_back(static_cast<std::uint8_t>(r.next()));
    return;
  }
  const auto [begin, end] = block(bytes.size(), r);
  const auto first = bytes.begin() + offset(begin), last = bytes.begin() + offset(end);
  switch (r.below(11)) {
    case 0:
    case 1:
      bytes[begin] ^= static_cast<std::uint8_t>(1u << r.below(8));
      break;
    case 2:
      bytes[begin] = static_cast<std::uint8_t>(r.next());
      break;
    case 3:
    case 4:
      awkward_integer(bytes, bytes.size(), r);
      break;
    case 5:
      bytes.erase(first, last);
      break;
    case 6: {
      const Bytes copy(first, last);
      bytes.insert(bytes.begin() + offset(r.below(bytes.size() + 1)), copy.begin(), copy.end());
      break;
    }
    case 7:
      std::fill(first, last, static_cast<std::uint8_t>(r.chance(50) ? 0 : 0xff));
      break;
    case 8:
      bytes.resize(begin);
      break;
    case 9:
      if (!other.empty()) {
        const auto [from, to] = block(other.size(), r);
        std::copy(other.begin() + offset(from), other.begin() + offset(std::min(to, from + bytes.size() - begin)), first);
      }
      break;
    default:
      for (auto it = first; it != last; ++it) *it = static_cast<std::uint8_t>(r.next());
  }
}

std::uint32_t crc32(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = ~0u;
  for (const std::uint8_t b : bytes) {
    crc ^= b;
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

// A part of a file: [begin, end), whose content is [content, content_end).
struct Part {
  std::size_t begin, content, content_end, end;
};

std::uint64_t read_big(const Bytes& b, std::size_t at, std::size_t width) {
  std::uint64_t v = 0;
  for (std::size_t i = 0; i < width; ++i) v = v << 8 | b[at + i];
  return v;
}

std::uint64_t read_little(const Bytes& b, std::size_t at, std::size_t width) {
  std::uint64_t v = 0;
  for (std::size_t i = width; i-- > 0;) v = v << 8 | b[at + i];
  return v;
}

std::vector<Part> parts_of(const std::string& format, const Bytes& b) {
  std::vector<Part> parts;
  if (format == "png") {
    for (std::size_t at = 8; at + 12 <= b.size();) {
      const std::size_t length = read_big(b, at, 4), end = at + 12 + length;
      if (length > b.size() || end > b.size()) break;
      parts.push_back({at, at + 8, end - 4, end});
      at = end;
    }
  } else if (format == "jpeg") {
    for (std::size_t at = 2; at + 4 <= b.size() && b[at] == 0xff && b[at + 1] != 0xd9;) {
      const std::size_t end = at + 2 + read_big(b, at + 2, 2);
      if (end > b.size() || end < at + 4) break;
      parts.push_back({at, at + 4, end, end});
      at = end;
    }
  } else if (format == "webp") {
    for (std::size_t at = 12; at + 8 <= b.size();) {
      const std::size_t length = read_little(b, at + 4, 4), end = at + 8 + length + length % 2;
      if (length > b.size() || end > b.size()) break;
      parts.push_back({at, at + 8, at + 8 + length, end});
      at = end;
    }
  }
  if (format == "npz") {
    for (std::size_t at = 0; at + 22 <= b.size(); ++at) {
      if (b[at] != 'P' || b[at + 1] != 'K' || b[at + 2] > 8) continue;
      const std::size_t end = std::min(at + 46, b.size());
      parts.push_back({at, at + 4, end, end});
    }
  }
  return parts;
}

// Another number in the text of a .npy header, whose length is made right again.
void damage_npy(Bytes& bytes, Random& r) {
  std::vector<std::pair<std::size_t, std::size_t>> numbers;
  const std::size_t end = std::min<std::size_t>(bytes.size(), 128);
  for (std::size_t at = 10; at < end; ++at) {
    std::size_t to = at;
    while (to < end && bytes[to] >= '0' && bytes[to] <= '9') ++to;
    if (to > at) numbers.emplace_back(at, to);
    at = to;
  }
  if (numbers.empty()) return damage_once(bytes, {}, r);
  const auto [from, to] = numbers[r.below(numbers.size())];
  const std::uint64_t number = awkward_number(r);
  const std::string text = r.chance(50) ? std::to_string(number) : std::to_string(static_cast<std::int64_t>(number));
  bytes.erase(bytes.begin() + offset(from), bytes.begin() + offset(to));
  bytes.insert(bytes.begin() + offset(from), text.begin(), text.end());
  write_integer(bytes, 8, 2, true, read_little(bytes, 8, 2) + text.size() - (to - from));
}

void damage_part(const std::string& format, Bytes& bytes, Random& r) {
  const std::vector<Part> parts = parts_of(format, bytes);
  if (parts.empty()) return damage_once(bytes, {}, r);
  const Part p = parts[r.below(parts.size())];
  const auto first = bytes.begin() + offset(p.begin), last = bytes.begin() + offset(p.end);
  if (r.chance(10)) {
    bytes.erase(first, last);
    return;
  }
  if (r.chance(12)) {
    const Bytes copy(first, last);
    const Part& q = parts[r.below(parts.size())];
    bytes.insert(bytes.begin() + offset(q.begin), copy.begin(), copy.end());
    return;
  }
  if (p.content_end == p.content) return;
  const std::size_t size = p.content_end - p.content, at = p.content + r.below(r.chance(60) ? std::min<std::size_t>(size, 24) : size);
  if (r.chance(50)) {
    bytes[at] = static_cast<std::uint8_t>(r.chance(50) ? awkward_number(r) : r.next());
  } else {
    write_integer(bytes, at, std::min<std::size_t>(std::size_t{1} << r.below(3), p.content_end - at), r.chance(50), awkward_number(r));
  }
  if (format == "png") {
    write_integer(bytes, p.content_end, 4, false, crc32(std::span(bytes).subspan(p.content - 4, size + 4)));
  }
}

}  // namespace

void damage_bytes(Bytes& bytes, std::span<const std::uint8_t> other, Random& r) {
  for (std::size_t n = 1 + r.below(4); n > 0; --n) damage_once(bytes, other, r);
}

void damage_fields(const std::string& format, Bytes& bytes, std::span<const std::uint8_t> other, Random& r) {
  for (std::size_t n = 1 + r.below(3); n > 0; --n) {
    if (format == "onnx") {
      damage_protobuf(bytes, other, r);
    } else if (format == "png" || format == "jpeg" || format == "webp" || format == "npz") {
      damage_part(format, bytes, r);
    } else if (format == "npy" && r.chance(70)) {
      damage_npy(bytes, r);
    } else if (!bytes.empty()) {
      awkward_integer(bytes, 64, r);
    }
  }
}

Bytes mutated(const std::string& format, const std::vector<Bytes>& seeds, std::uint64_t number) {
  Random r(number * 0x2545f4914f6cdd1du + 7);
  Bytes bytes = seeds[r.below(seeds.size())];
  const Bytes& other = seeds[r.below(seeds.size())];
  if (r.chance(60)) {
    damage_fields(format, bytes, other, r);
  } else {
    damage_bytes(bytes, other, r);
  }
  return bytes;
}

}  // namespace tandem::fuzz
