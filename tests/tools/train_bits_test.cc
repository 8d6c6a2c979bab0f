// The weights after 20 steps through the program: whatever the devices, threads and images decoded ahead, in each precision and kind of batch norm,
// with dropout and augmentation.
#include <gtest/gtest.h>

#include "io/npy.h"
#include "runtime/cpu/cpu_info.h"
#include "tests/support/files.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

using Words = std::vector<std::string>;

struct Setting {
  const char *devices, *threads, *workers;
};

class TrainProgramBits : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void SetUp() override {
    Tensor x(DType::kU8, {37, 16, 16, 3});  // 16, 16 and a ragged batch of 5
    std::uint32_t state = 7;
    for (std::uint8_t& v : x.as_mutable<std::uint8_t>()) v = static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24);
    std::vector<std::int32_t> labels;
    for (std::int32_t i = 0; i < 37; ++i) labels.push_back(i * 3 % 5);
    io::write_npy(folder_ / "x.npy", x);
    io::write_npy(folder_ / "y.npy", Tensor::of<std::int32_t>({37}, std::span<const std::int32_t>(labels)));
  }
  // The trained network's file.
  std::string trained(const std::string& name, const Setting& s) const {
    const auto [precision, bn] = GetParam();
    const Words words = {"train",
                         TANDEM_SOURCE_DIR "/tests/data/training/net_a_softmax.onnx",
                         folder_ / "x.npy",
                         "--preprocess",
                         "tf",
                         "--batch",
                         "16",
                         "--steps-per-epoch",
                         "20",
                         "--optimizer",
                         "adam",
                         "--lr",
                         "0.01",
                         "--dropout",
                         "0.3",
                         "--augment",
                         "flip,crop,color,mixup",
                         "--precision",
                         precision,
                         "--bn",
                         bn,
                         "--devices",
                         s.devices,
                         "--threads",
                         s.threads,
                         "--workers",
                         s.workers,
                         "--output",
                         folder_ / name};
    const Finished r = run_tandem(words);
    EXPECT_EQ(r.code, 0) << r.err;
    return read_text(folder_ / (name + "/model.onnx"));
  }
  TemporaryFolder folder_;
};

TEST_P(TrainProgramBits, AreThoseOfOneDevice) {
  if (std::get<0>(GetParam()) == std::string("bf16x3") && !CpuInfo::detect().amx_bf16) GTEST_SKIP() << "this CPU has no AMX";
  const std::string one = trained("one", {"cpu", "1", "1"});
  ASSERT_FALSE(one.empty());
  for (const Setting& s :
       {Setting{"cpu", "2", "4"}, Setting{"cpu:2", "2", "1"}, Setting{"cpu:3", "2", "4"}, Setting{"cpu:4", "1", "4"}, Setting{"cpu:8", "2", "4"}})
    EXPECT_TRUE(one == trained(std::string("on") + s.devices + s.threads, s)) << s.devices << ", " << s.threads << " threads";
}

INSTANTIATE_TEST_SUITE_P(All, TrainProgramBits, testing::Combine(testing::Values("f32", "bf16", "bf16x3"), testing::Values("sync", "local")),
                         [](const auto& p) { return std::string(std::get<0>(p.param)) + "_" + std::get<1>(p.param); });

}  // namespace
}  // namespace tandem::test
