// One node of the file on its way to opset 24: what the rewrite rules (rules.h) see and change.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "importer/graph_editor.h"
#include "importer/importer.h"

namespace tandem {

class NodeRewrite {
 public:
  NodeRewrite(GraphEditor& target, Node from_file, std::int64_t file_opset, const ImportOptions& import_options)
      : node(std::move(from_file)), opset(file_opset), options(import_options), file_outputs(node.outputs.size()), editor_(target) {}

  // The node as the file has it; the rule changes it in place. With an empty `op` it is dropped.
  Node node;
  const std::int64_t opset;
  const ImportOptions& options;
  const std::size_t file_outputs;  // how many outputs the file names, unread ones counted
  std::vector<Node> after;         // nodes that follow `node`
  std::vector<std::string> notes;  // for Origin::notes, without the node's name

  Attributes& attributes() { return node.attributes; }
  bool has_input(std::size_t i) const { return i < node.inputs.size() && node.inputs[i] != kNoValue; }
  // Whether anyone reads output i.
  bool has_output(std::size_t i) const { return i < node.outputs.size() && node.outputs[i] != kNoValue; }
  // Throws InvalidModel when operand i is absent.
  ValueId input(std::size_t i) const;
  const Tensor* constant(std::size_t i) const;  // null when absent or computed
  std::int64_t rank(std::size_t i) const { return editor_.fact(input(i)).rank; }
  DType type(std::size_t i) const { return editor_.fact(input(i)).type; }
  bool fixed(std::size_t i) const { return editor_.fact(input(i)).fixed; }  // follows from constants alone

  void set_input(std::size_t i, ValueId value);
  // Constants for operands. A float fits operand 0's type.
  ValueId ints(const std::vector<std::int64_t>& values, std::string_view hint);
  ValueId real(float value, std::string_view hint);
  ValueId add_constant(const Tensor& tensor, std::string_view hint);
  // Adds a node with one output in front of this one.
  ValueId emit(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {});
  // A value for an output that the file does not name.
  ValueId new_value(std::string_view hint) { return editor_.add_value(hint_name(hint)); }
  // Another value in place of output i; the old one is returned, for a node in `after` to make.
  ValueId redirect_output(std::size_t i);
  // Output 0 is this constant; no node stays.
  void become_constant(const Tensor& tensor);
  // The file's type of output 0, where it is not what the new node makes.
  void set_output_type(DType type) { output_type_ = type; }

  // An attribute that became operand `index` at opset `since`: moved there as a list of integers. Throws InvalidModel when the file gives the
  // operand before that opset, or both.
  void move_ints(std::string_view attribute, std::size_t index, std::int64_t since);

  // Appends the result to the graph.
  void finish();

 private:
  std::string hint_name(std::string_view hint) const;
  GraphEditor& editor_;
  DType output_type_ = DType::kNone;
};

}  // namespace tandem
