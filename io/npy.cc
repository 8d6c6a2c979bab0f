#include "io/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "io/file_handle.h"
#include "runtime/base/error.h"
#include "runtime/base/safe_file.h"

namespace tandem::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::int64_t kMaxHeader = 1 << 20;

struct TypeName {
  const char* name;
  DType type;
};
constexpr TypeName kTypes[] = {{"b1", DType::kBool}, {"i1", DType::kI8},  {"u1", DType::kU8},  {"i2", DType::kI16},
                               {"u2", DType::kU16},  {"i4", DType::kI32}, {"u4", DType::kU32}, {"i8", DType::kI64},
                               {"u8", DType::kU64},  {"f2", DType::kF16}, {"f4", DType::kF32}, {"f8", DType::kF64}};

struct Header {
  DType dtype = DType::kNone;
  bool swapped = false, fortran = false;
  Shape shape;
};

// The text after "'key':" in the header's Python dictionary.
std::string_view value_of(std::string_view dict, std::string_view key) {
  const std::string quoted = fmt::format("'{}'", key);
  const std::size_t at = dict.find(quoted);
  if (at == std::string_view::npos) throw InvalidData(fmt::format("not a .npy file: its header has no {}", quoted));
  std::size_t from = dict.find(':', at + quoted.size());
  if (from == std::string_view::npos) throw InvalidData("not a .npy file: its header is damaged");
  from = dict.find_first_not_of(" \t", from + 1);
  return from == std::string_view::npos ? std::string_view() : dict.substr(from);
}

[[noreturn]] void refuse_shape() { throw InvalidData("not a .npy file: its header's shape is damaged"); }

// A Python tuple of integers: "()", "(2,)", "(2, 3)"; Python 2 wrote 2L.
Shape parse_shape(std::string_view text) {
  const std::size_t end = text.find(')');
  if (text.empty() || text[0] != '(' || end == std::string_view::npos) refuse_shape();
  std::string_view rest = text.substr(1, end - 1);
  const auto skip = [&] { rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size())); };
  Shape shape;
  bool comma = true;
  for (skip(); !rest.empty(); skip()) {
    std::int64_t number = 0;
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits == 0 || !comma) refuse_shape();
    for (const char c : rest.substr(0, digits)) {
      number = number * 10 + (c - '0');
      if (number > (std::int64_t{1} << 48)) throw InvalidData("the .npy header's shape is absurd");
    }
    rest.remove_prefix(digits);
    if (rest.starts_with('L')) rest.remove_prefix(1);
    skip();
    comma = rest.starts_with(',');
    if (comma) rest.remove_prefix(1);
    shape.push_back(number);
  }
  if (shape.size() == 1 && !comma) refuse_shape();  // (2) is no tuple
  if (shape.size() > 32) throw InvalidData("the .npy header's shape has more than 32 dimensions");
  return shape;
}

bool parse_bool(std::string_view text) {
  const bool yes = text.starts_with("True");
  if (!yes && !text.starts_with("False")) throw InvalidData("not a .npy file: its header's fortran_order is neither True nor False");
  return yes;
}

Header parse_header(std::string_view dict) {
  Header h;
  const std::string_view descr = value_of(dict, "descr");
  if (descr.size() < 5 || (descr[0] != '\'' && descr[0] != '"')) throw InvalidData("structured .npy types are not supported");
  for (const TypeName& t : kTypes) {
    if (descr.substr(2, 2) == t.name && descr[4] == descr[0]) h.dtype = t.type;
  }
  if (h.dtype == DType::kNone || std::string_view("<>|=").find(descr[1]) == std::string_view::npos) {
    throw InvalidData(fmt::format(".npy element type {} is not supported", descr.substr(0, std::min<std::size_t>(descr.size(), 12))));
  }
  h.swapped = descr[1] == '>' && size_of(h.dtype) > 1;
  h.fortran = parse_bool(value_of(dict, "fortran_order"));
  h.shape = parse_shape(value_of(dict, "shape"));
  return h;
}

void swap_bytes(Tensor& t) {
  const std::size_t width = size_of(t.dtype());
  auto* p = static_cast<std::byte*>(t.mutable_data());
  for (std::size_t i = 0; i < t.bytes(); i += width) std::reverse(p + i, p + i + width);
}

Tensor from_fortran(const Tensor& t) {
  Tensor out(t.dtype(), t.shape());
  const std::size_t width = size_of(t.dtype());
  const auto* from = static_cast<const std::byte*>(t.data());
  auto* to = static_cast<std::byte*>(out.mutable_data());
  Shape index(t.shape().size(), 0);
  for (std::int64_t i = 0; i < t.size(); ++i) {
    std::int64_t at = 0, step = 1;
    for (std::size_t d = 0; d < index.size(); ++d) {
      at += index[d] * step;
      step *= t.shape()[d];
    }
    std::memcpy(to + static_cast<std::size_t>(i) * width, from + static_cast<std::size_t>(at) * width, width);
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == t.shape()[d];) index[d] = 0;
  }
  return out;
}

}  // namespace

Tensor read_npy(std::int64_t size, const std::function<void(void*, std::size_t)>& read) {
  unsigned char start[12] = {};
  if (size < static_cast<std::int64_t>(sizeof start)) throw InvalidData("not a .npy file");
  read(start, 10);
  if (std::memcmp(start, kMagic.data(), kMagic.size()) != 0) throw InvalidData("not a .npy file");
  const int version = start[6];
  if (version < 1 || version > 3) throw InvalidData(fmt::format(".npy format version {} is not known", version));
  if (version > 1) read(start + 10, 2);
  const std::int64_t left = size - (version == 1 ? 10 : 12);
  const std::int64_t length = start[8] | start[9] << 8 | start[10] << 16 | std::int64_t{start[11]} << 24;
  if (length > left) throw InvalidData("the .npy file is cut within its header");
  if (length > kMaxHeader) throw InvalidData(fmt::format("the .npy header has {} bytes, more than the limit of {}", length, kMaxHeader));
  std::string dict(static_cast<std::size_t>(length), '\0');
  read(dict.data(), dict.size());
  const Header h = parse_header(dict);
  std::int64_t count = 0;
  try {
    count = elements(h.shape);
  } catch (const Error&) {
    throw InvalidData("the .npy header's shape is absurd");
  }
  const auto bytes = left - length, width = static_cast<std::int64_t>(size_of(h.dtype));
  if (bytes % width != 0 || bytes / width != count) {
    throw InvalidData(
        fmt::format("the .npy file holds {} bytes of data, its shape {} needs {} of type {}", bytes, to_string(h.shape), count, name_of(h.dtype)));
  }
  Tensor t(h.dtype, h.shape);
  read(t.mutable_data(), static_cast<std::size_t>(bytes));
  if (h.swapped) swap_bytes(t);
  return h.fortran && t.rank() > 1 ? from_fortran(t) : t;
}

Tensor parse_npy(std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  return read_npy(static_cast<std::int64_t>(bytes.size()), [&](void* to, std::size_t n) {
    if (n > 0) std::memcpy(to, at, n);
    at += n;
  });
}

Tensor read_npy(const std::string& file) {
  return with_context([&] { return file; },
                      [&] {
                        const FileHandle handle(file);
                        std::int64_t at = 0;
                        return read_npy(handle.size(), [&](void* to, std::size_t n) {
                          handle.read_at(at, to, n);
                          at += static_cast<std::int64_t>(n);
                        });
                      });
}

std::string npy_bytes(const Tensor& tensor) {
  if (tensor.dtype() == DType::kBF16) {
    Tensor wide(DType::kF32, tensor.shape());
    const auto from = tensor.as<BFloat16>();
    for (std::size_t i = 0; i < from.size(); ++i) wide.as_mutable<float>()[i] = static_cast<float>(from[i]);
    return npy_bytes(wide);
  }
  const char* name = "";
  for (const TypeName& t : kTypes) {
    if (t.type == tensor.dtype()) name = t.name;
  }
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", size_of(tensor.dtype()) == 1 ? '|' : '<', name,
                                   fmt::join(tensor.shape(), ", "), tensor.rank() == 1 ? "," : "");
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  out.append(static_cast<const char*>(tensor.data()), tensor.bytes());
  return out;
}

void write_npy(const std::string& file, const Tensor& tensor) { save_file(file, npy_bytes(tensor)); }

}  // namespace tandem::io
