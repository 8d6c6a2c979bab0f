#include "runtime/cpu/product_rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "runtime/cpu/amx.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

TEST(ProductRows, TransposeAndGatherMoveEveryNumber) {
  for (const std::int64_t rows : {1, 7, 8, 19}) {
    for (const std::int64_t columns : {1, 4, 6, 37}) {
      const std::int64_t pitch = columns + 3, stride = rows + 2, width = 16, panels = (5 + columns + width - 1) / width;
      const Tensor from = random_f32({rows, pitch}, 1);
      std::vector<BFloat16> half;
      for (const float v : from.as<float>()) half.emplace_back(v);
      for (const DType type : {DType::kF32, DType::kBF16}) {
        const bool wide = type == DType::kF32;
        const void* source = wide ? static_cast<const void*>(from.data()) : half.data();
        const auto value = [&](std::int64_t r, std::int64_t c) {
          const auto i = static_cast<std::size_t>(r * pitch + c);
          return wide ? from.as<float>()[i] : static_cast<float>(half[i]);
        };
        std::vector<float> turned(static_cast<std::size_t>(columns * stride)), gathered(static_cast<std::size_t>(panels * rows * width), -1);
        transpose_rows(type, source, pitch, rows, columns, turned.data(), stride);
        std::vector<const void*> pointers;
        for (std::int64_t r = 0; r < rows; ++r)
          pointers.push_back(r == 3 ? nullptr : static_cast<const std::byte*>(source) + static_cast<std::size_t>(r * pitch) * size_of(type));
        gather_rows(type, pointers.data(), 1, rows, columns, 5, gathered.data(), width, rows * width);
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t c = 0; c < columns; ++c) {
            EXPECT_EQ(turned[static_cast<std::size_t>(c * stride + r)], value(r, c));
            const std::int64_t to = (5 + c) / width * rows * width + r * width + (5 + c) % width;
            EXPECT_EQ(gathered[static_cast<std::size_t>(to)], r == 3 ? 0 : value(r, c + 1));
          }
        }
      }
    }
  }
}

TEST(ProductRows, TilesAreThoseOfAmxPack) {
  for (const int parts : {1, 3}) {
    for (const std::int64_t depth : {1, 32, 45}) {
      Tensor rows = random_f32({depth, kAmxPanel}, 2);
      rows.as_mutable<float>()[3] = 1.00390625f;  // half way between two bf16 numbers
      if (parts == 1) rows.as_mutable<float>()[4] = std::numeric_limits<float>::quiet_NaN();
      const auto size = static_cast<std::size_t>(amx_panel_elements(depth, parts));
      std::vector<BFloat16> got(size), want(size);
      pack_tiles(rows.as<float>().data(), depth, parts, got.data());
      amx_pack(depth, kAmxPanel, parts, 0, 1, want.data(),
               [&](std::int64_t k, std::int64_t o) { return rows.as<float>()[static_cast<std::size_t>(k * kAmxPanel + o)]; });
      EXPECT_EQ(std::memcmp(got.data(), want.data(), size * sizeof(BFloat16)), 0) << parts << ' ' << depth;
    }
  }
}

}  // namespace
}  // namespace tandem::test
