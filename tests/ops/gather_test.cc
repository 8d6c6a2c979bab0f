#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

Tensor gather(const char* op, const Tensor& x, const Tensor& indices, Attributes a = {}, std::vector<std::size_t> constant = {},
              EvaluateOptions o = {}) {
  return run_node({.op = op, .attributes = std::move(a), .operands = {x, indices}, .outputs = 1, .constant = std::move(constant)}, o)[0];
}

Attributes with(const char* name, std::int64_t v) {
  Attributes a;
  a.set(name, v);
  return a;
}

TEST(Gather, NegativeIndicesAndScalars) {
  const Tensor x = f32({3}, {1, 2, 3});
  expect_close(gather("Gather", x, i64({2}, {0, -1})), f32({2}, {1, 3}));
  expect_close(gather("Gather", x, i64({}, {1})), f32({}, {2}));
  expect_close(gather("Gather", x, i64({0}, {})), f32({0}, {}));
  const std::int32_t narrow[] = {-3, 2};
  expect_close(gather("Gather", x, Tensor::of<std::int32_t>({1, 2}, narrow)), f32({1, 2}, {1, 3}));
  const Tensor y = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_close(gather("Gather", y, i64({2}, {2, 0}), with("axis", -1)), f32({2, 2}, {3, 1, 6, 4}));
  expect_close(gather("Gather", y, i64({1}, {-1})), f32({1, 3}, {4, 5, 6}));
}

TEST(Gather, RefusesIndicesOutOfRange) {
  const Tensor x = f32({3}, {1, 2, 3});
  EXPECT_THROW(gather("Gather", x, i64({1}, {3})), InvalidData);
  EXPECT_THROW(gather("Gather", x, i64({1}, {-4})), InvalidData);
  EXPECT_THROW(gather("Gather", x, i64({1}, {INT64_MIN})), InvalidData);
  EXPECT_THROW(gather("Gather", x, i64({1}, {3}), {}, {1}), InvalidModel);  // known before anything runs
  EXPECT_THROW(gather("Gather", Tensor(DType::kF32, {0}), i64({1}, {0})), InvalidData);
  EXPECT_THROW(gather("Gather", x, f32({1}, {0})), InvalidModel);
  EXPECT_THROW(gather("Gather", f32({}, {1}), i64({1}, {0})), InvalidModel);
}

TEST(Gather, ConstantTableBesideBf16) {
  EvaluateOptions half;
  half.store_bf16 = true;
  expect_close(gather("Gather", f32({2, 2}, {1, 2, 3, 4.001f}), i64({1}, {1}), {}, {0}, half), f32({1, 2}, {3, 4}));
}

TEST(GatherElements, AlongEachAxis) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_close(gather("GatherElements", x, i64({2, 2}, {0, -1, 1, 0}), with("axis", 1)), f32({2, 2}, {1, 3, 5, 4}));
  expect_close(gather("GatherElements", x, i64({1, 3}, {1, 0, -1})), f32({1, 3}, {4, 2, 6}));
  expect_close(gather("GatherElements", x, i64({0, 3}, {})), f32({0, 3}, {}));
  EXPECT_THROW(gather("GatherElements", x, i64({1, 3}, {2, 0, 0})), InvalidData);
  EXPECT_THROW(gather("GatherElements", x, i64({1, 4}, {0, 0, 0, 0})), InvalidModel);
  EXPECT_THROW(gather("GatherElements", x, i64({3}, {0, 0, 0})), InvalidModel);
}

TEST(GatherND, TuplesSlicesAndBatches) {
  const Tensor x = f32({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  expect_close(gather("GatherND", x, i64({2, 3}, {0, 0, 1, -1, -1, -1})), f32({2}, {1, 7}));
  expect_close(gather("GatherND", x, i64({1, 1}, {1})), f32({1, 2, 2}, {4, 5, 6, 7}));
  expect_close(gather("GatherND", x, i64({2, 1}, {1, 0}), with("batch_dims", 1)), f32({2, 2}, {2, 3, 4, 5}));
  EXPECT_THROW(gather("GatherND", x, i64({1, 3}, {0, 0, 2})), InvalidData);
  EXPECT_THROW(gather("GatherND", x, i64({1, 4}, {0, 0, 0, 0})), InvalidModel);
  EXPECT_THROW(gather("GatherND", x, i64({3, 1}, {0, 0, 0}), with("batch_dims", 1)), InvalidModel);
}

}  // namespace
}  // namespace tandem::test
