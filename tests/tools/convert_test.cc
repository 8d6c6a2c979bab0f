// What `convert` keeps of a file, and how `test` compares files in half precision: on networks as exporters wrote them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "importer/importer.h"
#include "tests/support/files.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

std::string fixture(const std::string& name) { return TANDEM_SOURCE_DIR "/tests/data/fixtures/" + name; }

Graph import_with(const std::string& file, FileRecord& record) {
  ImportOptions options;
  options.record = &record;
  return import_file(file, options);
}

const FileRecord::Metadata* metadata_of(const FileRecord& record, const Graph& graph, const Node& node) {
  return record.node(node.name, graph.value(node.outputs.at(0)).name);
}

TEST(Convert, NodesKeepTheMetadataOfTheirExporter) {
  const TemporaryFolder folder;
  for (const std::string name : {"dy_acts_op20", "dy_norms_op20", "dy_xception_external"}) {
    for (const char* how : {"--inference", "--batch=4"}) {
      SCOPED_TRACE(name + " " + how);
      const std::string from = fixture(name) + "/model.onnx", to = folder / "out.onnx";
      const Finished r = run_tandem({"convert", from, "-o", to, how});
      ASSERT_EQ(r.code, 0) << r.err;
      FileRecord before, after;
      const Graph old = import_with(from, before), made = import_with(to, after);
      int with_metadata = 0;
      for (const Node& node : made.nodes) {
        const auto* was = metadata_of(before, made, node);
        const auto* is = metadata_of(after, made, node);
        ASSERT_NE(is, nullptr) << node.name;
        EXPECT_EQ(*is, was ? *was : FileRecord::Metadata()) << node.name;
        with_metadata += is->contains("pkg.torch.onnx.stack_trace") ? 1 : 0;
      }
      EXPECT_GT(with_metadata, 10);
      EXPECT_EQ(after.graph, before.graph);
      EXPECT_EQ(made.metadata.at("tandem.origin").substr(0, 8), "pytorch ");
    }
  }
}

// The answers of such files come from arithmetic that rounds every layer to half precision.
TEST(TestCommand, HalfPrecisionIsComparedByItsOwnRounding) {
  const TemporaryFolder folder;
  struct Case {
    const char *name, *said;
  };
  for (const Case& c : {Case{"fp16_tfk_xception", "float16 weights: rtol "}, Case{"fp16_ts_xception_preserve", "float16 weights: rtol "},
                        Case{"ts_xception_fp16_op13", "float16 weights: rtol "}, Case{"dy_squeezenet_bf16_op22", "bfloat16 weights: rtol "}}) {
    const std::string json = folder / "r.json";
    const Finished r = run_tandem({"test", fixture(c.name), "--json", json});
    EXPECT_EQ(r.code, 0) << c.name << ": " << r.out << r.err;
    EXPECT_EQ(r.out, std::string("PASS ") + c.name + "\npassed 1, failed 0, refused 0\n");
    EXPECT_NE(r.err.find(std::string(c.name) + ": " + c.said), std::string::npos) << r.err;
    const auto records = nlohmann::json::parse(read_text(json));
    EXPECT_NE(records.at(0).at("tolerance").get<std::string>().find("times the largest value"), std::string::npos);
  }
  const Finished strict = run_tandem({"test", fixture("ts_xception_fp16_op13"), "--rtol", "1e-6", "--atol", "1e-6"});
  EXPECT_EQ(strict.code, 1) << strict.out;
  EXPECT_NE(strict.err.find("rtol 1e-06, atol 1e-06\n"), std::string::npos) << strict.err;
  EXPECT_EQ(run_tandem({"test", fixture("dy_norms_op20")}).err, "");
}

}  // namespace
}  // namespace tandem::test
