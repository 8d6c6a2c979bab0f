// `convert --trainable` and `--classes`: what of a network can be fine-tuned, said and repaired.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "importer/importer.h"
#include "io/npy.h"
#include "models/trainable.h"
#include "runtime/graph/training.h"
#include "tests/support/files.h"
#include "tests/support/node_test.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

// Exported with a batch of 2 before any training: gamma and variance of both normalisations are one array of ones, beta and mean one of zeros; the
// first kernel lies in Keras' order behind a Transpose; the second convolution is applied twice.
std::string merged_network(const TemporaryFolder& folder) {
  OnnxModel m;
  m.graph.inputs = {value_bytes("x", 1, {2, 3, 4, 4})};
  m.graph.initializers = {float_tensor("hwio", {1, 1, 3, 3}, {1, 2, 3, -1, 0, 1, 2, -2, 1}),
                          float_tensor("w", {3, 3, 1, 1}, {1, 0, 1, 0, -1, 1, 2, 1, 0}),
                          float_tensor("ones", {3}, {1, 1, 1}),
                          float_tensor("zeros", {3}, {0, 0, 0}),
                          float_tensor("head", {3, 2}, {1, 2, 3, 4, 5, 6}),
                          float_tensor("bias", {2}, {1, -1})};
  m.graph.nodes = {{"Transpose", {"hwio"}, {"oihw"}, {ints_attribute("perm", {3, 2, 0, 1})}},
                   {"Conv", {"x", "oihw"}, {"c"}},
                   {"BatchNormalization", {"c", "ones", "zeros", "zeros", "ones"}, {"n1"}},
                   {"Conv", {"n1", "w"}, {"d"}},
                   {"BatchNormalization", {"d", "ones", "zeros", "zeros", "ones"}, {"n2"}},
                   {"Conv", {"n2", "w"}, {"e"}},
                   {"GlobalAveragePool", {"e"}, {"mean"}},
                   {"Flatten", {"mean"}, {"flat"}},
                   {"Gemm", {"flat", "head", "bias"}, {"y"}}};
  m.graph.outputs = {value_bytes("y", 1, {2, 2})};
  return folder.write("merged.onnx", model_bytes(m));
}

Tensor result_of(const TemporaryFolder& folder, const std::string& model) {
  const Finished r = run_tandem({"run", model, "--input", "x=" + (folder / "x.npy"), "--output", folder / "out", "--no-passes"});
  EXPECT_EQ(r.code, 0) << r.err;
  return io::read_npy(folder / "out/y.npy");
}

TEST(ConvertTrainable, ReportsWhatTheExporterKept) {
  const TemporaryFolder folder;
  const Finished r = run_tandem({"convert", trained_network(), "-o", folder / "t.onnx", "--trainable"});
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* line : {"parameters      84 arrays with ", "gradients       reach every parameter\n", "batch norm      22 kept\n",
                           "dropout         none", "batch           any\n", "head            \"predictions\", 384 to 5\n",
                           "loss            categorical (ends in a softmax)\n", "names           Keras'"})
    EXPECT_NE(r.out.find(line), std::string::npos) << line << " in\n" << r.out;
  EXPECT_EQ(r.out.find("repaired"), std::string::npos) << r.out;
  EXPECT_TRUE(run_tandem({"weights", "diff", trained_network(), folder / "t.onnx"}).out.ends_with("\nequal\n"));
}

// Two dense layers written as MatMul and Add, whose zero biases the exporter merged: each trains its own.
TEST(ConvertTrainable, TakesBiasesOfProductsApart) {
  const TemporaryFolder folder;
  OnnxModel m;
  m.graph.inputs = {value_bytes("x", 1, {2, 3})};
  m.graph.initializers = {float_tensor("w1", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), float_tensor("w2", {3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}),
                          float_tensor("zeros", {3}, {0, 0, 0})};
  m.graph.nodes = {{"MatMul", {"x", "w1"}, {"a"}}, {"Add", {"a", "zeros"}, {"b"}}, {"MatMul", {"b", "w2"}, {"c"}}, {"Add", {"zeros", "c"}, {"y"}}};
  m.graph.outputs = {value_bytes("y", 1, {2, 3})};
  const Finished r = run_tandem({"convert", folder.write("merged.onnx", model_bytes(m)), "-o", folder / "t.onnx", "--trainable"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("parameters      4 arrays with "), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("repaired        1 weight that the exporter merged"), std::string::npos) << r.out;
}

TEST(ConvertTrainable, TakesMergedWeightsApartAndKeepsTheFunction) {
  const TemporaryFolder folder;
  const std::string model = merged_network(folder);
  const Finished r = run_tandem({"convert", model, "-o", folder / "t.onnx", "--trainable"});
  ASSERT_EQ(r.code, 0) << r.err;
  for (const char* line : {"repaired        1 kernel that the file computes", "repaired        2 weights that the exporter merged",
                           "batch           any\n", "batch norm      2 kept\n"})
    EXPECT_NE(r.out.find(line), std::string::npos) << line << " in\n" << r.out;
  const Graph graph = import_file(folder / "t.onnx");
  std::set<ValueId> arrays;
  for (const models::TrainableArray& a : models::trainable_arrays(graph)) arrays.insert(a.value);
  EXPECT_EQ(arrays.size(), 8u);  // two kernels, one of them applied twice; twice gamma and beta; the head's kernel and bias
  for (const BatchNormLayer& l : batch_norm_layers(graph)) {
    arrays.insert(l.statistics.mean);
    arrays.insert(l.statistics.variance);
  }
  EXPECT_EQ(arrays.size(), 12u);
  io::write_npy(folder / "x.npy", random_f32({2, 3, 4, 4}, 3));
  const Tensor before = result_of(folder, model), after = result_of(folder, folder / "t.onnx");
  EXPECT_EQ(before.shape(), after.shape());
  EXPECT_TRUE(std::ranges::equal(before.as<float>(), after.as<float>()));
}

// train repairs by itself.
TEST(ConvertTrainable, WhatIsTrainedIsTheSameWithoutIt) {
  const TemporaryFolder folder;
  const std::string model = merged_network(folder);
  ASSERT_EQ(run_tandem({"convert", model, "-o", folder / "t.onnx", "--trainable"}).code, 0);
  io::write_npy(folder / "x.npy", random_f32({6, 3, 4, 4}, 3));
  io::write_npy(folder / "x_y.npy", Tensor::ints(std::vector<std::int64_t>{0, 1, 1, 0, 1, 0}));
  const auto train = [&](const std::string& from, const std::string& name) {
    return run_tandem({"train", from, folder / "x.npy", "--preprocess", "none", "--input-layout", "nchw", "--batch", "2", "--shards", "1",
                       "--no-shuffle", "--lr", "0.1", "--output", folder / name, "--log", folder / (name + ".jsonl")});
  };
  const Finished direct = train(model, "direct");
  ASSERT_EQ(direct.code, 0) << direct.err;
  EXPECT_NE(direct.err.find("repaired: 2 weights"), std::string::npos) << direct.err;
  ASSERT_EQ(train(folder / "t.onnx", "converted").code, 0);
  io::write_npy(folder / "x.npy", random_f32({2, 3, 4, 4}, 4));
  const Tensor a = result_of(folder, folder / "direct/model.onnx"), b = result_of(folder, folder / "converted/model.onnx");
  const Tensor before = result_of(folder, model);
  EXPECT_TRUE(std::ranges::equal(a.as<float>(), b.as<float>()));
  EXPECT_FALSE(std::ranges::equal(a.as<float>(), before.as<float>()));
}

TEST(ConvertTrainable, ANewHeadComesFromTheSeed) {
  const TemporaryFolder folder;
  const auto convert = [&](const std::string& name, const std::string& seed) {
    const Finished r = run_tandem({"convert", trained_network(), "-o", folder / name, "--classes", "7", "--seed", seed});
    EXPECT_EQ(r.code, 0) << r.err;
    return read_text(folder / name);
  };
  const std::string first = convert("a.onnx", "1");
  EXPECT_EQ(first, convert("b.onnx", "1"));
  EXPECT_NE(first, convert("c.onnx", "2"));
  const auto head = models::find_head(import_file(folder / "a.onnx"));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->classes, 7);
  const Finished labels =
      run_tandem({"convert", trained_network(), "-o", folder / "d.onnx", "--classes", "2", "--labels", folder.write("l.txt", "a\nb\nc\n")});
  EXPECT_EQ(labels.code, 4) << labels.err;
}

TEST(ConvertTrainable, RefusesWhatCannotBe) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_tandem({"convert", trained_network(), "-o", folder / "t.onnx", "--trainable", "--inference"}).code, 2);
  EXPECT_EQ(run_tandem({"convert", trained_network(), "-o", folder / "t.onnx", "--seed", "3"}).code, 2);
  const Finished nothing =
      run_tandem({"convert", folder.write("m.onnx", model_bytes(one_node("Relu", 17, {{1, 3}}, {}))), "-o", folder / "t.onnx", "--trainable"});
  EXPECT_EQ(nothing.code, 3);
  EXPECT_NE(nothing.err.find("nothing to train"), std::string::npos) << nothing.err;
}

}  // namespace
}  // namespace tandem::test
