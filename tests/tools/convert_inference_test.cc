// `convert --inference`: the file it writes computes what the original does, at every batch and size that the original leaves open.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "runtime/base/error.h"
#include "tests/support/files.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/subprocess.h"
#include "tools/model_inputs.h"
#include "tools/tandem.h"

namespace tandem::test {
namespace {

constexpr const char* kFixtures = TANDEM_SOURCE_DIR "/tests/data/fixtures";

std::string converted(const TemporaryFolder& folder, const std::string& from, std::vector<std::string> more = {}) {
  const std::string to = folder / "out.onnx";
  std::vector<std::string> arguments = {"convert", from, "-o", to, "--inference"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished r = run_tandem(arguments);
  EXPECT_EQ(r.code, 0) << r.err;
  return to;
}

int count_of(const Graph& graph, const std::string& op) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.op == op; }));
}

// Folding rounds weights anew: the largest difference, relative to the largest value.
double distance(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return INFINITY;
  const auto x = a.to_doubles(), y = b.to_doubles();
  double most = 0, largest = 1e-3;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isfinite(x[i])) largest = std::max(largest, std::abs(x[i]));
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    most = std::isnan(x[i] - y[i]) ? INFINITY : std::max(most, std::abs(x[i] - y[i]));
  }
  return most / largest;
}

// True when the original runs at that batch and size; then the converted file must give the same.
bool same_at(const Model& original, const Model& made, std::int64_t batch, std::int64_t size) {
  std::vector<Tensor> inputs, expected;
  try {
    inputs = cli::random_inputs(original.graph(), cli::concrete_shapes(original.graph(), {.batch = batch, .size = size, .shapes = {}}), 7);
    expected = Predictor(original).run(inputs);
  } catch (const Error&) {
    return false;
  }
  try {
    const auto got = Predictor(made).run(inputs);
    EXPECT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_LT(distance(got[i], expected[i]), 2e-4) << "output " << i;
  } catch (const Error& e) {
    ADD_FAILURE() << e.what();
  }
  return true;
}

TEST(ConvertInference, FixturesGiveTheSameAtEveryBatchAndSize) {
  const TemporaryFolder folder;
  int at_two = 0, at_other_size = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures)) {
    const std::string from = entry.path() / "model.onnx";
    if (!std::filesystem::exists(from)) continue;
    const Model original = Model::from_file(from);
    const Model made = Model::from_file(converted(folder, from));
    for (const auto& [batch, size] : {std::pair{1, 64}, {2, 64}, {3, 96}}) {
      SCOPED_TRACE(testing::Message() << from << " batch " << batch << " size " << size);
      const bool ran = same_at(original, made, batch, size);
      at_two += ran && batch == 2;
      bool open = false;
      for (const ValueId id : original.graph().inputs) {
        const Value& v = original.graph().value(id);
        open = open || !v.shape_known || std::any_of(v.shape.begin() + (v.shape.empty() ? 0 : 1), v.shape.end(), [](auto d) { return d < 0; });
      }
      at_other_size += ran && open && batch == 3;
    }
  }
  EXPECT_GE(at_two, 25);
  EXPECT_GE(at_other_size, 2);
}

// Conv (1x1, stride 2, weight 3, bias 2) -> batch norm (2 (v - 1) / 1 + 5) -> Resize to the height and width of the input.
std::string resized_to_the_input(std::int64_t batch, std::int64_t size) {
  OnnxGraph g;
  g.inputs = {value_bytes("x", 1, {batch, 1, size, size})};
  g.outputs = {value_bytes("y", 1, {batch, 1, size, size})};
  g.initializers = {float_tensor("w", {1, 1, 1, 1}, {3}), float_tensor("b", {1}, {2}),    float_tensor("gamma", {1}, {2}),
                    float_tensor("beta", {1}, {5}),       float_tensor("mean", {1}, {1}), float_tensor("var", {1}, {1}),
                    int64_tensor("zero", {1}, {0}),       int64_tensor("two", {1}, {2}),  int64_tensor("four", {1}, {4})};
  g.nodes = {
      {"Conv", {"x", "w", "b"}, {"c"}, {ints_attribute("strides", {2, 2})}},
      {"BatchNormalization", {"c", "gamma", "beta", "mean", "var"}, {"n"}, {float_attribute("epsilon", 0)}},
      {"Shape", {"n"}, {"small"}},
      {"Shape", {"x"}, {"large"}},
      {"Slice", {"small", "zero", "two"}, {"front"}},
      {"Slice", {"large", "two", "four"}, {"back"}},
      {"Concat", {"front", "back"}, {"sizes"}, {int_attribute("axis", 0)}},
      {"Resize",
       {"n", "", "", "sizes"},
       {"y"},
       {text_attribute("mode", "nearest"), text_attribute("coordinate_transformation_mode", "asymmetric"), text_attribute("nearest_mode", "floor")}}};
  return model_bytes({.graph = g});
}

TEST(ConvertInference, AResizeToTheInputsShapeKeepsFollowingIt) {
  const TemporaryFolder folder;
  const Model made = Model::from_file(converted(folder, folder.write("m.onnx", resized_to_the_input(-1, -1))));
  EXPECT_EQ(count_of(made.graph(), "BatchNormalization"), 0);
  for (const auto& [batch, size] : {std::pair<std::int64_t, std::int64_t>{1, 224}, {2, 6}, {3, 10}}) {
    Tensor x(DType::kF32, {batch, 1, size, size});
    auto values = x.as_mutable<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) - 40;
    const auto y = Predictor(made).run({x}).at(0);
    ASSERT_EQ(y.shape(), x.shape());
    int wrong = 0;
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const std::int64_t column = i % size, row = i / size % size, image = i / size / size;
      const float pixel = values[static_cast<std::size_t>((image * size + row / 2 * 2) * size + column / 2 * 2)];
      wrong += y.as<float>()[static_cast<std::size_t>(i)] != 6 * pixel + 7;  // 2 (3 p + 2 - 1) + 5
    }
    EXPECT_EQ(wrong, 0) << batch << " x " << size;
  }
}

TEST(ConvertInference, FoldsShapesWhereEveryDimensionIsFixedInTheWrittenFile) {
  const TemporaryFolder folder;
  const std::string fixed = folder.write("fixed.onnx", resized_to_the_input(1, 8)), open = folder.write("open.onnx", resized_to_the_input(-1, 8));
  EXPECT_EQ(count_of(Model::from_file(converted(folder, open)).graph(), "Shape"), 2);
  EXPECT_EQ(count_of(Model::from_file(converted(folder, fixed)).graph(), "Shape"), 2) << "the importer lets a batch of one free";
  // --batch-size says what the written file fixes.
  EXPECT_EQ(count_of(Model::from_file(converted(folder, fixed, {"--batch", "1"})).graph(), "Shape"), 0);
  EXPECT_EQ(count_of(Model::from_file(converted(folder, fixed, {"--batch", "dynamic"})).graph(), "Shape"), 2);
  const Model three = Model::from_file(converted(folder, open, {"--batch", "3"}));
  EXPECT_EQ(count_of(three.graph(), "Shape"), 0);
  EXPECT_EQ(Predictor(three).run({Tensor(DType::kF32, {3, 1, 8, 8})}).at(0).shape(), (Shape{3, 1, 8, 8}));
}

}  // namespace
}  // namespace tandem::test
