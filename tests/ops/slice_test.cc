#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

using Ints = std::vector<std::int64_t>;

const EvaluateOptions kPitched{.layout = Layout::kChannelsLast, .extra_pitch = 5, .precision = Precision::kF32, .store_bf16 = false, .cpu = {}};

Tensor ints(const Ints& v) { return i64({static_cast<std::int64_t>(v.size())}, v); }

Tensor slice(const Tensor& x, Ints starts, Ints ends, Ints axes = {}, Ints steps = {}, EvaluateOptions o = {}) {
  NodeCase c{.op = "Slice", .attributes = {}, .operands = {x, ints(starts), ints(ends)}, .outputs = 1, .constant = {1, 2, 3, 4}};
  c.operands.push_back(axes.empty() ? Tensor() : ints(axes));
  c.operands.push_back(steps.empty() ? Tensor() : ints(steps));
  return run_node(c, o)[0];
}

TEST(Slice, ExtremesOfInt64) {
  const Tensor x = f32({5}, {0, 1, 2, 3, 4});
  expect_close(slice(x, {1}, {INT64_MAX}), f32({4}, {1, 2, 3, 4}));
  expect_close(slice(x, {INT64_MIN}, {INT64_MAX}), x);
  expect_close(slice(x, {-1}, {INT64_MIN}, {0}, {-1}), f32({5}, {4, 3, 2, 1, 0}));
  expect_close(slice(x, {-1}, {INT64_MAX}, {0}, {-1}), f32({0}, {}));  // the standard; another runtime gives the reverse
  expect_close(slice(x, {0}, {5}, {0}, {INT64_MAX}), f32({1}, {0}));
  expect_close(slice(x, {4}, {INT64_MIN}, {0}, {INT64_MIN}), f32({1}, {4}));
  expect_close(slice(x, {INT64_MAX}, {INT64_MIN}, {0}, {-3}), f32({2}, {4, 1}));
}

TEST(Slice, AxesStepsAndEmptyResults) {
  const Tensor x = f32({2, 3}, {0, 1, 2, 3, 4, 5});
  expect_close(slice(x, {1, 0}, {2, 3}, {-1, 0}), f32({2, 1}, {1, 4}));
  expect_close(slice(x, {0}, {3}, {1}, {2}), f32({2, 2}, {0, 2, 3, 5}));
  expect_close(slice(x, {2, 1}, {-9, -9}, {1, 0}, {-2, -1}), f32({2, 2}, {5, 3, 2, 0}));
  expect_close(slice(x, {3}, {9}, {1}), f32({2, 0}, {}));
  expect_close(slice(Tensor(DType::kF32, {0}), {-1}, {INT64_MIN}, {0}, {-1}), f32({0}, {}));
  expect_close(slice(x, {1}, {2}), f32({1, 3}, {3, 4, 5}));  // fewer starts than axes: the first axes
  EXPECT_THROW(slice(x, {0}, {1}, {0}, {0}), InvalidModel);
  EXPECT_THROW(slice(x, {0}, {1}, {2}), InvalidModel);
  EXPECT_THROW(slice(x, {0, 0}, {1, 1}, {0, -2}), InvalidModel);
  EXPECT_THROW(slice(x, {0, 0}, {1}), InvalidModel);
}

TEST(Slice, ChannelsLast) {
  const Tensor x = random_f32({2, 5, 4, 6}, 1);
  expect_close(slice(x, {4, 1}, {0, 6}, {1, 3}, {-2, 2}, kPitched), slice(x, {4, 1}, {0, 6}, {1, 3}, {-2, 2}), 0, 0);
  expect_close(slice(x, {5}, {9}, {1}, {}, kPitched), Tensor(DType::kF32, {2, 0, 4, 6}));
}

Tensor pad(const Tensor& x, Ints pads, const char* mode, Tensor value = {}, Ints axes = {}, EvaluateOptions o = {}) {
  Attributes a;
  a.set("mode", std::string(mode));
  NodeCase c{.op = "Pad", .attributes = a, .operands = {x, ints(pads), value}, .outputs = 1, .constant = {1, 3}};
  if (!axes.empty()) c.operands.push_back(ints(axes));
  return run_node(c, o)[0];
}

TEST(Pad, ModesOnOneAxis) {
  const Tensor x = f32({4}, {1, 2, 3, 4});
  expect_close(pad(x, {2, 2}, "reflect"), f32({8}, {3, 2, 1, 2, 3, 4, 3, 2}));
  expect_close(pad(x, {2, 1}, "edge"), f32({7}, {1, 1, 1, 2, 3, 4, 4}));
  expect_close(pad(x, {2, 1}, "wrap"), f32({7}, {3, 4, 1, 2, 3, 4, 1}));
  expect_close(pad(f32({2}, {1, 2}), {5, 6}, "wrap"), f32({13}, {2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}));
  expect_close(pad(x, {1, 2}, "constant", f32({}, {9})), f32({7}, {9, 1, 2, 3, 4, 9, 9}));
  expect_close(pad(x, {1, 0}, "constant"), f32({5}, {0, 1, 2, 3, 4}));
  expect_close(pad(i64({1}, {1}), {1, 0}, "constant", i64({1}, {7})), i64({2}, {7, 1}));
}

TEST(Pad, NegativePadsCrop) {
  const Tensor x = f32({4}, {1, 2, 3, 4});
  expect_close(pad(x, {-1, 2}, "constant"), f32({5}, {2, 3, 4, 0, 0}));
  expect_close(pad(x, {-2, -2}, "constant"), f32({0}, {}));
  expect_close(pad(x, {-1, 2}, "reflect"), f32({5}, {2, 3, 4, 3, 2}));
  expect_close(pad(x, {2, -1}, "reflect"), f32({5}, {3, 2, 1, 2, 3}));
  expect_close(pad(x, {2, -3}, "edge"), f32({3}, {1, 1, 1}));
  expect_close(pad(x, {3, -4}, "constant", f32({}, {8})), f32({3}, {8, 8, 8}));
  EXPECT_THROW(pad(x, {-3, -2}, "constant"), InvalidModel);
}

TEST(Pad, RefusesWhatTheModeCannotGive) {
  EXPECT_THROW(pad(f32({2}, {1, 2}), {2, 0}, "reflect"), InvalidModel);
  EXPECT_THROW(pad(f32({0}, {}), {1, 0}, "edge"), InvalidModel);
  EXPECT_THROW(pad(f32({0}, {}), {1, 0}, "wrap"), InvalidModel);
  EXPECT_THROW(pad(f32({2}, {1, 2}), {1, 0}, "mirror"), InvalidModel);
  EXPECT_THROW(pad(f32({2}, {1, 2}), {1}, "constant"), InvalidModel);
  EXPECT_THROW(pad(f32({2}, {1, 2}), {INT64_MAX, INT64_MAX}, "constant"), InvalidModel);
  EXPECT_THROW(pad(f32({2}, {1, 2}), {1, 1}, "constant", i64({}, {1})), InvalidModel);
  expect_close(pad(f32({0}, {}), {1, 1}, "constant", f32({}, {3})), f32({2}, {3, 3}));
}

TEST(Pad, AxesAndChannelsLast) {
  const Tensor x = random_f32({2, 3, 4, 5}, 7);
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    const Tensor all = pad(x, {0, 0, 2, 1, 0, 1, -1, 3}, mode, f32({}, {2}));
    EXPECT_EQ(all.shape(), (Shape{2, 4, 5, 9}));
    expect_close(pad(x, {1, 2, 0, 3, -1, 1}, mode, f32({}, {2}), {-1, 2, 1}), all, 0, 0);
    expect_close(pad(x, {0, 0, 2, 1, 0, 1, -1, 3}, mode, f32({}, {2}), {}, kPitched), all, 0, 0);
    // every element: the axes are independent of each other
    const Tensor one_by_one = pad(pad(pad(x, {2, -1}, mode, f32({}, {2}), {2}), {1, 3}, mode, f32({}, {2}), {3}), {0, 1}, mode, f32({}, {2}), {1});
    expect_close(one_by_one, all, 0, 0);
  }
}

TEST(CenterCropPad, CropsAndPads) {
  const auto fit = [](const Tensor& x, Ints shape, Attributes a = {}, EvaluateOptions o = {}) {
    return run_node({.op = "CenterCropPad", .attributes = a, .operands = {x, ints(shape)}, .outputs = 1, .constant = {1}}, o)[0];
  };
  const Tensor x = f32({4}, {1, 2, 3, 4});
  expect_close(fit(x, {7}), f32({7}, {0, 1, 2, 3, 4, 0, 0}));
  expect_close(fit(x, {1}), f32({1}, {2}));
  expect_close(fit(x, {2}), f32({2}, {2, 3}));
  Attributes a;
  a.set("axes", Ints{-1, 0});
  expect_close(fit(f32({1, 2}, {1, 2}), {1, 2}, a), f32({2, 1}, {1, 0}));
  const Tensor image = random_f32({2, 3, 4, 5}, 1);
  Attributes spatial;
  spatial.set("axes", Ints{2, 3});
  expect_close(fit(image, {7, 2}, spatial, kPitched), fit(image, {7, 2}, spatial), 0, 0);
  EXPECT_THROW(fit(x, {1, 2}), InvalidModel);
  EXPECT_THROW(fit(x, {-1}), InvalidModel);
}

}  // namespace
}  // namespace tandem::test
