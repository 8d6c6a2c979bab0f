#include "io/idx.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstring>
#include <memory>

#include "io/read_file.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{8} << 30;

// Reads a plain or gzipped file piece by piece.
class GzipReader {
 public:
  explicit GzipReader(const std::string& file) : file_(gzopen(file.c_str(), "rb"), gzclose) {
    if (!file_) throw InvalidData(fmt::format("{} cannot be opened", quoted(file)));
  }
  void read(void* to, std::int64_t bytes) {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      const int got = gzread(file_.get(), at, static_cast<unsigned>(std::min<std::int64_t>(bytes, 1 << 30)));
      if (got <= 0) throw InvalidData("the file is cut or damaged");
      at += got;
      bytes -= got;
    }
  }
  bool at_end() {
    char c;
    return gzread(file_.get(), &c, 1) == 0;
  }

 private:
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

std::int64_t big_endian(const unsigned char* p) { return std::int64_t{p[0]} << 24 | std::int64_t{p[1]} << 16 | std::int64_t{p[2]} << 8 | p[3]; }

}  // namespace

Tensor read_idx(const std::string& file) {
  return with_context([&] { return quoted(file); },
                      [&] {
                        read_file(file, kMaxBytes);  // regular, readable, not absurd
                        GzipReader reader(file);
                        unsigned char magic[4];
                        reader.read(magic, 4);
                        if (magic[0] != 0 || magic[1] != 0) throw InvalidData("not an idx file");
                        if (magic[2] != 8)
                          throw InvalidData(fmt::format("idx files of element type {:#04x} are not supported, only unsigned bytes (0x08)",
                                                        static_cast<unsigned>(magic[2])));
                        if (magic[3] < 1 || magic[3] > 4)
                          throw InvalidData(fmt::format("an idx file with {} dimensions is not supported", static_cast<unsigned>(magic[3])));
                        Shape shape;
                        std::int64_t count = 1;
                        for (int d = 0; d < magic[3]; ++d) {
                          unsigned char size[4];
                          reader.read(size, 4);
                          shape.push_back(big_endian(size));
                          if (__builtin_mul_overflow(count, shape.back(), &count) || count > kMaxBytes)
                            throw InvalidData(fmt::format("the idx header's shape {} is absurd", to_string(shape)));
                        }
                        // Memory grows with the data that is really there.
                        std::string data;
                        constexpr std::int64_t kPiece = std::int64_t{16} << 20;
                        while (static_cast<std::int64_t>(data.size()) < count) {
                          const std::size_t at = data.size();
                          const std::int64_t piece = std::min(kPiece, count - static_cast<std::int64_t>(at));
                          data.resize(at + static_cast<std::size_t>(piece));
                          reader.read(data.data() + at, piece);
                        }
                        if (!reader.at_end()) throw InvalidData("the file holds more data than its header says");
                        Tensor t(DType::kU8, shape);
                        if (count > 0) std::memcpy(t.mutable_data(), data.data(), data.size());
                        return t;
                      });
}

}  // namespace tandem::io
