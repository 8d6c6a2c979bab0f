#include "models/weights_map.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "importer/importer.h"
#include "io/keras_h5.h"
#include "runtime/base/error.h"
#include "runtime/base/sha256.h"
#include "tests/support/files.h"
#include "tests/support/node_test.h"

namespace tandem::models {
namespace {

using test::f32;

std::string source(const std::string& path) { return std::string(TANDEM_SOURCE_DIR) + "/" + path; }

std::string sha256(const Tensor& t) {
  Sha256 sum;
  sum.update(t.data(), t.bytes());
  return sum.hex();
}

// A graph that is built operator by operator.
struct Net {
  Graph graph;
  ValueId add(const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    Node node;
    node.op = op;
    node.attributes = std::move(attributes);
    node.inputs = std::move(inputs);
    node.outputs = {graph.add_value("v" + std::to_string(graph.values.size()), DType::kF32)};
    graph.nodes.push_back(node);
    return node.outputs[0];
  }
  ValueId input(Shape shape) {
    const ValueId id = graph.add_value("x", DType::kF32);
    graph.inputs.push_back(id);
    graph.declared_inputs.push_back({DType::kF32, true, shape, std::vector<std::string>(shape.size())});
    return id;
  }
  ValueId weight(const std::string& name, Shape shape) {
    Tensor t(DType::kF32, shape);
    float v = 0;
    for (float& x : t.as_mutable<float>()) x = v++;
    return graph.add_constant(name, t);
  }
  void finish(ValueId output) {
    graph.outputs.push_back(output);
    graph.declared_outputs.push_back({DType::kF32, false, {}, {}});
  }
};

Attributes group(std::int64_t g) {
  Attributes a;
  a.set("group", g);
  return a;
}

std::vector<std::string> names(const std::vector<ParameterLayer>& layers) {
  std::vector<std::string> out;
  for (const auto& l : layers) out.push_back(l.name);
  return out;
}

// ---- arrays

TEST(ArrayForm, ConvolutionKernelsAreHwio) {
  Net net;
  const ValueId x = net.input({-1, 2, 5, 5});
  net.finish(net.add("Conv", {x, net.weight("c/kernel", {3, 2, 1, 2}), net.weight("c/bias", {3})}));
  const auto layers = keras_layers(net.graph);
  ASSERT_EQ(layers.size(), 1u);
  EXPECT_EQ(layers[0].weights[0].name, "c/kernel:0");
  EXPECT_EQ(layers[0].weights[1].name, "c/bias:0");
  // (O, I, h, w) = (3, 2, 1, 2) to (h, w, I, O): w runs before I before O.
  test::expect_close(layers[0].weights[0].read(), f32({1, 2, 2, 3}, {0, 4, 8, 2, 6, 10, 1, 5, 9, 3, 7, 11}));
}

TEST(ArrayForm, DepthwiseKernelsAreHwcm) {
  Net net;
  const ValueId x = net.input({-1, 2, 5, 5});
  net.finish(net.add("Conv", {x, net.weight("d/kernel", {4, 1, 1, 2})}, group(2)));
  const auto layers = keras_layers(net.graph);
  EXPECT_EQ(layers[0].weights[0].name, "d/depthwise_kernel:0");
  // Output channel c * 2 + m of the graph is [.., .., c, m].
  test::expect_close(layers[0].weights[0].read(), f32({1, 2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7}));
}

TEST(ArrayForm, DenseBehindAFlattenSumsInKerasOrder) {
  for (const bool transposed : {false, true}) {
    Net net;
    const ValueId x = net.input({-1, 2, 1, 3});
    const ValueId y = net.add("Flatten", {net.add("MaxPool", {x}, [] {
                                Attributes a;
                                a.set("kernel_shape", std::vector<std::int64_t>{1, 1});
                                return a;
                              }())});
    Attributes a;
    a.set("transB", std::int64_t{transposed});
    net.finish(net.add("Gemm", {y, net.weight("d/kernel", transposed ? Shape{1, 6} : Shape{6, 1})}, a));
    // Row c * 3 + w of the graph is row w * 2 + c of Keras.
    test::expect_close(keras_layers(net.graph)[0].weights[0].read(), f32({6, 1}, {0, 3, 1, 4, 2, 5}));
    Graph graph = net.graph;
    load_weights(graph, keras_layers(net.graph), {});
    EXPECT_EQ(sha256(graph.value(net.graph.nodes.back().inputs[1]).constant), sha256(net.graph.value(net.graph.nodes.back().inputs[1]).constant));
  }
}

TEST(ArrayForm, EveryFormGoesThereAndBack) {
  Net net;
  const ValueId x = net.input({-1, 4, 6, 6});
  ValueId y = net.add("Conv", {x, net.weight("a/kernel", {6, 2, 3, 2}), net.weight("a/bias", {6})}, group(2));
  y = net.add("PRelu", {y, net.weight("p/alpha", {6, 1, 1})});
  y = net.add("Conv", {y, net.weight("s/depthwise_kernel", {12, 1, 3, 3})}, group(6));
  y = net.add("Conv", {y, net.weight("s/pointwise_kernel", {5, 12, 1, 1}), net.weight("s/bias", {5})});
  y = net.add("ConvTranspose", {y, net.weight("t/kernel", {5, 3, 2, 3})});
  y = net.add("BatchNormalization",
              {y, net.weight("b/gamma", {3}), net.weight("b/beta", {3}), net.weight("b/moving_mean", {3}), net.weight("b/moving_variance", {3})});
  y = net.add("Flatten", {net.add("GlobalAveragePool", {y})});
  y = net.add("Add", {net.add("MatMul", {y, net.weight("m/kernel", {3, 7})}), net.weight("m/bias", {1, 7})});
  net.finish(y);
  const auto layers = keras_layers(net.graph);
  std::vector<std::string> order;
  std::map<std::string, Shape> shapes;
  for (const Layer& l : layers) {
    for (const LayerWeight& w : l.weights) {
      order.push_back(w.name);
      shapes[w.name] = w.shape;
    }
  }
  EXPECT_EQ(order,
            (std::vector<std::string>{"a/kernel:0", "a/bias:0", "p/alpha:0", "s/depthwise_kernel:0", "s/pointwise_kernel:0", "s/bias:0", "t/kernel:0",
                                      "b/gamma:0", "b/beta:0", "b/moving_mean:0", "b/moving_variance:0", "m/kernel:0", "m/bias:0"}));
  EXPECT_EQ(shapes["a/kernel:0"], (Shape{3, 2, 2, 6}));
  EXPECT_EQ(shapes["p/alpha:0"], (Shape{1, 1, 6}));
  EXPECT_EQ(shapes["s/depthwise_kernel:0"], (Shape{3, 3, 6, 2}));
  EXPECT_EQ(shapes["s/pointwise_kernel:0"], (Shape{1, 1, 12, 5}));
  EXPECT_EQ(shapes["t/kernel:0"], (Shape{2, 3, 3, 5}));
  EXPECT_EQ(shapes["m/bias:0"], (Shape{7}));
  Graph blank = net.graph;
  for (Value& v : blank.values) {
    if (v.known()) v.constant = Tensor(DType::kF32, v.constant.shape());
  }
  const LoadReport report = load_weights(blank, layers, {});
  EXPECT_EQ(report.used.size(), 13u);
  EXPECT_TRUE(report.unused.empty() && report.missing.empty() && report.mismatched.empty());
  for (std::size_t i = 0; i < blank.values.size(); ++i) {
    if (blank.values[i].known()) test::expect_close(blank.values[i].constant, net.graph.values[i].constant, 0, 0);
  }
}

// ---- order

TEST(LayerOrder, TheFirstArgumentOfAnAddComesFirstAmongEqualDepths) {
  for (const bool main_first : {true, false}) {
    Net net;
    const ValueId x = net.add("Conv", {net.input({-1, 2, 4, 4}), net.weight("stem/kernel", {2, 2, 1, 1})});
    const ValueId shortcut = net.add("Conv", {x, net.weight("shortcut/kernel", {2, 2, 1, 1})});
    const ValueId main =
        net.add("Conv", {net.add("Relu", {net.add("Conv", {x, net.weight("one/kernel", {2, 2, 1, 1})})}), net.weight("two/kernel", {2, 2, 1, 1})});
    net.finish(net.add("Add", main_first ? std::vector{main, shortcut} : std::vector{shortcut, main}));
    EXPECT_EQ(names(parameter_layers(net.graph)), main_first ? (std::vector<std::string>{"stem", "one", "two", "shortcut"})
                                                             : (std::vector<std::string>{"stem", "one", "shortcut", "two"}));
  }
}

// ---- refusals

TEST(WeightsMap, RefusesWhatHasNoKerasCounterpart) {
  const auto refused = [](const std::string& kernel, const std::string& op = "Conv") {
    Net net;
    net.finish(net.add(op, {net.input({-1, 2, 4, 4}), net.weight(kernel, {2, 2, 1, 1})}));
    try {
      parameter_layers(net.graph);
    } catch (const Unsupported& e) {
      return std::string(e.what()).find(kernel) != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refused("conv1_weights_fused_bn"));
  EXPECT_TRUE(refused("conv1/Conv2D/ReadVariableOp:0"));
  EXPECT_TRUE(refused("kernel"));
  EXPECT_TRUE(refused("c/gamma"));
  EXPECT_TRUE(refused("c/kernel", "Mul"));
  Net empty;
  empty.finish(empty.add("Relu", {empty.input({1, 2})}));
  EXPECT_THROW(parameter_layers(empty.graph), Unsupported);
}

TEST(WeightsMap, NamesOfTheFilesOwnListEveryConstant) {
  Net net;
  ValueId y = net.add("Mul", {net.input({-1, 2, 4, 4}), net.weight("scale", {1, 2, 1, 1})});
  y = net.add("Conv", {y, net.weight("layer1.0.conv.weight", {3, 2, 1, 1})});
  std::vector<ValueId> norm = {y};
  for (const char* word : {"weight", "bias", "running_mean", "running_var"}) norm.push_back(net.weight(std::string("layer1.0.bn.") + word, {3}));
  net.finish(net.add("BatchNormalization", norm));
  EXPECT_THROW(keras_layers(net.graph), Unsupported);
  std::vector<std::string> names;
  for (const Layer& layer : own_layers(net.graph)) {
    for (const LayerWeight& w : layer.weights) {
      names.push_back(layer.name + ": " + w.name);
      EXPECT_EQ(w.read().shape(), w.shape);
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"scale: scale", "layer1.0.conv: layer1.0.conv.weight", "layer1.0.bn: layer1.0.bn.weight",
                                             "layer1.0.bn: layer1.0.bn.bias", "layer1.0.bn: layer1.0.bn.running_mean",
                                             "layer1.0.bn: layer1.0.bn.running_var"}));
}

// ---- loading

struct Loading : testing::Test {
  Loading() {
    ValueId y = net.add("Conv", {net.input({-1, 2, 4, 4}), net.weight("a/kernel", {3, 2, 1, 1}), net.weight("a/bias", {3})});
    y = net.add("Conv", {y, net.weight("b/kernel", {2, 3, 1, 1})});
    net.finish(y);
  }
  static LayerWeight weight(const std::string& name, Shape shape, float value) {
    Tensor t(DType::kF32, shape);
    for (float& x : t.as_mutable<float>()) x = value;
    return {name, DType::kF32, shape, [t] { return t; }};
  }
  float first(const Graph& g, const std::string& name) const {
    for (const Value& v : g.values) {
      if (v.name == name) return v.constant.as<float>()[0];
    }
    return -1;
  }
  Net net;
};

TEST_F(Loading, ByNameReportsWhatIsLeftOver) {
  Graph g = net.graph;
  const std::vector<Layer> file = {{"b", {weight("b/kernel:0", {1, 1, 3, 2}, 5)}},
                                   {"act", {}},
                                   {"a", {weight("a/kernel:0", {1, 1, 2, 3}, 6), weight("a/bias:0", {3}, 7)}},
                                   {"c", {weight("c/gamma:0", {1}, 1)}}};
  const LoadReport r = load_weights(g, file, {});
  EXPECT_EQ(r.match, Match::kName);
  EXPECT_EQ(r.used.size(), 3u);
  EXPECT_EQ(r.unused, (std::vector<std::string>{"c c/gamma:0"}));
  EXPECT_EQ(first(g, "b/kernel"), 5);
  EXPECT_EQ(first(g, "a/bias"), 7);
}

TEST_F(Loading, ByOrderIgnoresNamesAndOldWords) {
  Graph g = net.graph;
  const std::vector<Layer> file = {{"input", {}},
                                   {"convolution2d_1", {weight("convolution2d_1_W:0", {1, 1, 2, 3}, 6), weight("convolution2d_1_b:0", {3}, 7)}},
                                   {"convolution2d_2", {weight("convolution2d_2_W:0", {1, 1, 3, 2}, 5)}}};
  EXPECT_EQ(load_weights(g, file, {}).match, Match::kOrder);
  EXPECT_EQ(first(g, "b/kernel"), 5);
  EXPECT_THROW(load_weights(g, {file[1]}, {}), InvalidModel);
}

TEST_F(Loading, NestedModelsAreMatchedByTheirInnerNames) {
  Graph g = net.graph;
  // All trainable weights first, as an unfrozen inner model is stored.
  const std::vector<Layer> file = {
      {"backbone", {weight("b/kernel:0", {1, 1, 3, 2}, 5), weight("a/kernel:0", {1, 1, 2, 3}, 6), weight("a/bias:0", {3}, 7)}}};
  EXPECT_EQ(load_weights(g, file, {}).used.size(), 3u);
  EXPECT_EQ(first(g, "a/kernel"), 6);
}

TEST_F(Loading, ShapesMustFitUnlessAllowed) {
  Graph g = net.graph;
  const std::vector<Layer> file = {{"a", {weight("a/kernel:0", {1, 1, 2, 3}, 6), weight("a/bias:0", {3}, 7)}},
                                   {"b", {weight("b/kernel:0", {1, 1, 3, 4}, 5)}}};
  try {
    load_weights(g, file, {});
    FAIL();
  } catch (const InvalidModel& e) {
    EXPECT_NE(std::string(e.what()).find("b/kernel needs [1, 1, 3, 2]"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("[1, 1, 3, 4]"), std::string::npos) << e.what();
  }
  EXPECT_EQ(first(g, "a/kernel"), 0) << "all or nothing";
  LoadOptions options;
  options.allow_mismatch = true;
  EXPECT_EQ(load_weights(g, file, options).mismatched.size(), 1u);
  EXPECT_EQ(first(g, "a/kernel"), 6);
  options.match = Match::kOrder;
  EXPECT_EQ(load_weights(g, file, options).mismatched.size(), 1u);
}

TEST_F(Loading, NothingThatMatchesIsAnError) {
  Graph g = net.graph;
  LoadOptions options;
  options.match = Match::kName;
  const std::vector<Layer> none = {{"x", {weight("x/kernel:0", {1}, 6)}}};
  EXPECT_THROW(load_weights(g, none, options), InvalidModel);
  options.allow_missing = true;
  EXPECT_THROW(load_weights(g, none, options), InvalidModel);
  const std::vector<Layer> part = {{"b", {weight("b/kernel:0", {1, 1, 3, 2}, 5)}}};
  EXPECT_EQ(load_weights(g, part, options).missing, (std::vector<std::string>{"a/kernel", "a/bias"}));
  options.allow_missing = false;
  EXPECT_THROW(load_weights(g, part, options), InvalidModel);
}

// ---- the real thing

// tests/data/keras_h5/xception_mini.txt lists the arrays of the .h5 that Keras 3 wrote for this network (layer, name, type, shape, SHA-256).
TEST(XceptionMini, SavesTheArraysThatKerasHas) {
  const Graph graph = import_file(test::trained_network());
  std::ostringstream got;
  for (const Layer& layer : keras_layers(graph)) {
    for (const LayerWeight& w : layer.weights) {
      const Tensor t = w.read();
      got << layer.name << '\t' << w.name.substr(0, w.name.find(':')) << '\t' << name_of(t.dtype()) << '\t';
      for (std::size_t i = 0; i < t.shape().size(); ++i) got << (i ? "," : "") << t.shape()[i];
      got << '\t' << sha256(t) << '\n';
    }
  }
  std::ifstream in(source("tests/data/keras_h5/xception_mini.txt"));
  std::ostringstream want;
  for (std::string line; std::getline(in, line);) {
    if (!line.ends_with("\t-")) want << line << '\n';
  }
  EXPECT_EQ(got.str(), want.str());
}

TEST(XceptionMini, AFileGoesRoundToTheSameNetwork) {
  const Graph graph = import_file(test::trained_network());
  const std::string path = testing::TempDir() + "tandem_xception_mini.h5";
  io::write_keras_h5(path, keras_layers(graph), {});
  const auto file = io::read_keras_h5(path);
  io::verify_digest(file, path);
  Graph blank = graph;
  for (const ParameterLayer& layer : parameter_layers(graph)) {
    for (const Parameter& p : layer.parameters) blank.value(p.value).constant = Tensor(DType::kF32, graph.value(p.value).constant.shape());
  }
  for (const Match match : {Match::kName, Match::kOrder}) {
    Graph loaded = blank;
    LoadOptions options;
    options.match = match;
    load_weights(loaded, file.layers, options);
    for (std::size_t i = 0; i < graph.values.size(); ++i) {
      if (!graph.values[i].known()) continue;
      ASSERT_EQ(sha256(loaded.values[i].constant), sha256(graph.values[i].constant)) << graph.values[i].name;
    }
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tandem::models
