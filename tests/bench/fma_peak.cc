#include "tests/bench/fma_peak.h"

#include <chrono>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/fma_peak.cc"
#include <hwy/foreach_target.h>  // first: compiles this file once for each instruction set

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::test::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kSteps = 100000;

// Ten chains hide the latency of two units; values stay finite, starts differ so that no chain can be left out.
float chains(double* flops) {
  const hn::ScalableTag<float> d;
  const auto half = hn::Set(d, 0.5f);
  auto a = hn::Set(d, 1.0f);
  auto b = hn::Set(d, 2.0f);
  auto c = hn::Set(d, 3.0f);
  auto e = hn::Set(d, 4.0f);
  auto f = hn::Set(d, 5.0f);
  auto g = hn::Set(d, 6.0f);
  auto h = hn::Set(d, 7.0f);
  auto i = hn::Set(d, 8.0f);
  auto j = hn::Set(d, 9.0f);
  auto k = hn::Set(d, 10.0f);
  for (int s = 0; s < kSteps; ++s) {
    a = hn::MulAdd(a, half, half);
    b = hn::MulAdd(b, half, half);
    c = hn::MulAdd(c, half, half);
    e = hn::MulAdd(e, half, half);
    f = hn::MulAdd(f, half, half);
    g = hn::MulAdd(g, half, half);
    h = hn::MulAdd(h, half, half);
    i = hn::MulAdd(i, half, half);
    j = hn::MulAdd(j, half, half);
    k = hn::MulAdd(k, half, half);
  }
  *flops = 20.0 * kSteps * static_cast<double>(hn::Lanes(d));
  return hn::GetLane(hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(hn::Add(h, i), hn::Add(j, k)))));
}

}  // namespace tandem::test::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::test {
HWY_EXPORT(chains);

double fma_peak() {
  double flops = 0;
  const auto start = std::chrono::steady_clock::now();
  volatile float kept = HWY_DYNAMIC_DISPATCH(chains)(&flops);
  (void)kept;
  return flops / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace tandem::test
#endif
