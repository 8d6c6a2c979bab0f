#include "runtime/cpu/cpu_info.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>

namespace tandem {
namespace {

std::uint64_t enabled_state() {  // XCR0: what the operating system saves
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

bool permit_amx() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

void detect_isa(CpuInfo& info) {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return;
  const bool fma = c & bit_FMA;
  const std::uint64_t state = enabled_state();
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
  const std::uint32_t max_subleaf = a, ebx = b, edx = d;
  info.avx2 = fma && (ebx & bit_AVX2) && (state & 0x6) == 0x6;
  constexpr std::uint32_t kAvx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  info.avx512 = info.avx2 && (ebx & kAvx512) == kAvx512 && (state & 0xe6) == 0xe6;
  if (info.avx512 && max_subleaf >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) info.avx512_bf16 = a & (1u << 5);
  constexpr std::uint32_t kAmxTile = 1u << 24, kAmxBf16 = 1u << 22;
  info.amx_bf16 = info.avx512_bf16 && (edx & kAmxTile) && (edx & kAmxBf16) && (state & 0x60000) == 0x60000 && permit_amx();
}

// First word of a cgroup or proc file; empty when it is not there.
std::string first_word(const char* path, std::string* second = nullptr) {
  std::ifstream file(path);
  std::string word, next;
  file >> word >> next;
  if (second) *second = next;
  return word;
}

double cgroup_quota() {
  std::string period, quota = first_word("/sys/fs/cgroup/cpu.max", &period);
  if (quota.empty()) {
    quota = first_word("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    period = first_word("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  }
  const double q = std::atof(quota.c_str()), p = std::atof(period.c_str());
  return q > 0 && p > 0 ? q / p : 0;
}

std::size_t memory_limit() {
  std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const std::string word = first_word(path);
    if (!word.empty() && word[0] >= '0' && word[0] <= '9') bytes = std::min<std::size_t>(bytes, std::strtoull(word.c_str(), nullptr, 10));
  }
  return bytes;
}

std::string read_model_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

int CpuInfo::default_threads() const {
  const int by_quota = cores_by_quota > 0 ? static_cast<int>(std::ceil(cores_by_quota)) : cores_by_affinity;
  return std::max(1, std::min(cores_by_affinity, by_quota));
}

CpuInfo CpuInfo::detect() {
  CpuInfo info;
  detect_isa(info);
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) info.cores_by_affinity = CPU_COUNT(&set);
  info.cores_by_quota = cgroup_quota();
  info.memory_bytes = memory_limit();
  info.model_name = read_model_name();
  return info;
}

}  // namespace tandem
