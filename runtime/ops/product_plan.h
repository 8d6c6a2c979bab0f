// Which kernel a product of gathered rows runs on: f32 multiply-adds, or AMX tiles (bf16, and bf16x3 for f32 data).
#pragma once

#include "runtime/cpu/amx.h"
#include "runtime/cpu/gemm.h"
#include "runtime/ops/op.h"

namespace tandem {

// Bytes rounded up to whole cache lines.
inline std::size_t whole_lines(std::int64_t bytes) { return static_cast<std::size_t>((bytes + 63) / 64 * 64); }

struct ProductPlan {
  AmxProduct amx = nullptr;                             // null: gemm_run
  int parts = 1;                                        // 3: bf16x3
  bool rounded = false;                                 // weights are rounded to bf16 values
  std::int64_t depth = 0, stride = 0, part_stride = 0;  // of A on tiles, in elements

  // `type`: of the activations. At most `rows` rows at a time.
  static ProductPlan make(const CpuContext&, DType type, std::int64_t depth, std::int64_t rows);

  std::int64_t panel_width() const { return amx ? kAmxPanel : gemm_panel_width(); }
  std::int64_t tile_rows() const { return amx ? kAmxRows : gemm_tile_rows(); }
  std::size_t packed_bytes(std::int64_t outputs) const;
  std::string key() const;   // names the packed layout
  std::string name() const;  // for Kernel::implementation
  // Scratch for A on tiles, 64-byte aligned.
  std::size_t scratch_bytes() const { return static_cast<std::size_t>(amx ? part_stride * parts * 2 : 0); }
  std::int64_t panels(std::int64_t outputs) const { return amx ? amx_panels(outputs) : gemm_panels(outputs); }
  // Panels [first, last) of the packed weights `to` (panel 0) from load(k, output) -> float.
  template <class Load>
  void pack_panels(std::int64_t outputs, std::int64_t first, std::int64_t last, std::byte* to, Load&& load) const {
    if (amx) return amx_pack(depth, outputs, parts, first, last, reinterpret_cast<BFloat16*>(to), load);
    const auto value = [&](std::int64_t k, std::int64_t o) { return rounded ? static_cast<float>(BFloat16(load(k, o))) : load(k, o); };
    gemm_pack(depth, outputs, first, last, reinterpret_cast<float*>(to), value);
  }
  template <class Load>
  void pack(std::int64_t outputs, std::byte* to, Load&& load) const {
    pack_panels(outputs, 0, panels(outputs), to, load);
  }
  // `g` as gemm_run takes it (for AMX: rows by stride, no table), but for the packed weights. Panels are of panel_width().
  void run(GemmBlock g, const void* packed, std::byte* scratch) const;
};

}  // namespace tandem
