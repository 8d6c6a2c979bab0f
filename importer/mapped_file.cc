#include "importer/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem {

std::shared_ptr<const MappedFile> MappedFile::map(const FileHandle& handle, const std::string& name, std::uint64_t max_bytes) {
  struct stat info {};
  if (::fstat(handle.get(), &info) != 0) throw InvalidModel(fmt::format("{}: {}", quote(name), std::strerror(errno)));
  if (!S_ISREG(info.st_mode)) throw InvalidModel(fmt::format("{} is not a regular file", quote(name)));
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > max_bytes) {
    throw InvalidModel(fmt::format("{} has {} bytes, more than the {} that one model file may have; export the weights as external data", quote(name),
                                   size, max_bytes));
  }
  const void* data = nullptr;
  if (size > 0) {
    data = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_PRIVATE, handle.get(), 0);
    if (data == MAP_FAILED) throw InvalidModel(fmt::format("{} cannot be mapped: {}", quote(name), std::strerror(errno)));
  }
  FileHandle kept(::fcntl(handle.get(), F_DUPFD_CLOEXEC, 0));
  return std::shared_ptr<const MappedFile>(new MappedFile(std::move(kept), name, data, static_cast<std::size_t>(size)));
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& file, std::uint64_t max_bytes) {
  const FileHandle handle(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!handle) throw InvalidData(fmt::format("{} cannot be opened: {}", quote(file.string()), std::strerror(errno)));
  return map(handle, file.string(), max_bytes);
}

void MappedFile::check_size() const {
  struct stat info {};
  if (!file_ || ::fstat(file_.get(), &info) != 0 || static_cast<std::uint64_t>(info.st_size) >= size_) return;
  throw InvalidModel(fmt::format("{} was made shorter while it was in use: {} bytes, {} when it was opened", quote(name_), info.st_size, size_));
}

void MappedFile::let_go(wire::Bytes part) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)), address = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t begin = (address + page - 1) / page * page, end = (address + part.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<void*>(data_), size_);
}

}  // namespace tandem
