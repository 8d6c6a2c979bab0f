// The AMX product as a template over the tile instructions: amx.cc has the CPU's, amx_emulated.cc tiles in memory.
//
// Tiles: configure(), release(); load<t>(address, bytes between rows), store<t>(...), multiply<c, a, b>() with c += a * b in bf16 pairs.
// Tiles 0 to 3 hold 2 x 2 blocks of 16 sums, 4 and 5 rows of A, 6 and 7 weights.
#pragma once

#include <algorithm>

#include "runtime/cpu/amx.h"

namespace tandem {

template <class Tiles, bool kTwo>
struct AmxKernel {
  Tiles& tiles;
  const AmxBlock& g;

  void multiply() {
    tiles.template multiply<0, 4, 6>();
    tiles.template multiply<1, 4, 7>();
    if constexpr (kTwo) {
      tiles.template multiply<2, 5, 6>();
      tiles.template multiply<3, 5, 7>();
    }
  }
  void load_rows(const BFloat16* a, int part) {
    const std::int64_t bytes = g.a_stride * 2;
    tiles.template load<4>(a + part * g.part_stride, bytes);
    if constexpr (kTwo) tiles.template load<5>(a + part * g.part_stride + 16 * g.a_stride, bytes);
  }
  void load_weights(const BFloat16* b, int part) {
    tiles.template load<6>(b + part * 1024, 64);
    tiles.template load<7>(b + part * 1024 + 512, 64);
  }
  void step(const BFloat16* a, const BFloat16* b) {
    load_weights(b, 0);
    if (g.parts == 1) {
      load_rows(a, 0);
      return multiply();
    }
    load_rows(a, 2);
    multiply();
    load_rows(a, 1);
    multiply();
    load_weights(b, 1);
    multiply();
    load_rows(a, 0);
    multiply();
    load_weights(b, 2);
    multiply();
    load_weights(b, 0);
    multiply();
  }
  // 16 or 32 rows of A against one panel; sums are rows of 32.
  void run(const BFloat16* a, const BFloat16* b, const float* bias, float* sums) {
    tiles.template load<0>(bias, 0);  // stride 0: the bias in every row
    tiles.template load<1>(bias + 16, 0);
    if constexpr (kTwo) {
      tiles.template load<2>(bias, 0);
      tiles.template load<3>(bias + 16, 0);
    }
    for (std::int64_t k = 0; k < g.lines; ++k, a += kAmxLine, b += g.parts * 1024) step(a, b);
    tiles.template store<0>(sums, 128);
    tiles.template store<1>(sums + 16, 128);
    if constexpr (kTwo) {
      tiles.template store<2>(sums + 512, 128);
      tiles.template store<3>(sums + 528, 128);
    }
  }
};

template <class Tiles>
void run_amx(const AmxBlock& g) {
  alignas(64) float sums[kAmxRows * kAmxPanel], bias[kAmxPanel];
  const auto unit = static_cast<std::int64_t>(size_of(g.exit.type));
  Tiles tiles;
  tiles.configure();
  for (std::int64_t p = g.first_panel; p < g.last_panel; ++p) {
    const std::int64_t output = p * kAmxPanel, count = std::min(kAmxPanel, g.outputs - output);
    std::fill(bias, bias + kAmxPanel, 0.0f);
    if (g.bias) std::copy_n(g.bias + output, count, bias);
    const BFloat16* b = g.packed + p * g.lines * g.parts * 1024;
    for (std::int64_t row = 0; row < g.rows; row += kAmxRows) {
      const std::int64_t rows = std::min(kAmxRows, g.rows - row);
      const BFloat16* a = g.a + row * g.a_stride;
      if (rows > 16)
        AmxKernel<Tiles, true>{tiles, g}.run(a, b, bias, sums);
      else
        AmxKernel<Tiles, false>{tiles, g}.run(a, b, bias, sums);
      RowExit exit = g.exit;
      exit.c = static_cast<std::byte*>(exit.c) + (row * exit.c_stride + output) * unit;
      if (exit.residual) exit.residual = static_cast<const std::byte*>(exit.residual) + (row * exit.residual_stride + output) * unit;
      finish_rows(exit, sums, kAmxPanel, rows, count);
    }
  }
  tiles.release();
}

}  // namespace tandem
