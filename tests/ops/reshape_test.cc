#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

Shape shape_of(const std::string& op, const Tensor& x, std::vector<Tensor> more, Attributes attributes = {}) {
  NodeCase c{.op = op, .attributes = std::move(attributes), .operands = {x}, .outputs = 1, .constant = {1}};
  for (Tensor& t : more) c.operands.push_back(std::move(t));
  const Tensor y = run_node(c)[0];
  expect_close(y.reshaped(x.shape()), x, 0, 0);
  return y.shape();
}

Attributes with(const char* name, std::int64_t value) {
  Attributes a;
  a.set(name, value);
  return a;
}

Tensor ints(std::vector<std::int64_t> v) { return i64({static_cast<std::int64_t>(v.size())}, v); }

TEST(Reshape, CopiesZerosAndFillsMinusOne) {
  const Tensor x = random_f32({2, 3, 4}, 1);
  EXPECT_EQ(shape_of("Reshape", x, {ints({4, 2, 3})}), (Shape{4, 2, 3}));
  EXPECT_EQ(shape_of("Reshape", x, {ints({0, -1})}), (Shape{2, 12}));
  EXPECT_EQ(shape_of("Reshape", x, {ints({2, 0, 1, -1})}), (Shape{2, 3, 1, 4}));
  EXPECT_EQ(shape_of("Reshape", f32({1}, {3}), {ints({})}), Shape{});
  EXPECT_EQ(shape_of("Reshape", f32({}, {3}), {ints({-1})}), (Shape{1}));
}

TEST(Reshape, EmptyTensors) {
  const Tensor x(DType::kF32, {0, 10});
  EXPECT_EQ(shape_of("Reshape", x, {ints({10, 0})}, with("allowzero", 1)), (Shape{10, 0}));
  EXPECT_THROW(shape_of("Reshape", x, {ints({0, -1})}, with("allowzero", 1)), InvalidModel);
  EXPECT_EQ(shape_of("Reshape", Tensor(DType::kF32, {0, 3, 4}), {ints({0, -1})}), (Shape{0, 12}));  // an empty batch keeps its features
}

TEST(Reshape, RefusesWhatDoesNotFit) {
  const Tensor x = random_f32({2, 3}, 1);
  EXPECT_THROW(shape_of("Reshape", x, {ints({4, 2})}), InvalidModel);
  EXPECT_THROW(shape_of("Reshape", x, {ints({-1, -1})}), InvalidModel);
  EXPECT_THROW(shape_of("Reshape", x, {ints({-2, 3})}), InvalidModel);
  EXPECT_THROW(shape_of("Reshape", x, {ints({4, -1})}), InvalidModel);
  EXPECT_THROW(shape_of("Reshape", x, {ints({2, 3, 0})}), InvalidModel);
  EXPECT_THROW(shape_of("Reshape", x, {ints({INT64_MAX, INT64_MAX})}), InvalidModel);
}

TEST(Flatten, EveryAxis) {
  const Tensor x = random_f32({2, 3, 4}, 1);
  EXPECT_EQ(shape_of("Flatten", x, {}, with("axis", 0)), (Shape{1, 24}));
  EXPECT_EQ(shape_of("Flatten", x, {}), (Shape{2, 12}));
  EXPECT_EQ(shape_of("Flatten", x, {}, with("axis", 3)), (Shape{24, 1}));
  EXPECT_EQ(shape_of("Flatten", x, {}, with("axis", -1)), (Shape{6, 4}));
  EXPECT_EQ(shape_of("Flatten", f32({}, {1}), {}, with("axis", 0)), (Shape{1, 1}));
  EXPECT_THROW(shape_of("Flatten", x, {}, with("axis", 4)), InvalidModel);
  EXPECT_THROW(shape_of("Flatten", x, {}, with("axis", -4)), InvalidModel);
}

TEST(Squeeze, ListedOrAllOnes) {
  const Tensor x = random_f32({1, 3, 1, 5}, 1);
  EXPECT_EQ(shape_of("Squeeze", x, {}), (Shape{3, 5}));
  EXPECT_EQ(shape_of("Squeeze", x, {ints({-2})}), (Shape{1, 3, 5}));
  EXPECT_EQ(shape_of("Squeeze", f32({1, 1}, {2}), {}), Shape{});
  EXPECT_THROW(shape_of("Squeeze", x, {ints({1})}), InvalidModel);
  EXPECT_THROW(shape_of("Squeeze", x, {ints({4})}), InvalidModel);
}

TEST(Unsqueeze, AxesOfTheResult) {
  const Tensor x = random_f32({3, 4}, 1);
  EXPECT_EQ(shape_of("Unsqueeze", x, {ints({0, -1})}), (Shape{1, 3, 4, 1}));
  EXPECT_EQ(shape_of("Unsqueeze", x, {ints({2, 1})}), (Shape{3, 1, 1, 4}));
  EXPECT_EQ(shape_of("Unsqueeze", f32({}, {2}), {ints({0})}), (Shape{1}));
  EXPECT_THROW(shape_of("Unsqueeze", x, {ints({0, 0})}), InvalidModel);
  EXPECT_THROW(shape_of("Unsqueeze", x, {ints({3})}), InvalidModel);
}

}  // namespace
}  // namespace tandem::test
