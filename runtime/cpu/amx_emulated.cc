// Tiles in software, as the CPU's manual describes TDPBF16PS: pairs of bf16 products are added to an f32 sum one after the other. (The
// hardware flushes denormals and may fuse; results agree but for the last bits.)
#include <cstring>

#include "runtime/cpu/amx_product.h"

namespace tandem {
namespace {

struct SoftwareTiles {
  alignas(64) std::byte tile[8][16][64];
  void configure() { std::memset(tile, 0, sizeof tile); }
  void release() {}
  template <int kTile>
  void load(const void* from, std::int64_t bytes) {
    for (int r = 0; r < 16; ++r) std::memcpy(tile[kTile][r], static_cast<const std::byte*>(from) + r * bytes, 64);
  }
  template <int kTile>
  void store(void* to, std::int64_t bytes) {
    for (int r = 0; r < 16; ++r) std::memcpy(static_cast<std::byte*>(to) + r * bytes, tile[kTile][r], 64);
  }
  template <int kSum, int kRows, int kWeights>
  void multiply() {
    for (int r = 0; r < 16; ++r) {
      float sums[16];
      BFloat16 a[32];
      std::memcpy(sums, tile[kSum][r], 64);
      std::memcpy(a, tile[kRows][r], 64);
      for (int pair = 0; pair < 16; ++pair) {
        BFloat16 b[32];
        std::memcpy(b, tile[kWeights][pair], 64);
        for (int o = 0; o < 16; ++o) {
          sums[o] += static_cast<float>(a[2 * pair]) * static_cast<float>(b[2 * o]);
          sums[o] += static_cast<float>(a[2 * pair + 1]) * static_cast<float>(b[2 * o + 1]);
        }
      }
      std::memcpy(tile[kSum][r], sums, 64);
    }
  }
};

}  // namespace

void amx_product_emulated(const AmxBlock& g) { run_amx<SoftwareTiles>(g); }

}  // namespace tandem
