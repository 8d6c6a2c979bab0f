// What this machine's CPU can do and how much of it this process may use. Read once in tools/ and passed on.
#pragma once

#include <string>

namespace tandem {

struct CpuInfo {
  bool avx2 = false, avx512 = false, avx512_bf16 = false, amx_bf16 = false;
  bool emulate_amx = false;      // never detected: tests run the AMX kernels on tiles in software
  int cores_by_affinity = 1;     // sched_getaffinity
  double cores_by_quota = 0;     // cgroup cpu quota in cores; 0: none
  std::size_t memory_bytes = 0;  // the smaller of physical memory and the cgroup's limit
  std::string model_name;
  // Threads that make sense by default: the smaller of affinity and quota, at least 1.
  int default_threads() const;
  static CpuInfo detect();  // asks for AMX permission (arch_prctl) where the CPU has it
};

}  // namespace tandem
