#include "importer/external_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "importer/sha1.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem {
namespace {

constexpr std::size_t kLongestLocation = 4096;
constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr int kOpenFile = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;  // non-blocking: a pipe must not hang us

struct Entries {
  std::string location, checksum;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

std::uint64_t parse_count(std::string_view key, std::string_view text) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw InvalidModel(fmt::format("external data: {} must be a whole number of bytes from 0 to 2^63-1, found {}", key, quote(text)));
  return static_cast<std::uint64_t>(value);
}

Entries parse_entries(const TensorFields& fields) {
  Entries e;
  std::vector<std::string_view> seen;
  for (const auto& [key, value] : fields.external_data) {
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) throw InvalidModel(fmt::format("external data: key {} stands twice", quote(key)));
    seen.push_back(key);
    if (key == "location")
      e.location = value;
    else if (key == "offset")
      e.offset = parse_count("offset", value);
    else if (key == "length")
      e.length = parse_count("length", value);
    else if (key == "checksum")
      e.checksum = value;
    else
      throw InvalidModel(fmt::format("external data: unknown key {}; location, offset, length and checksum are known", quote(key)));
  }
  return e;
}

// The components of a location, checked before the file system is touched.
std::vector<std::string> components(const std::string& location) {
  const auto refuse = [&](const char* why) -> void { throw InvalidModel(fmt::format("external data location {} {}", quote(location), why)); };
  if (location.empty()) refuse("is empty");
  if (location.size() > kLongestLocation) refuse("is longer than 4096 bytes");
  if (location.find('\0') != std::string::npos) refuse("holds a NUL byte");
  if (location.find('\\') != std::string::npos) refuse("holds a backslash");
  if (location.front() == '/') refuse("is an absolute path; it must lie beside the model");
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= location.size();) {
    const std::size_t to = std::min(location.find('/', from), location.size());
    const std::string part = location.substr(from, to - from);
    if (part == "..") refuse("leaves the model's folder by \"..\"");
    if (!part.empty() && part != ".") parts.push_back(part);
    from = to + 1;
  }
  if (parts.empty() || location.back() == '/') refuse("names no file");
  return parts;
}

// Opens a file beneath `root` component by component; errno says why not.
FileHandle open_beneath(const std::filesystem::path& root, const std::vector<std::string>& parts) {
  FileHandle at(::open(root.empty() ? "." : root.c_str(), kOpenFolder));
  for (std::size_t i = 0; at && i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    at = FileHandle(::openat(at.get(), parts[i].c_str(), last ? kOpenFile : kOpenFolder | O_NOFOLLOW));
  }
  return at;
}

// A symlink in the model's folder whose target lies directly in the model's real folder: how download caches store files.
FileHandle open_cached(const std::filesystem::path& link, const std::filesystem::path& second_root) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(link, error);
  if (error || target.parent_path() != second_root) {
    errno = ELOOP;
    return FileHandle();
  }
  return open_beneath(second_root, {target.filename().string()});
}

[[noreturn]] void cannot_open(const std::string& location, int error) {
  if (error == ENOENT) throw InvalidModel(fmt::format("external data file {} is missing; it must lie beside the model", quote(location)));
  if (error == ELOOP || error == ENOTDIR)
    throw InvalidModel(
        fmt::format("external data file {} is, or lies behind, a symlink; it must be a plain file beneath the model's folder", quote(location)));
  throw InvalidModel(fmt::format("external data file {} cannot be opened: {}", quote(location), std::strerror(error)));
}

}  // namespace

ExternalData::ExternalData(std::filesystem::path folder, std::filesystem::path second_root, bool allow_hard_links)
    : folder_(std::move(folder)), second_root_(std::move(second_root)), allow_hard_links_(allow_hard_links) {}

ExternalData ExternalData::beside(const std::filesystem::path& model, bool allow_hard_links) {
  std::filesystem::path folder = model.parent_path(), second;
  if (folder.empty()) folder = ".";
  std::error_code error;
  if (std::filesystem::is_symlink(model, error)) {
    second = std::filesystem::canonical(model, error).parent_path();
    if (error) second.clear();
  }
  return ExternalData(folder, second, allow_hard_links);
}

std::vector<std::string> ExternalData::paths() const {
  std::vector<std::string> paths;
  for (const auto& [location, file] : files_) paths.push_back(file.path);
  return paths;
}

ExternalData::File& ExternalData::file(const std::string& location) {
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second;
  const auto parts = components(location);
  if (folder_.empty()) throw InvalidModel(fmt::format("external data file {}: a model given as bytes has no folder to look in", quote(location)));
  FileHandle handle = open_beneath(folder_, parts);
  int error = errno;
  std::filesystem::path path = folder_ / location;
  if (!handle && !second_root_.empty()) {
    handle = error == ELOOP ? open_cached(path, second_root_) : open_beneath(second_root_, parts);
    if (error != ELOOP) path = second_root_ / location;
    error = errno;
  }
  if (!handle) cannot_open(location, error);
  struct stat info {};
  if (::fstat(handle.get(), &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink > 1 && !allow_hard_links_) {
    throw InvalidModel(fmt::format("external data file {} has {} hard links, so it may be a file from elsewhere; copy it, or allow hard links",
                                   quote(location), info.st_nlink));
  }
  return files_.emplace(location, File{MappedFile::map(handle, location, std::numeric_limits<std::int64_t>::max()), {}, path.string()}).first->second;
}

Tensor ExternalData::load(const TensorFields& fields) {
  return with_context(
      [&] { return fmt::format("tensor {}", quote(fields.name)); },
      [&] {
        const std::uint64_t wanted = tensor_bytes(fields);
        const Entries entries = parse_entries(fields);
        if (entries.length && *entries.length != wanted) {
          throw InvalidModel(fmt::format("external data: length is {}, a {} tensor of shape {} needs {} bytes", *entries.length,
                                         name_of(dtype_from_onnx(fields.data_type)), to_string(fields.dims), wanted));
        }
        File& source = file(entries.location);
        const std::uint64_t size = source.mapping->bytes().size();
        if (entries.offset > size || wanted > size - entries.offset) {
          throw InvalidModel(fmt::format("external data: {} bytes from offset {} reach past the end of {}, which has {} bytes", wanted,
                                         entries.offset, quote(entries.location), size));
        }
        if (!entries.checksum.empty()) {
          if (source.checksum.empty()) {
            source.mapping->check_size();
            source.checksum = sha1_hex(source.mapping->bytes());
          }
          std::string stated = entries.checksum;
          std::transform(stated.begin(), stated.end(), stated.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
          if (stated != source.checksum) {
            throw InvalidModel(fmt::format("external data: {} does not match its checksum (SHA-1 {}, the model says {})", quote(entries.location),
                                           source.checksum, quote(entries.checksum)));
          }
        }
        const auto bytes = source.mapping->bytes().subspan(static_cast<std::size_t>(entries.offset), static_cast<std::size_t>(wanted));
        return tensor_from_raw(fields, bytes, source.mapping);
      });
}

}  // namespace tandem
