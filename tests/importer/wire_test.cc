// What a hostile message may cost: counted and refused before protobuf parses it.
#include "importer/wire.h"

#include <gtest/gtest.h>

#include "importer/importer.h"
#include "importer/limits.h"
#include "importer/strip.h"
#include "runtime/base/error.h"
#include "tests/support/import.h"
#include "tests/support/onnx_builder.h"

namespace tandem::test {
namespace {

std::string message_of(const std::string& model) {
  try {
    import_text(model);
  } catch (const Error& e) {
    return e.what();
  }
  return "imported";
}

TEST(Wire, ReadsEveryFieldKind) {
  std::string text;
  wire::append_integer(text, 1, 300);
  wire::append_bytes(text, 2, "abc");
  wire::append_tag(text, 3, wire::Type::kFixed32);
  text += std::string("\x01\x02\x03\x04", 4);
  wire::Reader reader(bytes_of(text));
  wire::Field f;
  ASSERT_TRUE(reader.next(f));
  EXPECT_EQ(f.varint, 300u);
  ASSERT_TRUE(reader.next(f));
  EXPECT_EQ(f.text(), "abc");
  ASSERT_TRUE(reader.next(f));
  EXPECT_EQ(f.bytes.size(), 4u);
  EXPECT_FALSE(reader.next(f));
}

TEST(Wire, RefusesDamage) {
  for (const std::string& text :
       {std::string("\x0a\x05\x61", 3), std::string("\x08", 1), std::string(12, '\xff'), std::string("\x0b\x0c", 2), std::string("\x0d\x01", 2),
        std::string("\x00\x01", 2), std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11)}) {
    wire::Reader reader(bytes_of(text));
    wire::Field f;
    EXPECT_THROW(while (reader.next(f)){}, InvalidModel) << text.size();
  }
}

TEST(Strip, KeepsTensorsInPlace) {
  OnnxModel model = one_node("Relu", 17, {{2}}, {});
  model.graph.initializers = {float_tensor("w", {2}, {1, 2})};
  const std::string text = model_bytes(model);
  const StrippedModel stripped = strip_model(bytes_of(text));
  ASSERT_EQ(stripped.tensors.size(), 1u);
  EXPECT_GE(stripped.tensors[0].data(), bytes_of(text).data());
  EXPECT_EQ(stripped.message.find(std::string("\x00\x00\x80\x3f", 4)), std::string::npos);
}

TEST(Strip, EveryCutOfAModelIsRefusedOrImported) {
  OnnxModel model = one_node("Add", 17, {{2}, {2}}, {});
  model.graph.initializers = {float_tensor("w", {2}, {1, 2})};
  const std::string text = model_bytes(model);
  for (std::size_t length = 0; length < text.size(); ++length) message_of(text.substr(0, length));
}

TEST(Strip, EveryFlippedByteIsRefusedOrImported) {
  OnnxModel model = one_node("Add", 6, {{2, 3}, {2}}, {int_attribute("broadcast", 1), int_attribute("axis", 0)});
  model.graph.initializers = {float_tensor("w", {2}, {1, 2}), raw_tensor("h", 10, {1}, std::string(2, '\1'))};
  const std::string text = model_bytes(model);
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const int flip : {1, 0x80, 0xff}) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      message_of(damaged);
    }
  }
}

TEST(Strip, UnknownFieldsCostNothing) {
  std::string text = model_bytes(one_node("Relu", 17, {{2}}, {}));
  for (int i = 0; i < 1'000'000; ++i) wire::append_integer(text, 1000, 1);
  EXPECT_EQ(message_of(text), "imported");
}

TEST(Strip, CountsNodesBeforeProtobuf) {
  std::string graph, text;
  for (std::size_t i = 0; i <= limits::kNodes; ++i) wire::append_bytes(graph, 1, "");
  wire::append_bytes(text, 7, graph);
  EXPECT_NE(message_of(text).find("more than 200000 nodes"), std::string::npos);
}

TEST(Strip, BoundsNestedBranches) {
  std::string graph = graph_bytes({.nodes = {}, .inputs = {}, .outputs = {value_bytes("c", 9, {})}});
  for (int depth = 0; depth < 2000; ++depth) {
    OnnxNode node{.op = "If", .inputs = {"c"}, .outputs = {"y"}, .attributes = {graph_attribute("then_branch", graph)}};
    graph = graph_bytes({.nodes = {node}, .inputs = {}, .outputs = {value_bytes("y", 1, {})}});
  }
  std::string text;
  wire::append_bytes(text, 7, graph);
  EXPECT_NE(message_of(text).find("nested more than 16 deep"), std::string::npos);
}

TEST(Strip, BoundsNames) {
  for (const std::size_t length : {0u, 1u, 4095u, 4096u, 65536u}) {
    OnnxModel model = one_node("NoSuchOperator", 17, {{2}}, {});
    model.graph.nodes[0].name = std::string(length, 'n');
    const std::string message = message_of(model_bytes(model));
    EXPECT_NE(message.find(length > limits::kNameBytes ? "a name has 65536 bytes" : "operator NoSuchOperator"), std::string::npos);
    EXPECT_LT(message.size(), 2000u);
  }
}

}  // namespace
}  // namespace tandem::test
