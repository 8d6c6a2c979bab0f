// `tandem devices`: what runs of this process can use.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/cpu/cpu_info.h"
#include "runtime/memory/memory.h"
#include "tools/command.h"

namespace tandem::cli {
namespace {

// What could be taken now without swapping, never above the limit of this process.
std::size_t available_memory(const CpuInfo& cpu) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kKey = "MemAvailable:";
    if (line.starts_with(kKey)) return std::min<std::size_t>(cpu.memory_bytes, std::stoull(line.substr(kKey.size())) * 1024);
  }
  return cpu.memory_bytes;
}

std::vector<std::string> extensions(const CpuInfo& cpu) {
  std::vector<std::string> names;
  if (cpu.avx2) names.push_back("AVX2");
  if (cpu.avx512) names.push_back("AVX-512");
  if (cpu.avx512_bf16) names.push_back("AVX512-BF16");
  if (cpu.amx_bf16) names.push_back("AMX-BF16");
  return names;
}

struct PrecisionRow {
  const char* name;
  const char* how;  // "native", "emulated" (right, slower), "no"
};
std::vector<PrecisionRow> precisions(const CpuInfo& cpu) {
  return {{"f32", "native"}, {"bf16x3", cpu.amx_bf16 ? "native" : "no"}, {"bf16", cpu.amx_bf16 ? "native" : "emulated"}};
}

std::string as_json(const CpuInfo& cpu) {
  nlohmann::ordered_json device = {{"device", "cpu"},
                                   {"ordinal", 0},
                                   {"name", cpu.model_name},
                                   {"cores_by_affinity", cpu.cores_by_affinity},
                                   {"cores_by_quota", cpu.cores_by_quota > 0 ? nlohmann::ordered_json(cpu.cores_by_quota) : nullptr},
                                   {"threads", cpu.default_threads()},
                                   {"memory_total", cpu.memory_bytes},
                                   {"memory_free", available_memory(cpu)},
                                   {"extensions", extensions(cpu)}};
  for (const PrecisionRow& p : precisions(cpu)) device["precisions"][p.name] = p.how;
  const nlohmann::ordered_json all = {{"devices", {device}}};
  return json_text(all);
}

std::string as_text(const CpuInfo& cpu) {
  std::vector<std::string> rows;
  for (const PrecisionRow& p : precisions(cpu)) rows.push_back(fmt::format("{} {}", p.name, p.how));
  const auto names = extensions(cpu);
  return fmt::format("cpu   {}\n", cpu.model_name) +
         fmt::format("      cores       {} by affinity, {} by quota; {} threads by default\n", cpu.cores_by_affinity,
                     cpu.cores_by_quota > 0 ? fmt::format("{:.2f}", cpu.cores_by_quota) : "unlimited", cpu.default_threads()) +
         fmt::format("      memory      {} in all, {} free\n", format_size(cpu.memory_bytes), format_size(available_memory(cpu))) +
         fmt::format("      extensions  {}\n", names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))) +
         fmt::format("      precision   {}\n", fmt::join(rows, ", ")) + "cuda  none: no CUDA plugin is loaded\n";
}

}  // namespace

Command devices_command() {
  auto json = std::make_shared<bool>(false);
  return {.name = "devices",
          .summary = "Lists the devices that runs can use, their memory and what each supports.",
          .example = "tandem devices\ntandem devices --json",
          .declare = [json](OptionSet& options) { options.flag("--json", *json, "print one JSON object"); },
          .run =
              [json](const Console&) {
                const CpuInfo cpu = CpuInfo::detect();
                print(*json ? as_json(cpu) : as_text(cpu));
                return 0;
              },
          .subcommands = {}};
}

}  // namespace tandem::cli
