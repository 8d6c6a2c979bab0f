#include "runtime/memory/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "runtime/base/error.h"

namespace tandem {
namespace {

constexpr std::size_t kPage = 4096, kHugePage = std::size_t{2} << 20;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::size_t status_bytes(const char* key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::strtoull(line.c_str() + std::strlen(key), nullptr, 10) * 1024;
  }
  return 0;
}

}  // namespace

void* MappedMemory::allocate(std::size_t bytes) {
  const std::size_t wanted = whole_pages(bytes), spare = bytes >= kHugePage ? kHugePage - kPage : 0;
  void* mapped = mmap(nullptr, wanted + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw OutOfMemory(fmt::format("the system has no {} left", format_size(bytes)), bytes);
  if (spare == 0) return mapped;
  // Huge pages begin at their own multiples; what lies before and behind goes back.
  auto* begin = static_cast<std::byte*>(mapped);
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before > 0) munmap(begin, before);
  if (spare > before) munmap(begin + before + wanted, spare - before);
  madvise(begin + before, wanted, MADV_HUGEPAGE);
  return begin + before;
}

void MappedMemory::deallocate(void* block, std::size_t bytes) noexcept { munmap(block, whole_pages(bytes)); }

void* LimitedMemory::allocate(std::size_t bytes) {
  const std::size_t before = used_.fetch_add(bytes);
  try {
    if (before + bytes > limit_) {
      throw OutOfMemory(fmt::format("{} more, with {} in use, exceed the limit of {}", format_size(bytes), format_size(before), format_size(limit_)),
                        bytes, before, limit_);
    }
    return below_.allocate(bytes);
  } catch (...) {
    used_.fetch_sub(bytes);
    throw;
  }
}

void LimitedMemory::deallocate(void* block, std::size_t bytes) noexcept {
  below_.deallocate(block, bytes);
  used_.fetch_sub(bytes);
}

void* CountedMemory::allocate(std::size_t bytes) {
  void* p = below_.allocate(bytes);
  const std::size_t now = live_.fetch_add(bytes) + bytes;
  for (std::size_t peak = peak_.load(); now > peak && !peak_.compare_exchange_weak(peak, now);) {
  }
  return p;
}

void CountedMemory::deallocate(void* block, std::size_t bytes) noexcept {
  below_.deallocate(block, bytes);
  live_.fetch_sub(bytes);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    release();
    from_ = std::exchange(other.from_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Buffer::release() noexcept {
  if (data_) from_->deallocate(data_, bytes_);
  data_ = nullptr;
}

MemoryPolicy MemoryPolicy::parse(const std::string& text) {
  MemoryPolicy policy;
  if (text == "grow") return policy;
  if (text == "all") {
    policy.kind = Kind::kAll;
    return policy;
  }
  if (text.starts_with("fraction=")) {
    const std::string number = text.substr(9);
    char* end = nullptr;
    policy.kind = Kind::kFraction;
    policy.fraction = std::strtod(number.c_str(), &end);
    if (number.empty() || *end || !(policy.fraction > 0 && policy.fraction <= 1)) {
      throw UsageError(fmt::format("expected a fraction above 0 and up to 1, found \"{}\"", number));
    }
    return policy;
  }
  if (text.starts_with("limit=")) {
    policy.kind = Kind::kLimit;
    policy.limit_bytes = parse_size(text.substr(6));
    return policy;
  }
  throw UsageError(fmt::format("expected grow, fraction=F, limit=SIZE or all, found \"{}\"", text));
}

std::size_t MemoryPolicy::limit(std::size_t machine_bytes) const {
  switch (kind) {
    case Kind::kFraction:
      return static_cast<std::size_t>(std::floor(fraction * static_cast<double>(machine_bytes)));
    case Kind::kLimit:
      return limit_bytes;
    case Kind::kAll:
      return machine_bytes;
    case Kind::kGrow:
      break;
  }
  return 0;
}

std::size_t parse_size(const std::string& text) {
  struct Unit {
    const char* name;
    double factor;
  };
  static constexpr double kKi = 1024.0;
  static constexpr Unit kUnits[] = {{"", 1},
                                    {"B", 1},
                                    {"k", 1e3},
                                    {"K", 1e3},
                                    {"kB", 1e3},
                                    {"KB", 1e3},
                                    {"M", 1e6},
                                    {"MB", 1e6},
                                    {"G", 1e9},
                                    {"GB", 1e9},
                                    {"T", 1e12},
                                    {"TB", 1e12},
                                    {"KiB", kKi},
                                    {"MiB", kKi * kKi},
                                    {"GiB", kKi * kKi * kKi},
                                    {"TiB", kKi * kKi * kKi * kKi}};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const bool has_number = end != text.c_str();
  while (*end == ' ') ++end;
  for (const Unit& unit : kUnits) {
    if (has_number && std::strcmp(end, unit.name) == 0 && number >= 0 && number * unit.factor < 1e18)
      return static_cast<std::size_t>(number * unit.factor);
  }
  throw UsageError(fmt::format("expected a size such as 8GiB, 512MB or 1000000, found \"{}\"", text));
}

std::string format_size(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  int u = 0;
  for (; value >= 1024 && u < 3; ++u) value /= 1024;
  return fmt::format("{:.1f} {}", value, units[u]);
}

std::size_t resident_bytes() { return status_bytes("VmRSS:"); }
std::size_t peak_resident_bytes() { return status_bytes("VmHWM:"); }

}  // namespace tandem
