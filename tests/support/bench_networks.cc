#include "tests/support/bench_networks.h"

#include <cmath>

#include "tests/support/graph_builder.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

using Ints = std::vector<std::int64_t>;

struct Image {
  ValueId id;
  std::int64_t channels;
};

class Builder {
 public:
  explicit Builder(std::int64_t size) : size_(size), input_{b_.input("image", DType::kF32, {-1, 3, size, size}), 3} {}
  Image input() const { return input_; }

  Image conv(Image x, std::int64_t outputs, std::int64_t kernel, std::int64_t stride = 1, std::int64_t group = 1) {
    const std::int64_t pad = kernel / 2;
    const ValueId w = weights({outputs, x.channels / group, kernel, kernel}, kernel * kernel * x.channels / group);
    return {node("Conv", {x.id, w}, attributes({{"strides", Ints{stride, stride}}, {"pads", Ints{pad, pad, pad, pad}}, {"group", group}})), outputs};
  }
  Image norm(Image x) {
    const Shape c{x.channels};
    return {node("BatchNormalization", {x.id, near_one(c), weights(c, 100), weights(c, 100), near_one(c)}), x.channels};
  }
  Image relu(Image x) { return {node("Relu", {x.id}), x.channels}; }
  Image relu6(Image x) { return {node("Clip", {x.id, b_.constant(name(), f32({}, {0})), b_.constant(name(), f32({}, {6}))}), x.channels}; }
  Image add(Image x, Image y) { return {node("Add", {x.id, y.id}), x.channels}; }
  Image max_pool(Image x) {
    return {node("MaxPool", {x.id}, attributes({{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}})), x.channels};
  }
  Image separable(Image x, std::int64_t outputs) { return norm(conv(conv(x, x.channels, 3, 1, x.channels), outputs, 1)); }

  BenchNetwork classifier(const char* name, Image x) {
    const ValueId flat = node("Flatten", {node("GlobalAveragePool", {x.id})});
    const ValueId logits =
        node("Gemm", {flat, weights({10, x.channels}, 16 * x.channels), weights({10}, 100)}, attributes({{"transB", std::int64_t{1}}}));
    b_.output(node("Softmax", {logits}));
    return {name, std::move(b_.graph), {3, size_, size_}};
  }

 private:
  std::string name() { return "n" + std::to_string(count_++); }
  ValueId node(const std::string& op, std::vector<ValueId> inputs, Attributes a = {}) {
    const std::string n = name();
    return b_.node(n, op, std::move(inputs), std::move(a));
  }
  // He's scale for a sum of `terms`: variance 2 / terms, here of uniform numbers.
  ValueId weights(Shape shape, std::int64_t terms) {
    Tensor t = random_f32(std::move(shape), count_ + 1000);
    const float scale = std::sqrt(6.0f / static_cast<float>(std::max<std::int64_t>(1, terms)));
    for (float& v : t.as_mutable<float>()) v *= scale;
    return b_.constant(name(), std::move(t));
  }
  ValueId near_one(Shape shape) {
    Tensor t = random_f32(std::move(shape), count_ + 1000);
    for (float& v : t.as_mutable<float>()) v = 1 + 0.5f * v;
    return b_.constant(name(), std::move(t));
  }

  GraphBuilder b_;
  std::uint64_t count_ = 0;
  const std::int64_t size_;
  const Image input_;
};

BenchNetwork xception() {
  Builder b(45);
  Image x = b.relu(b.norm(b.conv(b.input(), 32, 3, 2)));
  x = b.relu(b.norm(b.conv(x, 40, 3)));
  const Image shortcut = b.norm(b.conv(x, 72, 1, 2));
  x = b.separable(b.relu(b.separable(b.relu(x), 72)), 72);
  x = b.add(b.max_pool(x), shortcut);
  Image y = x;
  for (int i = 0; i < 3; ++i) y = b.separable(b.relu(y), 72);
  x = b.add(y, x);
  return b.classifier("xception", b.relu(b.separable(x, 100)));
}

Image bottleneck(Builder& b, Image x, std::int64_t middle, std::int64_t outputs, std::int64_t stride) {
  Image y = b.relu(b.norm(b.conv(x, middle, 1)));
  y = b.norm(b.conv(b.relu(b.norm(b.conv(y, middle, 3, stride))), outputs, 1));
  const bool same = x.channels == outputs && stride == 1;
  return b.relu(b.add(y, same ? x : b.norm(b.conv(x, outputs, 1, stride))));
}

BenchNetwork resnet() {
  Builder b(49);
  Image x = b.max_pool(b.relu(b.norm(b.conv(b.input(), 16, 7, 2))));
  x = bottleneck(b, x, 16, 64, 1);
  x = bottleneck(b, x, 16, 64, 1);
  x = bottleneck(b, x, 24, 96, 2);
  return b.classifier("resnet", x);
}

Image inverted(Builder& b, Image x, std::int64_t expand, std::int64_t outputs, std::int64_t stride) {
  Image y = expand == 1 ? x : b.relu6(b.norm(b.conv(x, x.channels * expand, 1)));
  y = b.norm(b.conv(b.relu6(b.norm(b.conv(y, y.channels, 3, stride, y.channels))), outputs, 1));
  return x.channels == outputs && stride == 1 ? b.add(y, x) : y;
}

BenchNetwork mobilenet() {
  Builder b(40);
  Image x = b.relu6(b.norm(b.conv(b.input(), 16, 3, 2)));
  x = inverted(b, x, 1, 8, 1);
  x = inverted(b, x, 6, 12, 2);
  x = inverted(b, x, 6, 12, 1);
  return b.classifier("mobilenet", b.relu6(b.norm(b.conv(x, 80, 1))));
}

}  // namespace

std::vector<BenchNetwork> bench_networks() {
  std::vector<BenchNetwork> all;
  all.push_back(xception());
  all.push_back(resnet());
  all.push_back(mobilenet());
  return all;
}

}  // namespace tandem::test
