#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

Tensor scatter(const char* op, const Tensor& x, const Tensor& indices, const Tensor& updates, const char* reduction = "none", std::int64_t axis = 0) {
  Attributes a;
  a.set("reduction", std::string(reduction));
  if (std::string_view(op) == "ScatterElements") a.set("axis", axis);
  return run_node({.op = op, .attributes = a, .operands = {x, indices, updates}})[0];
}

TEST(ScatterElements, AxesAndReductions) {
  const Tensor x = f32({1, 5}, {1, 2, 3, 4, 5});
  expect_close(scatter("ScatterElements", x, i64({1, 2}, {1, -2}), f32({1, 2}, {9, 8}), "none", 1), f32({1, 5}, {1, 9, 3, 8, 5}));
  const Tensor twice = i64({1, 3}, {1, 1, 0}), by = f32({1, 3}, {-4, 3, 0});
  expect_close(scatter("ScatterElements", x, twice, by, "none", -1), f32({1, 5}, {0, 3, 3, 4, 5}));  // the last one wins
  expect_close(scatter("ScatterElements", x, twice, by, "add", 1), f32({1, 5}, {1, 1, 3, 4, 5}));
  expect_close(scatter("ScatterElements", x, twice, by, "mul", 1), f32({1, 5}, {0, -24, 3, 4, 5}));
  expect_close(scatter("ScatterElements", x, twice, by, "max", 1), f32({1, 5}, {1, 3, 3, 4, 5}));
  expect_close(scatter("ScatterElements", x, twice, by, "min", 1), f32({1, 5}, {0, -4, 3, 4, 5}));
  expect_close(scatter("ScatterElements", f32({2, 2}, {1, 2, 3, 4}), i64({1, 2}, {1, 0}), f32({1, 2}, {7, 8})), f32({2, 2}, {1, 8, 7, 4}));
  const std::uint8_t bytes[] = {250, 2}, more[] = {10, 200};
  expect_close(scatter("ScatterElements", Tensor::of<std::uint8_t>({2}, bytes), i64({2}, {0, 1}), Tensor::of<std::uint8_t>({2}, more), "add"),
               Tensor::of<std::uint8_t>({2}, std::vector<std::uint8_t>{4, 202}));
}

TEST(ScatterElements, Refuses) {
  const Tensor x = f32({3}, {1, 2, 3});
  EXPECT_THROW(scatter("ScatterElements", x, i64({1}, {3}), f32({1}, {0})), InvalidData);
  EXPECT_THROW(scatter("ScatterElements", x, i64({1}, {-4}), f32({1}, {0})), InvalidData);
  EXPECT_THROW(scatter("ScatterElements", x, i64({1}, {0}), f32({2}, {0, 0})), InvalidModel);
  EXPECT_THROW(scatter("ScatterElements", x, i64({1}, {0}), i64({1}, {0})), InvalidModel);
  EXPECT_THROW(scatter("ScatterElements", x, i64({1}, {0}), f32({1}, {0}), "mean"), InvalidModel);
}

TEST(ScatterND, TuplesSlicesAndReductions) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  expect_close(scatter("ScatterND", x, i64({1, 2}, {1, -2}), f32({1}, {9})), f32({2, 2}, {1, 2, 9, 4}));
  expect_close(scatter("ScatterND", x, i64({1, 1}, {-1}), f32({1, 2}, {7, 8})), f32({2, 2}, {1, 2, 7, 8}));
  expect_close(scatter("ScatterND", x, i64({2, 1}, {0, 0}), f32({2, 2}, {1, 1, 2, 2}), "add"), f32({2, 2}, {4, 5, 3, 4}));
  expect_close(scatter("ScatterND", x, i64({0, 1}, {}), f32({0, 2}, {})), x);
  EXPECT_THROW(scatter("ScatterND", x, i64({1, 2}, {0, 2}), f32({1}, {9})), InvalidData);
  EXPECT_THROW(scatter("ScatterND", x, i64({1, 3}, {0, 0, 0}), f32({1}, {9})), InvalidModel);
  EXPECT_THROW(scatter("ScatterND", x, i64({1, 1}, {0}), f32({1}, {9})), InvalidModel);
}

}  // namespace
}  // namespace tandem::test
