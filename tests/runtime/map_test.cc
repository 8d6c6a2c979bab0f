#include "runtime/cpu/map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "runtime/plan/reorder.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

void sub_body(const void* const* in, void* out, std::int64_t n) {
  const auto *a = static_cast<const float*>(in[0]), *b = static_cast<const float*>(in[2]);
  for (std::int64_t i = 0; i < n; ++i) static_cast<float*>(out)[i] = a[i] - b[i];
}

// Values of `shape` in memory as `desc` says.
std::vector<float> laid_out(const TensorDesc& desc, const Tensor& plain) {
  std::vector<float> memory(desc.bytes() / sizeof(float) + 1, 77.0f);
  reorder({DType::kF32, plain.shape()}, plain.data(), desc, memory.data());
  return memory;
}

// a - b through map_kernel, operand 1 absent; returns the plain result.
Tensor subtract(const TensorDesc& out, const TensorDesc& a, const Tensor& at, const TensorDesc& b, const Tensor& bt, std::int64_t task) {
  const auto am = laid_out(a, at), bm = laid_out(b, bt);
  std::vector<float> om(out.bytes() / sizeof(float) + 1, NAN);
  const Kernel k = map_kernel("test", out, {a, {}, b}, sub_body, task);
  Tensor scratch(DType::kU8, {static_cast<std::int64_t>(k.scratch_bytes)});
  const void* in[] = {am.data(), nullptr, bm.data()};
  void* outs[] = {om.data()};
  for (int t = k.stages[0].tasks; t-- > 0;) k.stages[0].run({in, outs, nullptr, static_cast<std::byte*>(scratch.mutable_data()), nullptr}, t);
  for (std::size_t i = 0; i + 1 < om.size(); ++i) EXPECT_TRUE(std::isfinite(om[i])) << "memory not written at " << i;
  EXPECT_TRUE(std::isnan(om.back()));
  Tensor plain(DType::kF32, out.shape);
  reorder(out, om.data(), {DType::kF32, out.shape}, plain.mutable_data());
  return plain;
}

TEST(Map, AllLayoutsBroadcastsAndCutsAgree) {
  for (const std::int64_t channels : {1, 3, 80}) {
    const Shape shape{2, channels, 7, 9};
    const Tensor a = random_f32(shape, 1);
    for (const Shape& other : {shape, Shape{1, channels, 1, 1}, Shape{}, Shape{9}, Shape{2, 1, 7, 1}}) {
      const Tensor b = random_f32(other, 2);
      Tensor want(DType::kF32, shape);
      const auto steps = broadcast_strides({DType::kF32, other}, shape), own = row_major_strides(shape);
      for (std::int64_t i = 0; i < want.size(); ++i) {
        std::int64_t at = 0;
        for (std::size_t d = 0; d < 4; ++d) at += i / own[d] % shape[d] * steps[d];
        want.as_mutable<float>()[static_cast<std::size_t>(i)] =
            a.as<float>()[static_cast<std::size_t>(i)] - b.as<float>()[static_cast<std::size_t>(at)];
      }
      const TensorDesc plain{DType::kF32, shape}, dense{DType::kF32, shape, Layout::kChannelsLast, channels},
          gaps{DType::kF32, shape, Layout::kChannelsLast, channels + 3}, bd{DType::kF32, other};
      for (const auto& from : {plain, dense, gaps}) {
        for (const auto& to : {plain, dense, gaps}) {
          for (const std::int64_t task : {1000000, 700, 33}) expect_close(subtract(to, from, a, bd, b, task), want, 0, 0);
        }
      }
    }
  }
}

TEST(Map, ZeroGapsTouchesOnlyGaps) {
  const TensorDesc d{DType::kI32, {1, 2, 1, 3}, Layout::kChannelsLast, 4};
  std::vector<std::int32_t> v(12, 9);
  zero_gaps(d, v.data(), 0, 3);  // the first pixel and half of the second
  EXPECT_EQ(v, (std::vector<std::int32_t>{9, 9, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9}));
  zero_gaps(d, v.data(), 3, 6);
  EXPECT_EQ(v, (std::vector<std::int32_t>{9, 9, 0, 0, 9, 9, 0, 0, 9, 9, 0, 0}));
}

}  // namespace
}  // namespace tandem::test
