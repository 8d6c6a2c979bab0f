#include "tests/support/node_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "runtime/graph/infer.h"

namespace tandem::test {

std::vector<Tensor> run_node(const NodeCase& c, const EvaluateOptions& options) {
  Graph graph;
  Node node;
  node.name = "tested";
  node.op = c.op;
  node.attributes = c.attributes;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const Tensor& t = c.operands[i];
    if (!t) {
      node.inputs.push_back(kNoValue);
      continue;
    }
    const std::string name = "x" + std::to_string(i);
    if (std::find(c.constant.begin(), c.constant.end(), i) != c.constant.end()) {
      node.inputs.push_back(graph.add_constant(name, t));
    } else {
      const ValueId id = graph.add_value(name, t.dtype());
      graph.value(id).shape = t.shape();
      graph.value(id).shape_known = true;
      node.inputs.push_back(id);
    }
  }
  for (std::size_t i = 0; i < c.outputs; ++i) node.outputs.push_back(graph.add_value("y" + std::to_string(i)));
  infer_node(graph, node);
  return evaluate(graph, node, c.operands, options);
}

void expect_close(const Tensor& got, const Tensor& want, double rtol, double atol) {
  ASSERT_EQ(name_of(got.dtype()), name_of(want.dtype()));
  ASSERT_EQ(got.shape(), want.shape());
  if (is_float(got.dtype())) {
    const auto g = got.to_doubles(), w = want.to_doubles();
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (std::isnan(w[i]) && std::isnan(g[i])) continue;
      if (g[i] == w[i]) continue;
      ASSERT_LE(std::abs(g[i] - w[i]), atol + rtol * std::abs(w[i])) << "element " << i << ": got " << g[i] << ", want " << w[i];
      ASSERT_FALSE(std::isnan(g[i]) || std::isnan(w[i])) << "element " << i << ": got " << g[i] << ", want " << w[i];
    }
  } else {
    const auto g = got.to_ints(), w = want.to_ints();
    for (std::size_t i = 0; i < g.size(); ++i) ASSERT_EQ(g[i], w[i]) << "element " << i;
  }
}

Tensor f32(Shape shape, std::vector<float> values) { return Tensor::of<float>(std::move(shape), std::span<const float>(values)); }
Tensor i64(Shape shape, std::vector<std::int64_t> values) {
  return Tensor::of<std::int64_t>(std::move(shape), std::span<const std::int64_t>(values));
}

Tensor random_f32(Shape shape, std::uint64_t seed) {
  Tensor t(DType::kF32, std::move(shape));
  std::mt19937_64 engine(seed);
  for (float& v : t.as_mutable<float>()) v = static_cast<float>(engine() >> 40) * 0x1p-23f - 1.0f;
  return t;
}

}  // namespace tandem::test
