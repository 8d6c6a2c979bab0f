#include "tests/support/pointwise_check.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tandem::test {

Tensor bools(Shape shape, std::initializer_list<bool> values) { return typed<bool>(std::move(shape), values); }

void expect_layouts_agree(const NodeCase& c) {
  const auto plain = run_node(c);
  for (const std::int64_t gap : {0, 5}) {
    EvaluateOptions options;
    options.layout = Layout::kChannelsLast;
    options.extra_pitch = gap;
    const auto got = run_node(c, options);
    ASSERT_EQ(got.size(), plain.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (!plain[i]) continue;
      ASSERT_EQ(got[i].shape(), plain[i].shape());
      EXPECT_EQ(std::memcmp(got[i].data(), plain[i].data(), plain[i].bytes()), 0) << c.op << " channels-last, gap " << gap << ", output " << i;
    }
  }
}

void expect_bf16_storage_rounds_once(NodeCase c) {
  for (Tensor& t : c.operands) {
    if (!t || t.dtype() != DType::kF32) continue;
    Tensor rounded(DType::kF32, t.shape());
    const auto from = t.as<float>();
    for (std::size_t i = 0; i < from.size(); ++i) rounded.as_mutable<float>()[i] = static_cast<float>(BFloat16(from[i]));
    t = rounded;
  }
  const auto plain = run_node(c);
  EvaluateOptions options;
  options.store_bf16 = true;
  const auto stored = run_node(c, options);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (!plain[i] || plain[i].dtype() != DType::kF32) continue;
    const auto want = plain[i].as<float>(), got = stored[i].as<float>();
    for (std::size_t k = 0; k < want.size(); ++k) ASSERT_EQ(got[k], static_cast<float>(BFloat16(want[k]))) << c.op << " element " << k;
  }
}

Tensor apply_op(const std::string& op, std::vector<Tensor> operands, Attributes attributes) {
  return run_node({.op = op, .attributes = std::move(attributes), .operands = std::move(operands)})[0];
}

}  // namespace tandem::test
