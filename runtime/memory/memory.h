// Memory as small objects stacked on each other, MappedMemory at the bottom, LimitedMemory and CountedMemory above it. Plans ask the top of
// the stack for their arenas and packed weights; each layer can be tested over a fake one below it.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace tandem {

// Where large blocks come from. Thread-safe. Blocks are at least 64-byte aligned.
class MemoryResource {
 public:
  virtual ~MemoryResource() = default;
  // Throws OutOfMemory.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void deallocate(void* block, std::size_t bytes) noexcept = 0;
};

// Anonymous pages from the system: zeroed, given back at once when freed; large blocks ask for huge pages.
class MappedMemory final : public MemoryResource {
 public:
  void* allocate(std::size_t bytes) override;
  void deallocate(void* block, std::size_t bytes) noexcept override;
};

// Refuses what would take the sum of live blocks above the limit.
class LimitedMemory final : public MemoryResource {
 public:
  LimitedMemory(MemoryResource& below, std::size_t limit_bytes) : below_(below), limit_(limit_bytes) {}
  void* allocate(std::size_t bytes) override;
  void deallocate(void* block, std::size_t bytes) noexcept override;

 private:
  MemoryResource& below_;
  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
};

// Counts live and peak bytes.
class CountedMemory final : public MemoryResource {
 public:
  explicit CountedMemory(MemoryResource& below) : below_(below) {}
  void* allocate(std::size_t bytes) override;
  void deallocate(void* block, std::size_t bytes) noexcept override;
  std::size_t live_bytes() const { return live_.load(std::memory_order_relaxed); }
  std::size_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }

 private:
  MemoryResource& below_;
  std::atomic<std::size_t> live_{0}, peak_{0};
};

// One block, given back by the destructor. Movable.
class Buffer {
 public:
  Buffer() = default;
  Buffer(MemoryResource& from, std::size_t bytes)
      : from_(&from), data_(bytes ? static_cast<std::byte*>(from.allocate(bytes)) : nullptr), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { release(); }
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void release() noexcept;
  MemoryResource* from_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// What `--memory` asks for.
struct MemoryPolicy {
  enum class Kind { kGrow, kFraction, kLimit, kAll } kind = Kind::kGrow;
  double fraction = 1.0;  // of the smaller of physical memory and the cgroup's limit
  std::size_t limit_bytes = 0;
  // "grow", "fraction=0.4", "limit=8GiB", "all". Throws UsageError naming the value.
  static MemoryPolicy parse(const std::string& text);
  // The most this process may hold, in bytes of resident memory; 0: no limit.
  std::size_t limit(std::size_t machine_bytes) const;
};

std::size_t parse_size(const std::string& text);  // "8GiB", "512MB", "1000000" to bytes; throws UsageError
std::string format_size(std::size_t bytes);       // "1.5 GiB"

// Resident memory of this process, and its high-water mark, in bytes (/proc/self/status).
std::size_t resident_bytes();
std::size_t peak_resident_bytes();

}  // namespace tandem
