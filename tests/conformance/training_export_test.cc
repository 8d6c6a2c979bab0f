// Networks exported in training mode (TorchScript, training=TRAINING), imported for inference.
//
// Such a file does not hold the moving statistics of its source: the exporter runs the network once, in training mode, and that run's update is
// in them: u = m * u0 + (1 - m) * b, with the statistics b of the fixture's own input (torch takes the unbiased variance) and ONNX's momentum m.
// So the source's answer in inference (output_0) follows from the file only after the update is taken back. That is done here: b comes from
// the file run as written, by ONNX's own update u' = m * u + (1 - m) * b.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "importer/importer.h"
#include "importer/tensor_proto.h"
#include "tests/conformance/fixtures.h"
#include "tools/tandem.h"
#include "tools/tensor_files.h"

namespace tandem::test {
namespace {

bool is_batch_norm(const Node& node) { return node.op == "BatchNormalization"; }

// The graph in training mode, whose outputs are, for each batch normalisation: its input, the updated mean, the updated variance.
Graph statistics_of(Graph graph) {
  graph.outputs.clear();
  graph.declared_outputs.clear();
  for (Node& node : graph.nodes) {
    if (!is_batch_norm(node)) continue;
    node.attributes.set("training_mode", std::int64_t{1});
    const std::string name = graph.value(node.outputs.at(0)).name;
    node.outputs.resize(1);
    for (const char* what : {" updated mean", " updated variance"}) node.outputs.push_back(graph.add_value(name + what, DType::kF32));
    for (const ValueId id : {node.inputs.at(0), node.outputs[1], node.outputs[2]}) {
      graph.outputs.push_back(id);
      graph.declared_outputs.push_back({.dtype = DType::kF32, .shape_known = false, .shape = {}, .symbols = {}});
    }
  }
  return graph;
}

// u0 of every channel. `factor` is b' / b of the exporter's update.
Tensor before_update(const Tensor& stored, const Tensor& updated, double momentum, double factor) {
  const auto u = stored.to_doubles(), next = updated.to_doubles();
  std::vector<float> before;
  for (std::size_t i = 0; i < u.size(); ++i) before.push_back(static_cast<float>((u[i] - (next.at(i) - momentum * u[i]) * factor) / momentum));
  return Tensor::of<float>(stored.shape(), std::span<const float>(before));
}

// The graph for inference with the statistics of the source.
Graph restored(Graph graph, const Tensor& input) {
  const auto seen = Predictor(Model(std::make_shared<const Graph>(statistics_of(graph)))).run({input});
  std::size_t at = 0;
  for (Node& node : graph.nodes) {
    if (!is_batch_norm(node)) continue;
    const Tensor& x = seen.at(at);
    const double n = static_cast<double>(x.size()) / static_cast<double>(x.shape().at(1));
    const double momentum = node.attributes.real("momentum", 0.9f);
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      const Value& stored = graph.value(node.inputs.at(3 + k));
      const Tensor before = before_update(stored.constant, seen.at(at + 1 + k), momentum, k == 0 ? 1 : n / (n - 1));
      node.inputs[3 + k] = graph.add_constant(stored.name + " of the source", before);
    }
    at += 3;
  }
  EXPECT_GT(at, 0u);
  return graph;
}

void check(const Fixture& f) {
  const Graph graph = import_file(f.folder / "model.onnx");
  const Tensor input = read_tensor_file(f.folder / "input_0.pb").tensor;
  const Tensor want = read_tensor_file(f.folder / "output_0.pb").tensor;
  const Model source(std::make_shared<const Graph>(restored(graph, input)));
  for (const bool passes : {true, false}) {
    RunOptions run;
    run.passes = passes;
    EXPECT_EQ(cli::difference(Predictor(source, run).run({input}).at(0), want, f.rtol, f.atol), "") << (passes ? "passes" : "no passes");
  }
}

TEST(TrainingExport, GivesTheSourcesInferenceOnceItsOwnUpdateIsTakenBack) {
  int count = 0;
  for (const Fixture& f : read_fixtures(fixtures_folder())) {
    if (!f.training) continue;
    SCOPED_TRACE(f.name);
    check(f);
    ++count;
  }
  EXPECT_EQ(count, 3);
}

}  // namespace
}  // namespace tandem::test
