#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

Tensor one(NodeCase c, EvaluateOptions options = {}) { return run_node(c, options)[0]; }

const EvaluateOptions kPitched{.layout = Layout::kChannelsLast, .extra_pitch = 3, .precision = Precision::kF32, .store_bf16 = false, .cpu = {}};

Attributes ints(const char* name, std::vector<std::int64_t> v) {
  Attributes a;
  a.set(name, std::move(v));
  return a;
}

// A tensor of every width that counts 0, 1, 2, ...
Tensor counting(DType t, Shape shape) {
  Tensor x(t, std::move(shape));
  auto* bytes = static_cast<std::uint8_t*>(x.mutable_data());
  for (std::int64_t i = 0; i < x.size(); ++i) bytes[static_cast<std::size_t>(i) * size_of(t)] = static_cast<std::uint8_t>(i);
  return x;
}

TEST(Transpose, SmallCasesOfEveryWidth) {
  for (const DType t : {DType::kI8, DType::kI16, DType::kI32, DType::kI64}) {
    const Tensor y = one({.op = "Transpose", .attributes = {}, .operands = {counting(t, {2, 3})}});
    EXPECT_EQ(y.shape(), (Shape{3, 2}));
    EXPECT_EQ(y.to_ints(), (std::vector<std::int64_t>{0, 3, 1, 4, 2, 5}));
  }
  expect_close(one({.op = "Transpose", .attributes = {}, .operands = {f32({}, {7})}}), f32({}, {7}));
  expect_close(one({.op = "Transpose", .attributes = {}, .operands = {f32({0, 2}, {})}}), f32({2, 0}, {}));
}

TEST(Transpose, EveryPermutationOfRankFour) {
  const Shape s{3, 20, 5, 37};
  const Tensor x = random_f32(s, 3);
  const auto in = x.as<float>();
  std::vector<std::int64_t> perm{0, 1, 2, 3};
  do {
    const NodeCase c{.op = "Transpose", .attributes = ints("perm", perm), .operands = {x}};
    const Tensor y = one(c);
    const auto strides = row_major_strides(s);
    std::size_t at = 0;
    const auto dim = [&](std::size_t i) { return s[static_cast<std::size_t>(perm[i])]; };
    const auto step = [&](std::size_t i) { return strides[static_cast<std::size_t>(perm[i])]; };
    for (std::int64_t a = 0; a < dim(0); ++a)
      for (std::int64_t b = 0; b < dim(1); ++b)
        for (std::int64_t d = 0; d < dim(2); ++d)
          for (std::int64_t e = 0; e < dim(3); ++e)
            ASSERT_EQ(y.as<float>()[at++], in[static_cast<std::size_t>(a * step(0) + b * step(1) + d * step(2) + e * step(3))]);
    expect_close(one(c, kPitched), y, 0, 0);
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(Transpose, LargeTensorsUseSeveralTasks) {
  const Tensor x = random_f32({257, 301, 3}, 4);
  const NodeCase there{.op = "Transpose", .attributes = ints("perm", {2, 1, 0}), .operands = {x}};
  const Tensor y = one(there);
  EXPECT_EQ(y.as<float>()[5], x.as<float>()[5 * 301 * 3]);
  expect_close(one({.op = "Transpose", .attributes = ints("perm", {2, 1, 0}), .operands = {y}}), x, 0, 0);
}

TEST(Transpose, RefusesBadPermutations) {
  const Tensor x = random_f32({2, 3}, 1);
  EXPECT_THROW(one({.op = "Transpose", .attributes = ints("perm", {0, 0}), .operands = {x}}), InvalidModel);
  EXPECT_THROW(one({.op = "Transpose", .attributes = ints("perm", {0}), .operands = {x}}), InvalidModel);
  EXPECT_THROW(one({.op = "Transpose", .attributes = ints("perm", {0, 2}), .operands = {x}}), InvalidModel);
}

Tensor blocks(const char* op, const Tensor& x, const char* mode, EvaluateOptions options = {}) {
  Attributes a;
  a.set("blocksize", std::int64_t{2});
  if (*mode) a.set("mode", std::string(mode));
  return one({.op = op, .attributes = a, .operands = {x}}, options);
}

TEST(DepthToSpace, BothModes) {
  std::vector<float> v(16);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i);
  const Tensor x = f32({1, 8, 1, 2}, v);
  const Tensor dcr = f32({1, 2, 2, 4}, {0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15});
  const Tensor crd = f32({1, 2, 2, 4}, {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15});
  expect_close(blocks("DepthToSpace", x, ""), dcr, 0, 0);
  expect_close(blocks("DepthToSpace", x, "CRD"), crd, 0, 0);
  expect_close(blocks("DepthToSpace", x, "DCR", kPitched), dcr, 0, 0);
  expect_close(blocks("DepthToSpace", x, "CRD", kPitched), crd, 0, 0);
  EXPECT_THROW(blocks("DepthToSpace", random_f32({1, 6, 1, 1}, 1), ""), InvalidModel);
}

TEST(SpaceToDepth, UndoesDepthToSpace) {
  const Tensor x = random_f32({2, 12, 3, 5}, 2);
  expect_close(blocks("SpaceToDepth", blocks("DepthToSpace", x, "DCR"), ""), x, 0, 0);
  expect_close(blocks("SpaceToDepth", blocks("DepthToSpace", x, "DCR"), "", kPitched), x, 0, 0);
  EXPECT_THROW(blocks("SpaceToDepth", random_f32({1, 1, 3, 2}, 1), ""), InvalidModel);
}

TEST(Expand, BothShapesMayGrow) {
  const auto expand = [](const Tensor& x, std::vector<std::int64_t> to, EvaluateOptions o = {}) {
    return one({.op = "Expand", .attributes = {}, .operands = {x, i64({static_cast<std::int64_t>(to.size())}, to)}, .outputs = 1, .constant = {1}},
               o);
  };
  expect_close(expand(f32({3, 1}, {1, 2, 3}), {2}), f32({3, 2}, {1, 1, 2, 2, 3, 3}));
  expect_close(expand(f32({2}, {1, 2}), {2, 1, 1}), f32({2, 1, 2}, {1, 2, 1, 2}));
  expect_close(expand(f32({}, {4}), {2}), f32({2}, {4, 4}));
  expect_close(expand(f32({1}, {4}), {0}), f32({0}, {}));
  const Tensor x = random_f32({2, 1, 4}, 1);
  expect_close(expand(x, {2, 5, 4}, kPitched), expand(x, {2, 5, 4}), 0, 0);
  EXPECT_THROW(expand(x, {3, 1, 1}), InvalidModel);
}

TEST(Tile, RepeatsEveryAxis) {
  const auto tile = [](const Tensor& x, std::vector<std::int64_t> by, EvaluateOptions o = {}) {
    return one({.op = "Tile", .attributes = {}, .operands = {x, i64({static_cast<std::int64_t>(by.size())}, by)}, .outputs = 1, .constant = {1}}, o);
  };
  expect_close(tile(f32({2, 2}, {1, 2, 3, 4}), {1, 2}), f32({2, 4}, {1, 2, 1, 2, 3, 4, 3, 4}));
  expect_close(tile(f32({2, 1}, {1, 2}), {2, 2}), f32({4, 2}, {1, 1, 2, 2, 1, 1, 2, 2}));
  expect_close(tile(f32({2}, {1, 2}), {0}), f32({0}, {}));
  expect_close(tile(f32({}, {3}), {}), f32({}, {3}));
  const Tensor x = random_f32({2, 3, 2, 2}, 1);
  expect_close(tile(x, {1, 2, 3, 1}, kPitched), tile(x, {1, 2, 3, 1}), 0, 0);
  EXPECT_THROW(tile(x, {1, 2}), InvalidModel);
  EXPECT_THROW(tile(f32({2}, {1, 2}), {-1}), InvalidModel);
}

}  // namespace
}  // namespace tandem::test
