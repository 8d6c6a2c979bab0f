#include "io/npz.h"

#include <fmt/format.h>
#include <zip.h>

#include "io/expansion.h"
#include "io/file_handle.h"
#include "io/npy.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{64} << 30;

zip_t* open_zip(const std::string& path) {
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  throw InvalidData(fmt::format("{} is no .npz file: {}", quote_whole(path), text));
}

// Unpacked bytes of the entry, once its header is believable.
std::int64_t checked_size(const zip_stat_t& entry, std::int64_t archive_bytes) {
  constexpr zip_uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if ((entry.valid & kNeeded) != kNeeded) throw InvalidData("the archive does not say how large it is");
  if (entry.encryption_method != ZIP_EM_NONE) throw InvalidData("it is encrypted");
  if (entry.comp_method != ZIP_CM_STORE && entry.comp_method != ZIP_CM_DEFLATE)
    throw InvalidData(fmt::format("its compression method {} is not supported, only stored (0) and deflate (8)", entry.comp_method));
  if (entry.comp_size > static_cast<zip_uint64_t>(archive_bytes))
    throw InvalidData(fmt::format("it claims {} bytes of an archive that has {}", entry.comp_size, archive_bytes));
  const auto packed = static_cast<std::int64_t>(entry.comp_size);
  const std::int64_t most = std::min(kMaxBytes, entry.comp_method == ZIP_CM_STORE ? packed : expansion_limit(packed));
  if (entry.size > static_cast<zip_uint64_t>(most))
    throw InvalidData(fmt::format("it claims to unpack {} bytes to {}, more than the limit of {}", packed, entry.size, most));
  return static_cast<std::int64_t>(entry.size);
}

}  // namespace

NpzFile::NpzFile(const std::string& path) : path_(path), bytes_(FileHandle(path).size()), zip_(open_zip(path), zip_discard) {}

bool NpzFile::has(const std::string& name) const { return zip_name_locate(zip_.get(), (name + ".npy").c_str(), ZIP_FL_ENC_RAW) >= 0; }

Tensor NpzFile::read(const std::string& name) const {
  const auto where = [&] { return fmt::format("{}, array \"{}\"", quote_whole(path_), name); };
  return with_context(where, [&] {
    const zip_int64_t index = zip_name_locate(zip_.get(), (name + ".npy").c_str(), ZIP_FL_ENC_RAW);
    zip_stat_t entry;
    zip_stat_init(&entry);
    if (index < 0 || zip_stat_index(zip_.get(), static_cast<zip_uint64_t>(index), 0, &entry) != 0) throw InvalidData("there is no such array");
    const std::int64_t size = checked_size(entry, bytes_);
    const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(zip_fopen_index(zip_.get(), static_cast<zip_uint64_t>(index), 0), zip_fclose);
    if (!file) throw InvalidData(fmt::format("it cannot be read: {}", zip_strerror(zip_.get())));
    Tensor tensor = read_npy(size, [&](void* to, std::size_t bytes) {
      for (std::size_t at = 0; at < bytes;) {
        const zip_int64_t got = zip_fread(file.get(), static_cast<char*>(to) + at, bytes - at);
        if (got <= 0) throw InvalidData(fmt::format("it is cut or damaged: {}", got < 0 ? zip_file_strerror(file.get()) : "data is missing"));
        at += static_cast<std::size_t>(got);
      }
    });
    char more;  // reading past the end makes libzip compare the checksum
    const zip_int64_t rest = zip_fread(file.get(), &more, 1);
    if (rest != 0) throw InvalidData(rest < 0 ? "it is damaged: its checksum is wrong" : "it holds more than the archive says");
    return tensor;
  });
}

}  // namespace tandem::io
