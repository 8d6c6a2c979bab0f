// Matrix product on bf16 tiles with f32 sums: C = activation(A * B + bias + residual), for CPUs with AMX.
//
// parts = 1: A and B are bf16. parts = 3 ("bf16x3"): every f32 operand is the sum of three bf16 numbers h + m + l (24 bits), and the six
// largest of the nine partial products are added, smallest first: l*h, m*h, m*m, h*m, h*l, h*h. Every output is one chain that starts at the
// bias and runs over k in rising order, so its bits do not depend on how rows and panels are cut. Nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/cpu/activation_rows.h"
#include "runtime/cpu/cpu_info.h"

namespace tandem {

inline constexpr std::int64_t kAmxLine = 32;   // values of k in one tile row of A: 64 bytes
inline constexpr std::int64_t kAmxPanel = 32;  // outputs of one panel
inline constexpr std::int64_t kAmxRows = 32;   // rows computed at once
inline std::int64_t amx_lines(std::int64_t depth) { return (depth + kAmxLine - 1) / kAmxLine; }
inline std::int64_t amx_panels(std::int64_t outputs) { return (outputs + kAmxPanel - 1) / kAmxPanel; }
// bf16 elements of one panel of packed weights: [line][part][2 tiles of 16 outputs][16 pairs of k][16 outputs][2].
inline std::int64_t amx_panel_elements(std::int64_t depth, int parts) { return amx_lines(depth) * parts * kAmxLine * kAmxPanel; }
// Where weight (k, output % 32) of part p lies in its panel.
inline std::int64_t amx_index(std::int64_t k, std::int64_t output, int part, int parts) {
  return ((k / kAmxLine * parts + part) * 2 + output / 16) * 512 + k % kAmxLine / 2 * 32 + output % 16 * 2 + k % 2;
}
// Panels [first, last) of `packed` (64-byte aligned, zeroed by the callee) from load(k, output) -> float.
template <class Load>
void amx_pack(std::int64_t depth, std::int64_t outputs, int parts, std::int64_t first, std::int64_t last, BFloat16* packed, Load&& load) {
  const std::int64_t size = amx_panel_elements(depth, parts);
  for (std::int64_t p = first; p < last; ++p) {
    BFloat16* panel = packed + p * size;
    for (std::int64_t i = 0; i < size; ++i) panel[i] = BFloat16();
    for (std::int64_t o = 0; o < kAmxPanel && p * kAmxPanel + o < outputs; ++o) {
      for (std::int64_t k = 0; k < depth; ++k) {
        float rest = load(k, p * kAmxPanel + o);
        for (int part = 0; part < parts; ++part) {
          const BFloat16 piece(rest);
          panel[amx_index(k, o, part, parts)] = piece;
          rest -= static_cast<float>(piece);
        }
      }
    }
  }
}

struct AmxBlock {
  std::int64_t rows = 0, lines = 0;
  int parts = 1;
  // Part p of row r at a + p * part_stride + r * a_stride: `lines` * 32 values, zero past the depth. Rows up to the next multiple of 16 are
  // read (and must be finite). Everything 64-byte aligned.
  const BFloat16* a = nullptr;
  std::int64_t a_stride = 0, part_stride = 0;
  const BFloat16* packed = nullptr;  // panel 0
  std::int64_t outputs = 0, first_panel = 0, last_panel = 0;
  const float* bias = nullptr;  // `outputs` floats, or null
  RowExit exit;                 // row 0, output 0
};

using AmxProduct = void (*)(const AmxBlock&);
void amx_product(const AmxBlock&);           // needs CpuInfo::amx_bf16
void amx_product_emulated(const AmxBlock&);  // the same on tiles in software: for tests, on any machine
// Null where the CPU has no AMX and is not told to emulate it.
inline AmxProduct choose_amx(const CpuInfo& cpu) {
  if (cpu.emulate_amx) return amx_product_emulated;
  return cpu.amx_bf16 ? amx_product : nullptr;
}

}  // namespace tandem
