// Small versions of the benchmarks' networks: output bits do not depend on how a run is set up, in any precision, with passes and without.
#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "parallel/replica_group.h"
#include "runtime/base/error.h"
#include "tests/support/bench_networks.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

constexpr std::int64_t kBatch = 5;

struct Setting {
  int threads, replicas;
  SplitRule split;
  bool copies;
};
// Every pair of values of two columns occurs.
constexpr Setting kSettings[] = {
    {1, 1, SplitRule::kBalanced, true}, {1, 2, SplitRule::kKeras, false},   {1, 3, SplitRule::kBalanced, false},
    {2, 1, SplitRule::kKeras, false},   {2, 2, SplitRule::kBalanced, true}, {2, 3, SplitRule::kKeras, true},
};

Tensor first_rows(const Tensor& t, std::int64_t count) {
  Shape shape = t.shape();
  shape[0] = count;
  Tensor out(t.dtype(), shape);
  std::memcpy(out.mutable_data(), t.data(), out.bytes());
  return out;
}

std::vector<Tensor> outputs(const Graph& graph, const PlanOptions& plan, const Setting& s, const Tensor& images) {
  TaskPool pool(s.threads);
  CpuInfo cpu = CpuInfo::detect();
  cpu.emulate_amx = plan.precision == Precision::kBF16x3;
  const GroupOptions options{.replicas = s.replicas, .plan = plan, .weights_per_replica = s.copies, .split = s.split};
  ReplicaGroup group(std::make_shared<const Graph>(graph), options, pool, cpu);
  std::vector<Tensor> of;
  for (const std::int64_t batch : {kBatch, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}})
    of.push_back(group.run({first_rows(images, batch)})[0]);
  return of;
}

void expect_results(const Tensor& t) {
  const auto v = t.to_doubles();
  const std::size_t classes = v.size() / kBatch;
  for (std::size_t i = 0; i < v.size(); i += classes) {
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += v[i + c];
    EXPECT_NEAR(sum, 1, 1e-5);
    if (i > 0) {
      EXPECT_NE(v[i], v[0]);
    }
  }
}

void check(const BenchNetwork& net, Precision precision, std::span<const Setting> settings) {
  Shape shape = net.image;
  shape.insert(shape.begin(), kBatch);
  const Tensor images = random_f32(shape, 7);
  Tensor of_passes[2];
  for (const bool passes : {false, true}) {
    const PlanOptions plan{.precision = precision, .passes = passes};
    const Tensor want = outputs(net.graph, plan, {1, 1, SplitRule::kBalanced, false}, images)[0];
    of_passes[passes] = want;
    expect_results(want);
    for (const Setting& s : settings) {
      for (const Tensor& got : outputs(net.graph, plan, s, images)) {
        EXPECT_EQ(std::memcmp(got.data(), want.data(), got.bytes()), 0)
            << net.name << (passes ? " with" : " without") << " passes, batch " << got.shape()[0] << ", " << s.threads << " threads, " << s.replicas
            << " devices, " << (s.copies ? "a copy each" : "one copy");
      }
    }
  }
  if (precision != Precision::kBF16) expect_close(of_passes[1], of_passes[0], 1e-3, 1e-5);
}

// Sanitizer builds have scalar kernels, a hundred times slower: they watch threads and memory on the smallest network, the others compare all.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kFirstNetwork = 2;
const std::span<const Setting> kChosen = std::span(kSettings).last(3);
#else
constexpr std::size_t kFirstNetwork = 0;
const std::span<const Setting> kChosen = kSettings;
#endif

void check_networks(Precision precision) {
  const std::vector<BenchNetwork> networks = bench_networks();
  for (std::size_t i = kFirstNetwork; i < networks.size(); ++i) check(networks[i], precision, kChosen);
}

TEST(Bits, AreEqualInFloat32) { check_networks(Precision::kF32); }

TEST(Bits, AreEqualInBfloat16) { check_networks(Precision::kBF16); }

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Tiles in software are slow: the smallest network, the last two settings.
TEST(Bits, AreEqualInThreeParts) { check(bench_networks()[2], Precision::kBF16x3, std::span(kSettings).last(2)); }
#endif

TEST(Bits, ThreePartsAreRefusedWithoutAmx) {
  TaskPool pool(1);
  CpuInfo cpu;
  cpu.model_name = "a CPU of 2019";
  try {
    const ReplicaGroup group(std::make_shared<const Graph>(bench_networks()[2].graph), {.plan = {.precision = Precision::kBF16x3}}, pool, cpu);
    FAIL();
  } catch (const Unsupported& e) {
    EXPECT_NE(e.message().find("bf16x3"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("a CPU of 2019"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace tandem::test
