#include "runtime/plan/rows.h"

#include <gtest/gtest.h>

#include "tests/support/networks.h"

namespace tandem::test {
namespace {

TEST(CutProof, AnImageClassifierMayBeCut) {
  const CutProof p = prove_cut(small_xception(), {{{8, 3, 16, 16}}, {}});
  EXPECT_TRUE(p.possible) << p.reason;
  EXPECT_EQ(p.batch, 8);
  EXPECT_EQ(p.rows_per_sample, (std::vector<std::int64_t>{1}));
}

TEST(CutProof, SamplesThatMeetForbidIt) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::kF32, {-1, 4});
  b.output(b.node("sum", "CumSum", {x, b.constant("axis", i64({}, {0}))}));
  EXPECT_FALSE(prove_cut(b.graph, {{{8, 4}}, {}}).possible);
}

TEST(CutProof, SoftmaxOverTheBatchForbidsItOverClassesDoesNot) {
  for (const std::int64_t axis : {0, 1}) {
    GraphBuilder b;
    b.output(b.node("s", "Softmax", {b.input("x", DType::kF32, {-1, 4})}, attributes({{"axis", axis}})));
    EXPECT_EQ(prove_cut(b.graph, {{{8, 4}}, {}}).possible, axis == 1);
  }
}

TEST(CutProof, AConstantWithItsOwnRowsForbidsIt) {
  GraphBuilder b;
  b.output(b.node("add", "Add", {b.input("x", DType::kF32, {-1, 2}), b.constant("c", f32({2, 2}, {1, 2, 3, 4}))}));
  EXPECT_FALSE(prove_cut(b.graph, {{{2, 2}}, {}}).possible);
}

TEST(CutProof, ABatchComputedFromTheInputsShapeIsFollowed) {
  GraphBuilder b;  // Reshape(x, Concat(Shape(x)[0], -1)), as exporters write Flatten
  const ValueId x = b.input("x", DType::kF32, {-1, 3, 2});
  const ValueId n = b.node("n", "Gather", {b.node("shape", "Shape", {x}), b.constant("zero", i64({1}, {0}))});
  const ValueId target = b.node("target", "Concat", {n, b.constant("rest", i64({1}, {-1}))}, attributes({{"axis", std::int64_t{0}}}));
  b.output(b.node("flat", "Reshape", {x, target}));
  EXPECT_TRUE(prove_cut(b.graph, {{{8, 3, 2}}, {}}).possible);
}

TEST(CutProof, AReshapeThatBakesTheBatchInForbidsIt) {
  GraphBuilder b;
  b.output(b.node("flat", "Reshape", {b.input("x", DType::kF32, {-1, 6}), b.constant("target", i64({2}, {2, -1}))}));
  EXPECT_FALSE(prove_cut(b.graph, {{{2, 6}}, {}}).possible);
}

TEST(CutProof, AnIndexAlongTheBatchForbidsIt) {
  GraphBuilder b;  // x + Range(0, N): row i depends on its position
  const ValueId x = b.input("x", DType::kF32, {-1, 1});
  const ValueId n = b.node("n", "Gather", {b.node("shape", "Shape", {x}), b.constant("zero", i64({}, {0}))});
  const ValueId range = b.node("range", "Range", {b.constant("start", i64({}, {0})), n, b.constant("step", i64({}, {1}))});
  const ValueId column =
      b.node("column", "Unsqueeze", {b.node("cast", "Cast", {range}, attributes({{"to", std::int64_t{1}}})), b.constant("axes", i64({1}, {1}))});
  b.output(b.node("add", "Add", {x, column}));
  EXPECT_FALSE(prove_cut(b.graph, {{{3, 1}}, {}}).possible);
}

TEST(CutProof, ASliceOfTheFirstRowsIsSeenOnceTheBatchIsLarger) {
  GraphBuilder b;
  const auto ints = [&](const char* name, std::int64_t v) { return b.constant(name, i64({1}, {v})); };
  b.output(b.node("slice", "Slice", {b.input("x", DType::kF32, {-1, 2}), ints("starts", 0), ints("ends", 3), ints("axes", 0)}));
  EXPECT_FALSE(prove_cut(b.graph, {{{20, 2}}, {}}).possible);
}

TEST(CutProof, WindowsOfAnImageCountAsItsRows) {
  GraphBuilder b;  // [N, 4, 6] -> [4N, 6], as window partition does
  const ValueId x = b.input("x", DType::kF32, {-1, 4, 6});
  b.output(b.node("windows", "Reshape", {x, b.constant("target", i64({2}, {-1, 6}))}));
  const CutProof p = prove_cut(b.graph, {{{5, 4, 6}}, {}});
  EXPECT_TRUE(p.possible) << p.reason;
  EXPECT_EQ(p.rows_per_sample, (std::vector<std::int64_t>{4}));
}

}  // namespace
}  // namespace tandem::test
