#include "tests/fuzz/protobuf_tree.h"

#include <algorithm>
#include <optional>

namespace tandem::fuzz {
namespace {

// A field; length-delimited content is taken for a message where it parses as one.
struct Field {
  std::uint32_t number = 0;
  unsigned wire = 0;  // 0 varint, 1 eight bytes, 2 content, 5 four bytes
  std::uint64_t varint = 0;
  Bytes content;                // wire 1, 5, and 2 when `children` is empty
  std::vector<Field> children;  // wire 2
};

constexpr int kMostDepth = 12;
constexpr std::size_t kLargestContent = 4096;  // longer content is data, not a message worth opening

std::optional<std::uint64_t> take_varint(std::span<const std::uint8_t>& in) {
  std::uint64_t v = 0;
  for (unsigned shift = 0; shift < 70 && !in.empty(); shift += 7) {
    const std::uint8_t b = in[0];
    in = in.subspan(1);
    if (shift < 64) v |= std::uint64_t{b & 0x7fu} << shift;
    if (b < 0x80) return v;
  }
  return std::nullopt;
}

std::optional<std::vector<Field>> parse(std::span<const std::uint8_t> in, int depth) {
  std::vector<Field> fields;
  while (!in.empty()) {
    const auto tag = take_varint(in);
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > 10000) return std::nullopt;
    Field f;
    f.number = static_cast<std::uint32_t>(*tag >> 3);
    f.wire = static_cast<unsigned>(*tag & 7);
    if (f.wire == 0) {
      const auto v = take_varint(in);
      if (!v) return std::nullopt;
      f.varint = *v;
    } else if (f.wire == 1 || f.wire == 2 || f.wire == 5) {
      std::uint64_t size = f.wire == 1 ? 8 : 4;
      if (f.wire == 2) {
        const auto v = take_varint(in);
        if (!v) return std::nullopt;
        size = *v;
      }
      if (size > in.size()) return std::nullopt;
      const auto content = in.first(static_cast<std::size_t>(size));
      in = in.subspan(static_cast<std::size_t>(size));
      auto children = f.wire == 2 && depth < kMostDepth && (depth < 2 || size <= kLargestContent) ? parse(content, depth + 1) : std::nullopt;
      if (children && !children->empty())
        f.children = std::move(*children);
      else
        f.content.assign(content.begin(), content.end());
    } else {
      return std::nullopt;
    }
    fields.push_back(std::move(f));
  }
  return fields;
}

void put_varint(Bytes& out, std::uint64_t v) {
  for (; v >= 0x80; v >>= 7) out.push_back(static_cast<std::uint8_t>(v | 0x80));
  out.push_back(static_cast<std::uint8_t>(v));
}

Bytes serialise(const std::vector<Field>& fields) {
  Bytes out;
  for (const Field& f : fields) {
    put_varint(out, std::uint64_t{f.number} << 3 | f.wire);
    if (f.wire == 0) {
      put_varint(out, f.varint);
      continue;
    }
    const Bytes content = f.children.empty() ? f.content : serialise(f.children);
    if (f.wire == 2) put_varint(out, content.size());
    out.insert(out.end(), content.begin(), content.end());
  }
  return out;
}

// Every list of fields in the tree, the top one first.
void collect(std::vector<Field>& fields, std::vector<std::vector<Field>*>& lists) {
  lists.push_back(&fields);
  for (Field& f : fields) {
    if (!f.children.empty()) collect(f.children, lists);
  }
}

void change_value(Field& f, Random& r) {
  if (f.wire == 0) {
    f.varint = r.chance(30) ? f.varint + r.below(5) - 2 : awkward_number(r);
  } else if (f.children.empty()) {
    // Text and packed numbers: an awkward number within, or fewer or more bytes.
    if (f.wire != 2 || r.chance(50)) {
      const std::uint64_t v = awkward_number(r);
      const std::size_t width = std::size_t{1} << r.below(4), at = f.content.size() > width ? r.below(f.content.size() - width) : 0;
      for (std::size_t i = 0; i < width && at + i < f.content.size(); ++i) f.content[at + i] = static_cast<std::uint8_t>(v >> (8 * i));
    } else {
      f.content.resize(r.chance(70) ? r.below(f.content.size() + 1) : f.content.size() + r.below(9));
    }
  } else {
    f.children.pop_back();
  }
}

void damage_field(std::vector<Field>& list, std::size_t at, const Field& donor, Random& r) {
  using Difference = std::vector<Field>::difference_type;
  const auto here = list.begin() + static_cast<Difference>(at);
  switch (r.below(10)) {
    case 0:
      list.erase(here);
      break;
    case 1: {
      const Field copy = *here;
      list.insert(here, copy);
      break;
    }
    case 2:
      std::swap(list[at], list[r.below(list.size())]);
      break;
    case 3:
      here->number = static_cast<std::uint32_t>(1 + r.below(30));
      break;
    case 4:
    case 5:
      if (donor.wire == here->wire) {
        const std::uint32_t number = here->number;
        const Field copy = donor;  // the donor may lie inside what is replaced
        *here = copy;
        here->number = number;
      } else {
        const Field copy = donor;
        list.insert(here, copy);
      }
      break;
    default:
      change_value(*here, r);
  }
}

}  // namespace

void damage_protobuf(Bytes& message, std::span<const std::uint8_t> other, Random& r) {
  auto tree = parse(message, 0);
  if (!tree || tree->empty()) return damage_bytes(message, other, r);
  std::vector<std::vector<Field>*> lists, foreign;
  collect(*tree, lists);
  auto second = r.chance(50) ? parse(other, 0) : std::nullopt;
  if (second && !second->empty()) collect(*second, foreign);
  std::vector<Field>& list = *lists[r.below(lists.size())];
  auto& donors = foreign.empty() ? *lists[r.below(lists.size())] : *foreign[r.below(foreign.size())];
  damage_field(list, r.below(list.size()), donors[r.below(donors.size())], r);
  message = serialise(*tree);
}

}  // namespace tandem::fuzz
