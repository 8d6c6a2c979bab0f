// Written models: read back equal, in the oldest opset that can say them; targets are replaced, never opened.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

#include "importer/exporter.h"
#include "runtime/base/error.h"
#include "runtime/base/special_file.h"
#include "tests/support/files.h"
#include "tests/support/import.h"
#include "tests/support/node_test.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

std::string content(const std::string& file) {
  std::ostringstream out;
  out << std::ifstream(file, std::ios::binary).rdbuf();
  return out.str();
}

OnnxModel scaled() {
  OnnxModel model = one_node("Add", 17, {{2}}, {});
  model.graph.nodes[0].inputs.push_back("w");
  model.graph.initializers = {float_tensor("w", {2}, {10, 20})};
  model.metadata = {{"tandem.labels", "[]"}};
  return model;
}

TEST(Export, ReadsBackEqual) {
  const TemporaryFolder folder;
  const std::string file = folder / "m.onnx", again = folder / "n.onnx";
  write_onnx(import_text(model_bytes(scaled())), file);
  const Graph back = import_file(file);
  EXPECT_EQ(back.metadata.at("tandem.labels"), "[]");
  EXPECT_EQ(back.origin.opset, 17);
  EXPECT_EQ(back.origin.ir_version, 8);
  EXPECT_EQ(back.origin.producer, "tandem");
  expect_close(run_graph(back, {f32({2}, {1, 2})})[0], f32({2}, {11, 22}));
  write_onnx(back, again);
  EXPECT_EQ(content(file), content(again));
}

TEST(Export, WhereANetworkCameFromIsKept) {
  const TemporaryFolder folder;
  OnnxModel model = scaled();
  write_onnx(import_text(model_bytes(model)), folder / "m.onnx");
  Graph back = import_file(folder / "m.onnx");
  EXPECT_EQ(back.metadata.at("tandem.origin"), "test, opset 17, IR 8");
  write_onnx(back, folder / "n.onnx");
  back = import_file(folder / "n.onnx");
  EXPECT_EQ(back.metadata.at("tandem.origin"), "test, opset 17, IR 8");
  EXPECT_EQ(back.origin.producer, "tandem");
  EXPECT_NE(back.origin.producer_version, "");
}

TEST(Export, WeightsAreReadOneByOneAndLetGo) {
  const TemporaryFolder folder;
  Graph graph = import_text(model_bytes(scaled()));
  int made = 0;
  for (Value& v : graph.values) {
    if (!v.known()) continue;
    v.constant = Tensor::deferred(v.dtype, v.shape, [&made, kept = v.constant] {
      ++made;
      return kept;
    });
  }
  write_onnx(graph, folder / "a.onnx");
  write_onnx(graph, folder / "b.onnx");
  EXPECT_EQ(made, 2) << "who asks for its bytes keeps them";
  EXPECT_EQ(content(folder / "a.onnx"), content(folder / "b.onnx"));
}

// What torch's exporter writes beside its nodes goes through import and export, also where passes make one node of two.
TEST(Export, MetadataOfModelGraphAndNodesIsKept) {
  const TemporaryFolder folder;
  OnnxModel model = scaled();
  model.metadata = {{"author", "x"}};
  model.graph.metadata = {{"of", "graph"}};
  model.graph.nodes[0].name = "add";
  model.graph.nodes[0].outputs = {"sum"};
  model.graph.nodes[0].metadata = {{"namespace", ": net/first: add"}, {"stack", "a.py, 12\n\xc3\xa4"}};
  model.graph.nodes.push_back({.op = "Relu", .inputs = {"sum"}, .outputs = {"y0"}, .metadata = {{"namespace", "unnamed"}}});
  FileRecord first, second, none;
  ImportOptions options;
  options.record = &first;
  const Graph graph = import_text(model_bytes(model), {}, options);
  write_onnx(graph, folder / "m.onnx", {.record = &first});
  options.record = &second;
  const Graph back = import_file(folder / "m.onnx", options);
  for (const FileRecord& r : {first, second}) {
    EXPECT_EQ(r.graph, (FileRecord::Metadata{{"of", "graph"}}));
    ASSERT_NE(r.node("add", ""), nullptr);
    EXPECT_EQ(*r.node("add", ""), (FileRecord::Metadata{{"namespace", ": net/first: add"}, {"stack", "a.py, 12\n\xc3\xa4"}}));
    ASSERT_NE(r.node("", "y0"), nullptr);
    EXPECT_EQ(r.node("", "y0")->at("namespace"), "unnamed");
    EXPECT_EQ(r.node("other", "other"), nullptr);
    EXPECT_EQ(r.weights, DType::kF32);
  }
  EXPECT_EQ(back.metadata.at("author"), "x");
  write_onnx(graph, folder / "plain.onnx");
  options.record = &none;
  import_file(folder / "plain.onnx", options);
  EXPECT_TRUE(none.graph.empty());
  EXPECT_TRUE(none.node("add", "sum")->empty());
}

TEST(Export, MetadataWithoutMeasureIsLeftOutAndSaid) {
  OnnxModel model = scaled();
  model.graph.nodes[0].name = "add";
  model.graph.nodes[0].metadata = {{"a", "kept"}, {"b", std::string(5 << 20, 'b')}};
  FileRecord record;
  ImportOptions options;
  options.record = &record;
  const Graph graph = import_text(model_bytes(model), {}, options);
  EXPECT_EQ(*record.node("add", ""), (FileRecord::Metadata{{"a", "kept"}}));
  ASSERT_FALSE(graph.origin.notes.empty());
  EXPECT_NE(graph.origin.notes.back().find("metadata of nodes beyond 4 MiB"), std::string::npos) << graph.origin.notes.back();
}

TEST(Export, ANameOfTwoNodesFindsNone) {
  FileRecord record;
  record.add_node("n", "a", {{"k", "1"}});
  record.add_node("n", "b", {{"k", "2"}});
  record.add_node("", "b", {});
  EXPECT_EQ(record.node("n", "none"), nullptr);
  EXPECT_EQ(record.node("n", "a")->at("k"), "1");
  EXPECT_EQ(record.node("n", "b"), nullptr);
}

TEST(Export, LargeConstantsGoToTheirOwnFile) {
  const TemporaryFolder folder;
  ExportOptions options;
  options.external_above = 0;
  write_onnx(import_text(model_bytes(scaled())), folder / "m.onnx", options);
  EXPECT_TRUE(std::filesystem::exists(folder / "m.onnx.data"));
  expect_close(run_graph(import_file(folder / "m.onnx"), {f32({2}, {1, 2})})[0], f32({2}, {11, 22}));
}

TEST(Export, AnExchangedDataFileIsNoticed) {
  const TemporaryFolder folder;
  ExportOptions options;
  options.external_above = 0;
  write_onnx(import_text(model_bytes(scaled())), folder / "m.onnx", options);
  std::string data = content(folder / "m.onnx.data");
  data[0] = static_cast<char>(data[0] ^ 1);
  folder.write("m.onnx.data", data);
  try {
    import_file(folder / "m.onnx");
    ADD_FAILURE();
  } catch (const InvalidModel& e) {
    EXPECT_NE(std::string(e.what()).find("checksum"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("tensor \""), std::string::npos) << e.what();
  }
}

TEST(Export, ChoosesTheOldestOpsetThatFits) {
  const auto oldest = [](const std::string& op, std::int64_t opset, const std::vector<Ints>& shapes, const std::vector<std::string>& attributes,
                         std::size_t outputs = 1) {
    return oldest_opset(import_text(model_bytes(one_node(op, opset, shapes, attributes, outputs))));
  };
  EXPECT_EQ(oldest("ReduceMean", 13, {{2, 3}}, {ints_attribute("axes", {1})}), 17);
  EXPECT_EQ(oldest("ReduceMean", 18, {{2, 3}, {1}}, {}), 18);
  EXPECT_EQ(oldest("Gelu", 20, {{2}}, {}), 20);
  EXPECT_EQ(oldest("Split", 18, {{4}}, {int_attribute("num_outputs", 2)}, 2), 18);
  ExportOptions options;
  options.opset = 17;
  const TemporaryFolder folder;
  EXPECT_THROW(write_onnx(import_text(model_bytes(one_node("Gelu", 20, {{2}}, {}))), folder / "m.onnx", options), Unsupported);
  EXPECT_FALSE(std::filesystem::exists(folder / "m.onnx"));
}

TEST(Export, HalfPrecisionBorderStays) {
  OnnxModel model = one_node("Add", 17, {{2}, {2}}, {});
  model.graph.inputs = {value_bytes("x0", 10, {2}), value_bytes("x1", 10, {2})};
  model.graph.outputs = {value_bytes("y0", 10, {2})};
  const TemporaryFolder folder;
  write_onnx(import_text(model_bytes(model)), folder / "m.onnx");
  const Graph back = import_file(folder / "m.onnx");
  EXPECT_EQ(back.declared_inputs[0].dtype, DType::kF16);
  EXPECT_EQ(back.declared_outputs[0].dtype, DType::kF16);
  EXPECT_EQ(back.value(back.outputs[0]).name, "y0");
}

TEST(Export, BranchesKeepTheirOuterValues) {
  OnnxModel model = one_node("If", 17, {}, {});
  const auto branch = [](const std::string& op, const std::string& out) {
    return graph_bytes({.nodes = {{.op = op, .inputs = {"x", "w"}, .outputs = {out}}}, .inputs = {}, .outputs = {value_bytes(out, 1, {2})}});
  };
  model.graph.inputs = {value_bytes("x", 1, {2}), value_bytes("c", 9, {})};
  model.graph.initializers = {float_tensor("w", {2}, {3, 5})};
  model.graph.nodes[0].inputs = {"c"};
  model.graph.nodes[0].attributes = {graph_attribute("then_branch", branch("Add", "t")), graph_attribute("else_branch", branch("Mul", "e"))};
  const TemporaryFolder folder;
  write_onnx(import_text(model_bytes(model)), folder / "m.onnx");
  const Graph back = import_file(folder / "m.onnx");
  expect_close(run_graph(back, {f32({2}, {1, 2}), Tensor::scalar(true)})[0], f32({2}, {4, 7}));
  expect_close(run_graph(back, {f32({2}, {1, 2}), Tensor::scalar(false)})[0], f32({2}, {3, 10}));
}

TEST(Export, NeverOpensAnExistingTarget) {
  const TemporaryFolder folder;
  const std::string victim = folder.write("victim", "untouched");
  std::filesystem::create_hard_link(victim, folder / "hard.onnx");
  std::filesystem::create_symlink("victim", folder / "soft.onnx");
  const Graph graph = import_text(model_bytes(scaled()));
  write_onnx(graph, folder / "hard.onnx");
  write_onnx(graph, folder / "soft.onnx");
  EXPECT_EQ(content(victim), "untouched");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "soft.onnx"));
  EXPECT_NO_THROW(import_file(folder / "hard.onnx"));
  EXPECT_THROW(write_onnx(graph, folder / "none/m.onnx"), InvalidData);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 3);  // no temporary file stays
}

TEST(Export, WritesIntoADeviceOrAPipeInsteadOfReplacingIt) {
  const TemporaryFolder folder;
  const Graph graph = import_text(model_bytes(scaled()));
  write_onnx(graph, folder / "m.onnx");
  const std::string pipe = folder / "pipe.onnx";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  auto reader = std::async(std::launch::async, [&] { return content(pipe); });
  write_onnx(graph, pipe);
  EXPECT_EQ(reader.get(), content(folder / "m.onnx"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_THROW(write_onnx(graph, pipe, {.external_above = 0}), InvalidData);
  std::filesystem::create_symlink("/proc/self/fd/1", folder / "out");
  EXPECT_TRUE(is_special_file(folder / "out"));
  EXPECT_TRUE(is_special_file("/dev/null"));
  EXPECT_FALSE(is_special_file(folder / "m.onnx"));
  EXPECT_FALSE(is_special_file(folder / "none"));
}

}  // namespace
}  // namespace tandem::test
