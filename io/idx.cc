#include "io/idx.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>

#include "io/expansion.h"
#include "io/file_handle.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{8} << 30;

// Reads a plain or gzipped file from the start, piece by piece.
class GzipReader {
 public:
  explicit GzipReader(const std::string& file) : file_(gzopen(file.c_str(), "rb"), gzclose) {
    if (!file_) throw InvalidData("the file cannot be opened");
  }
  void read(void* to, std::int64_t bytes) {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      const int got = gzread(file_.get(), at, static_cast<unsigned>(std::min<std::int64_t>(bytes, 1 << 30)));
      if (got <= 0) throw InvalidData(fmt::format("the file is cut or damaged: {} bytes are missing", bytes));
      at += got;
      bytes -= got;
    }
  }
  // Throws when there is more, or when the checksum behind the data is wrong or missing.
  void expect_end() {
    char c;
    if (gzread(file_.get(), &c, 1) > 0) throw InvalidData("the file holds more data than its header says");
    int code = Z_OK;
    gzerror(file_.get(), &code);
    if (code != Z_OK && code != Z_STREAM_END) throw InvalidData("the file is damaged: its checksum is wrong or cut off");
  }

 private:
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

// The most bytes that the file can hold, unpacked.
std::int64_t most_bytes(const FileHandle& file) {
  if (file.size() < 4) throw InvalidData(fmt::format("not an idx file: it has {} bytes", file.size()));
  unsigned char start[2];
  file.read_at(0, start, 2);
  const bool gzipped = start[0] == 0x1f && start[1] == 0x8b;
  return std::min(kMaxBytes, gzipped ? expansion_limit(file.size()) : file.size());
}

Shape read_header(GzipReader& reader) {
  unsigned char magic[4];
  reader.read(magic, 4);
  const unsigned type = magic[2], dims = magic[3];
  if (magic[0] != 0 || magic[1] != 0) throw InvalidData("not an idx file: it does not begin with two zero bytes");
  if (type != 8) throw InvalidData(fmt::format("idx files of element type {:#04x} are not supported, only unsigned bytes (0x08)", type));
  if (dims < 1 || dims > 4) throw InvalidData(fmt::format("an idx file must have 1 to 4 dimensions, has {}", dims));
  Shape shape;
  for (unsigned d = 0; d < dims; ++d) {
    unsigned char p[4];
    reader.read(p, 4);
    shape.push_back(std::int64_t{p[0]} << 24 | std::int64_t{p[1]} << 16 | std::int64_t{p[2]} << 8 | p[3]);
  }
  return shape;
}

Tensor read(const std::string& path) {
  const FileHandle file(path);
  const std::int64_t most = most_bytes(file);
  GzipReader reader(path);
  const Shape shape = read_header(reader);
  std::int64_t count = 1;
  for (const std::int64_t d : shape) {
    if (__builtin_mul_overflow(count, d, &count) || count > most) {
      throw InvalidData(fmt::format("the idx header's shape {} needs more than the {} bytes that the file can hold", to_string(shape), most));
    }
  }
  Tensor t(DType::kU8, shape);
  reader.read(t.mutable_data(), count);
  reader.expect_end();
  return t;
}

}  // namespace

Tensor read_idx(const std::string& file) {
  return with_context([&] { return quote_whole(file); }, [&] { return read(file); });
}

}  // namespace tandem::io
