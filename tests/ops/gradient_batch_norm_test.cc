// "BatchMoments" "ShardMoments" "ShardSum" "BatchNormTraining" "BatchNormGradSums" "BatchNormGradInput"
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/graph/gradient.h"
#include "runtime/graph/infer.h"
#include "runtime/graph/passes.h"
#include "runtime/ops/shard_merge.h"
#include "runtime/plan/plan.h"
#include "tests/support/gradient_check.h"
#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"
#include "tests/support/pointwise_check.h"

namespace tandem::test {
namespace {

EvaluateOptions channels_last(std::int64_t gap = 0, bool bf16 = false) {
  EvaluateOptions o;
  o.layout = Layout::kChannelsLast;
  o.extra_pitch = gap;
  o.store_bf16 = bf16;
  return o;
}

std::int64_t channels_of(const Shape& x) { return x.size() == 1 ? 1 : x[1]; }

// x as [n, c, s], and its statistics, in double.
struct Direct {
  std::int64_t n, c, s;
  std::vector<double> x, mean, m2;
  explicit Direct(const Tensor& t) : n(t.shape()[0]), c(channels_of(t.shape())), s(t.size() / std::max<std::int64_t>(1, n * c)), x(t.to_doubles()) {
    for (std::int64_t ch = 0; ch < c; ++ch) {
      double sum = 0, squares = 0;
      each(ch, [&](std::size_t i) { sum += x[i]; });
      const double m = sum / static_cast<double>(n * s);
      each(ch, [&](std::size_t i) { squares += (x[i] - m) * (x[i] - m); });
      mean.push_back(m);
      m2.push_back(squares);
    }
  }
  template <class F>
  void each(std::int64_t ch, F f) const {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t k = 0; k < s; ++k) f(static_cast<std::size_t>((i * c + ch) * s + k));
    }
  }
  double count() const { return static_cast<double>(n * s); }
};

Tensor moments_of(const Tensor& x, const EvaluateOptions& options) {
  return run_node({.op = "BatchMoments", .attributes = {}, .operands = {x}}, options)[0];
}

void expect_moments(const Tensor& x, const EvaluateOptions& options, double tolerance) {
  const Direct want(x);
  const auto got = moments_of(x, options).to_doubles();
  for (std::int64_t c = 0; c < want.c; ++c) {
    const auto i = static_cast<std::size_t>(c), channels = static_cast<std::size_t>(want.c);
    const double deviation = std::sqrt(want.m2[i] / want.count());
    EXPECT_EQ(got[i], want.count());
    // The mean is stored as a float.
    EXPECT_NEAR(got[channels + i], want.mean[i], tolerance * deviation + 1e-7 * std::abs(want.mean[i])) << "channel " << c;
    EXPECT_NEAR(got[2 * channels + i], want.m2[i], tolerance * want.m2[i]) << "channel " << c;
  }
}

TEST(BatchMoments, AgreeWithDoubleForEveryShapeAndLayout) {
  for (const Shape& shape : {Shape{7}, Shape{5, 3}, Shape{300, 17}, Shape{2, 1, 5}, Shape{3, 33, 7, 5}, Shape{1, 530, 3, 3}, Shape{2, 8, 40, 40},
                             Shape{2, 64, 60, 60}, Shape{1, 3, 2, 3, 4}}) {
    const Tensor x = random_f32(shape, 3);
    expect_moments(x, {}, 1e-6);
    if (shape.size() < 3) continue;
    expect_moments(x, channels_last(), 1e-6);
    expect_moments(x, channels_last(3), 1e-6);
  }
}

// A mean of 1000 standard deviations, and images whose means lie far apart: squares do not cancel.
TEST(BatchMoments, LargeMeansDoNotCancel) {
  Tensor x = random_f32({4, 19, 20, 20}, 5);
  for (float& v : x.as_mutable<float>()) v = 1000 + v;
  expect_moments(x, channels_last(), 2e-6);
  Tensor apart = random_f32({4, 19, 20, 20}, 6);
  const std::int64_t per_image = apart.size() / 4;
  for (std::int64_t i = 0; i < apart.size(); ++i) {
    float& v = apart.as_mutable<float>()[static_cast<std::size_t>(i)];
    v = static_cast<float>(i / per_image * i / per_image) * 1000 + 0.001f * v;
  }
  expect_moments(apart, channels_last(), 2e-6);
  Tensor late = random_f32({1, 5, 40, 40}, 7);  // the first rows, which give the first centre, are unlike all others
  for (std::int64_t i = 0; i < late.size(); ++i) {
    float& v = late.as_mutable<float>()[static_cast<std::size_t>(i)];
    v = i % 1600 < 40 ? 0 : 500 + 0.01f * v;
  }
  expect_moments(late, channels_last(), 2e-6);
}

TEST(BatchMoments, OfNothingCountZero) {
  expect_close(moments_of(Tensor(DType::kF32, {0, 2, 3, 3}), channels_last()), f32({3, 2}, {0, 0, 0, 0, 0, 0}), 0, 0);
  expect_close(moments_of(Tensor(DType::kF32, {0, 2, 3, 3}), {}), f32({3, 2}, {0, 0, 0, 0, 0, 0}), 0, 0);
}

// Hand-computed: 1, 3 has mean 2 and M2 2; with 5 mean 3 and M2 8; with another 3 the same mean.
TEST(MergeMoments, ByHandAndWithEmptyParts) {
  const float first[] = {2, 0, 2, 0, 2, 0}, second[] = {1, 1, 5, 4, 0, 0}, none[] = {0, 0, 0, 0, 0, 0};
  float out[6];
  merge_moments(first, second, out, 2);
  EXPECT_EQ(std::vector<float>(out, out + 6), (std::vector<float>{3, 1, 3, 4, 8, 0}));
  merge_moments(second, first, out, 2);
  EXPECT_EQ(std::vector<float>(out, out + 6), (std::vector<float>{3, 1, 3, 4, 8, 0}));
  merge_moments(out, none, out, 2);
  EXPECT_EQ(std::vector<float>(out, out + 6), (std::vector<float>{3, 1, 3, 4, 8, 0}));
  merge_moments(none, none, out, 2);
  EXPECT_EQ(std::vector<float>(out, out + 6), std::vector<float>(6, 0.0f));
}

TEST(MergeMoments, OfShardsAreThoseOfTheWhole) {
  Tensor x = random_f32({7, 6, 5, 5}, 9);
  for (std::int64_t i = 0; i < x.size(); ++i) x.as_mutable<float>()[static_cast<std::size_t>(i)] += static_cast<float>(i / 150);  // images differ
  const Direct want(x);
  std::vector<float> all(18, 0.0f);
  for (const auto& [begin, end] : {std::pair{0, 3}, {3, 5}, {5, 5}, {5, 7}}) {
    const Tensor shard = Tensor::of<float>(
        {end - begin, 6, 5, 5}, x.as<float>().subspan(static_cast<std::size_t>(begin * 150), static_cast<std::size_t>((end - begin) * 150)));
    const Tensor m = moments_of(shard, channels_last());
    merge_moments(all.data(), m.as<float>().data(), all.data(), 6);
  }
  for (std::size_t c = 0; c < 6; ++c) {
    EXPECT_EQ(all[c], 175);
    EXPECT_NEAR(all[6 + c], want.mean[c], 1e-6 * std::abs(want.mean[c]));
    EXPECT_NEAR(all[12 + c], want.m2[c], 1e-6 * want.m2[c]);
  }
}

struct Case {
  Tensor dy, x, moments, gamma, beta;
  Attributes attributes;
};

Case make_case(const Shape& shape, bool relu) {
  const std::int64_t c = channels_of(shape);
  Case made{random_f32(shape, 1), random_f32(shape, 2), {}, random_f32({c}, 3), random_f32({c}, 4), {}};
  made.moments = moments_of(made.x, {});
  made.attributes.set("epsilon", 1e-3f);
  if (relu) made.attributes.set("activation", std::string("Relu"));
  return made;
}

// The formulas of the paper in double.
struct Wanted {
  std::vector<float> y, dx, dbeta, dgamma;
  explicit Wanted(const Case& k) : y(static_cast<std::size_t>(k.x.size())), dx(y.size()) {
    const Direct d(k.x);
    const auto dy = k.dy.to_doubles(), gamma = k.gamma.to_doubles(), beta = k.beta.to_doubles(), m = k.moments.to_doubles();
    const bool relu = k.attributes.has("activation");
    for (std::int64_t ch = 0; ch < d.c; ++ch) {
      const auto c = static_cast<std::size_t>(ch), channels = static_cast<std::size_t>(d.c);
      const double n = m[c], mean = m[channels + c], inv = 1 / std::sqrt(m[2 * channels + c] / n + static_cast<double>(1e-3f));
      double sum = 0, product = 0;
      const auto g = [&](std::size_t i) { return relu && y[i] <= 0 ? 0 : dy[i]; };
      d.each(ch, [&](std::size_t i) {
        const double v = (d.x[i] - mean) * inv * gamma[c] + beta[c];
        y[i] = static_cast<float>(relu ? std::max(0.0, v) : v);
        sum += g(i);
        product += g(i) * (d.x[i] - mean) * inv;
      });
      d.each(ch, [&](std::size_t i) { dx[i] = static_cast<float>(gamma[c] * inv * (g(i) - sum / n - (d.x[i] - mean) * inv * product / n)); });
      dbeta.push_back(static_cast<float>(sum));
      dgamma.push_back(static_cast<float>(product));
    }
  }
};

void expect_kernels(const Shape& shape, bool relu, const EvaluateOptions& options) {
  const Case k = make_case(shape, relu);
  const Wanted want(k);
  const std::int64_t c = channels_of(shape);
  const double sums = 3e-7 * static_cast<double>(k.x.size() / c);
  expect_close(run_node({.op = "BatchNormTraining", .attributes = k.attributes, .operands = {k.x, k.moments, k.gamma, k.beta}}, options)[0],
               Tensor::of<float>(shape, std::span<const float>(want.y)), 1e-5, 2e-6);
  const auto got =
      run_node({.op = "BatchNormGradSums", .attributes = k.attributes, .operands = {k.dy, k.x, k.moments, k.gamma, k.beta}, .outputs = 2}, options);
  expect_close(got[0], Tensor::of<float>({c}, std::span<const float>(want.dbeta)), 1e-5, sums);
  expect_close(got[1], Tensor::of<float>({c}, std::span<const float>(want.dgamma)), 1e-5, sums);
  expect_close(run_node({.op = "BatchNormGradInput", .attributes = k.attributes, .operands = {k.dy, k.x, k.moments, k.gamma, k.beta, got[0], got[1]}},
                        options)[0],
               Tensor::of<float>(shape, std::span<const float>(want.dx)), 1e-5, 4e-6);
}

TEST(BatchNormTraining, KernelsAgreeWithTheFormulas) {
  for (const bool relu : {false, true}) {
    for (const Shape& shape :
         {Shape{9}, Shape{6, 5}, Shape{500, 37}, Shape{3, 33, 7, 5}, Shape{1, 530, 3, 3}, Shape{2, 40, 30, 30}, Shape{2, 3, 4}}) {
      expect_kernels(shape, relu, {});
      if (shape.size() < 3) continue;
      expect_kernels(shape, relu, channels_last());
      expect_kernels(shape, relu, channels_last(5));
    }
  }
}

// bf16 rounds the operands and the result and nothing between.
TEST(BatchNormTraining, BFloat16IsStorageAlone) {
  const Shape shape{3, 21, 6, 5};
  const auto rounded = [](const Tensor& t) {
    Tensor r(DType::kF32, t.shape());
    for (std::size_t i = 0; i < r.as<float>().size(); ++i) r.as_mutable<float>()[i] = static_cast<float>(BFloat16(t.as<float>()[i]));
    return r;
  };
  Case k = make_case(shape, true);
  k.x = rounded(k.x);
  k.dy = rounded(k.dy);
  const auto run = [&](const std::string& op, std::vector<Tensor> operands, bool bf16, std::size_t outputs = 1) {
    EvaluateOptions options = channels_last(0, bf16);
    options.widen_outputs = outputs == 2 || op == "BatchMoments";
    return run_node({.op = op, .attributes = op == "BatchMoments" ? Attributes() : k.attributes, .operands = std::move(operands), .outputs = outputs},
                    options);
  };
  expect_close(run("BatchMoments", {k.x}, true)[0], run("BatchMoments", {k.x}, false)[0], 0, 0);
  expect_close(run("BatchNormTraining", {k.x, k.moments, k.gamma, k.beta}, true)[0],
               rounded(run("BatchNormTraining", {k.x, k.moments, k.gamma, k.beta}, false)[0]), 0, 0);
  const auto sums = run("BatchNormGradSums", {k.dy, k.x, k.moments, k.gamma, k.beta}, false, 2);
  const auto stored = run("BatchNormGradSums", {k.dy, k.x, k.moments, k.gamma, k.beta}, true, 2);
  for (std::size_t i = 0; i < 2; ++i) expect_close(stored[i], sums[i], 0, 0);
  const std::vector<Tensor> operands = {k.dy, k.x, k.moments, k.gamma, k.beta, sums[0], sums[1]};
  expect_close(run("BatchNormGradInput", operands, true)[0], rounded(run("BatchNormGradInput", operands, false)[0]), 0, 0);
}

Tensor samples(const Tensor& t, std::int64_t begin, std::int64_t end) {
  Shape shape = t.shape();
  const std::int64_t each = t.size() / shape[0];
  shape[0] = end - begin;
  return Tensor::of<float>(shape, t.as<float>().subspan(static_cast<std::size_t>(begin * each), static_cast<std::size_t>((end - begin) * each)));
}

// Shards that exchange moments and sums give each sample the gradient that it has in the whole batch.
TEST(BatchNormTraining, ShardsTogetherAreTheWholeBatch) {
  Case k = make_case({5, 6, 4, 3}, true);
  const Wanted want(k);
  const std::vector<std::pair<std::int64_t, std::int64_t>> shards = {{0, 3}, {3, 5}};
  Tensor moments(DType::kF32, {3, 6});
  for (const auto& [begin, end] : shards) {
    const Tensor own = moments_of(samples(k.x, begin, end), channels_last());
    merge_moments(moments.as<float>().data(), own.as<float>().data(), moments.as_mutable<float>().data(), 6);
  }
  std::vector<Tensor> sums = {Tensor(DType::kF32, {6}), Tensor(DType::kF32, {6})};
  const auto operands = [&](const auto& shard) {
    return std::vector<Tensor>{samples(k.dy, shard.first, shard.second), samples(k.x, shard.first, shard.second), moments, k.gamma, k.beta};
  };
  for (const auto& shard : shards) {
    const auto own = run_node({.op = "BatchNormGradSums", .attributes = k.attributes, .operands = operands(shard), .outputs = 2}, channels_last());
    for (std::size_t o = 0; o < 2; ++o) {
      for (std::size_t c = 0; c < 6; ++c) sums[o].as_mutable<float>()[c] += own[o].as<float>()[c];
    }
  }
  expect_close(sums[0], Tensor::of<float>({6}, std::span<const float>(want.dbeta)), 1e-5, 1e-5);
  expect_close(sums[1], Tensor::of<float>({6}, std::span<const float>(want.dgamma)), 1e-5, 1e-5);
  const Tensor dx = Tensor::of<float>(k.x.shape(), std::span<const float>(want.dx));
  for (const auto& shard : shards) {
    auto all = operands(shard);
    all.insert(all.end(), sums.begin(), sums.end());
    expect_close(run_node({.op = "BatchNormGradInput", .attributes = k.attributes, .operands = all}, channels_last())[0],
                 samples(dx, shard.first, shard.second), 1e-5, 4e-6);
  }
}

TEST(BatchNormTraining, RefusesWhatDoesNotFit) {
  const Case k = make_case({2, 3, 2, 2}, false);
  EXPECT_THROW(run_node({.op = "BatchNormTraining", .attributes = {}, .operands = {k.x, random_f32({3, 4}, 1), k.gamma, k.beta}}), InvalidModel);
  EXPECT_THROW(run_node({.op = "BatchNormTraining", .attributes = {}, .operands = {k.x, k.moments, random_f32({2}, 1), k.beta}}), InvalidModel);
  EXPECT_THROW(run_node({.op = "BatchNormTraining",
                         .attributes = attributes({{"activation", std::string("Tanh")}}),
                         .operands = {k.x, k.moments, k.gamma, k.beta}}),
               InvalidModel);
}

// BatchMoments -> (ShardMoments) -> BatchNormTraining.
Graph norm_graph(const Shape& shape, bool synchronised, bool relu) {
  GraphBuilder b;
  const Shape c{channels_of(shape)};
  const ValueId x = b.input("x", DType::kF32, shape), gamma = b.input("gamma", DType::kF32, c), beta = b.input("beta", DType::kF32, c);
  b.graph.value(gamma).parameter = b.graph.value(beta).parameter = true;
  ValueId moments = b.node("moments", "BatchMoments", {x});
  if (synchronised) moments = b.node("all", "ShardMoments", {moments});
  Attributes a = attributes({{"epsilon", 1e-3f}, {"synchronised", std::int64_t{synchronised}}});
  if (relu) a.set("activation", std::string("Relu"));
  b.output(b.node("y", "BatchNormTraining", {x, moments, gamma, beta}, a));
  return b.graph;
}

// The gradient with respect to x contains the way through the moments.
TEST(GradientOfBatchNorm, InputScaleAndShift) {
  for (const bool synchronised : {false, true}) {
    for (const Shape& shape : {Shape{4, 3}, Shape{2, 5, 3, 3}, Shape{3, 2, 7}, Shape{1, 17, 4, 5}}) {
      const Shape c{shape[1]};
      check_gradients(norm_graph(shape, synchronised, false), {random_f32(shape, 1), random_f32(c, 2), random_f32(c, 3)});
    }
  }
}

// No normalised value lies within a step of ReLU's kink (a gradient there would be off by far more than is allowed).
TEST(GradientOfBatchNorm, ThroughTheFusedRelu) {
  for (const Shape& shape : {Shape{4, 3}, Shape{2, 5, 3, 3}, Shape{1, 17, 4, 5}}) {
    const Shape c{shape[1]};
    check_gradients(norm_graph(shape, false, true), {random_f32(shape, 1), random_f32(c, 2), random_f32(c, 3)});
  }
}

// What is per channel stays float32 where activations are stored as bf16.
TEST(BatchNormTraining, MomentsAndSumsStayFloatInBFloat16Plans) {
  Graph graph = norm_graph({2, 5, 3, 3}, false, false);
  infer(graph, {.shapes = {{2, 5, 3, 3}, {5}, {5}}, .values = {}});
  const GradientSeed seed{graph.outputs[0], graph.add_constant("dy", random_f32({2, 5, 3, 3}, 1))};
  const auto gradients = add_gradients(graph, {&seed, 1}, graph.inputs);
  for (const ValueId g : gradients) {
    graph.outputs.push_back(g);
    graph.declared_outputs.push_back({});
  }
  const CpuInfo cpu;
  const Plan plan = make_plan(graph, {.shapes = {{2, 5, 3, 3}, {5}, {5}}, .values = {}}, {.precision = Precision::kBF16}, cpu);
  int seen = 0;
  for (const Step& step : plan.steps) {
    if (step.op != "BatchMoments" && step.op != "BatchNormGradSums") continue;
    ++seen;
    EXPECT_EQ(step.in_descs.at(step.op == "BatchMoments" ? 0 : 1).dtype, DType::kBF16) << step.op;
    for (const TensorDesc& d : step.out_descs) EXPECT_EQ(d.dtype, DType::kF32) << step.op;
  }
  EXPECT_EQ(seen, 2);
}

TEST(FuseBatchNormActivation, TakesTheReluThatAloneReads) {
  Graph graph = norm_graph({2, 5, 3, 3}, false, false);
  GraphBuilder b;
  b.graph = std::move(graph);
  const ValueId y = b.graph.outputs[0], relu = b.node("relu", "Relu", {y});
  b.graph.outputs = {relu};
  const std::vector<Tensor> inputs = {random_f32({2, 5, 3, 3}, 1), random_f32({5}, 2), random_f32({5}, 3)};
  const auto fused = [&](Graph g) {
    infer(g, {.shapes = {{2, 5, 3, 3}, {5}, {5}}, .values = {}});
    const int n = fuse_batch_norm_activation(g);
    return std::pair{n, g};
  };
  const auto [count, made] = fused(b.graph);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(made.nodes.size(), 2u);
  expect_close(run_planned(made, inputs)[0], run_planned(b.graph, inputs)[0], 0, 0);
  check_gradients(made, inputs);
  b.output(y);  // somebody else reads what lies between
  EXPECT_EQ(fused(b.graph).first, 0);
}

}  // namespace
}  // namespace tandem::test
