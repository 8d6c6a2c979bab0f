// The tile instructions of the CPU. Runs only where CpuInfo::amx_bf16 says that the CPU and the system allow it.
#include "runtime/cpu/amx_product.h"

namespace tandem {
namespace {

struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileShapes) == 64);

// Written as assembly: gcc 12's intrinsics take tile numbers as text only, and do not say that they read and write memory.
struct CpuTiles {
  void configure() {
    const TileShapes shapes;
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes) : "memory");
  }
  void release() { __asm__ volatile("tilerelease"); }
  template <int kTile>
  void load(const void* from, std::int64_t bytes) {
    __asm__ volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(kTile), "r"(from), "r"(bytes) : "memory");
  }
  template <int kTile>
  void store(void* to, std::int64_t bytes) {
    __asm__ volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(kTile), "r"(to), "r"(bytes) : "memory");
  }
  template <int kSum, int kRows, int kWeights>
  void multiply() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kRows), "i"(kWeights));
  }
};

}  // namespace

void amx_product(const AmxBlock& g) { run_amx<CpuTiles>(g); }

}  // namespace tandem
