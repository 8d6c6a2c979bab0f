// The builder of one graph: the main graph, or a branch of an If with its own builder below it. Function bodies are inlined in place.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "importer/attribute_reader.h"
#include "importer/graph_editor.h"
#include "importer/model_file.h"
#include "importer/node_order.h"
#include "importer/node_rewrite.h"
#include "importer/notes.h"

namespace tandem {

class GraphBuilder {
 public:
  // `parent`: the builder of the graph around a branch, whose values are visible by name; null for the main graph.
  GraphBuilder(const ModelFile& file, AttributeReader& attributes, Notes& notes, GraphBuilder* parent);

  // Inputs, initialisers, nodes and outputs of a graph. For a branch, call once.
  void build(const onnx::GraphProto& proto);
  GraphEditor& editor() { return editor_; }

  // Values of the parent that the branch reads: the parent's value and the input that stands for it here, in order of first use.
  struct Capture {
    ValueId outer, inner;
  };
  const std::vector<Capture>& captures() const { return captures_; }
  // The input that stands for a value of the parent, made where it is not there yet.
  ValueId capture(ValueId outer);

 private:
  using Names = std::unordered_map<std::string, ValueId>;
  // Where names are looked up: the graph itself or the body of a function that is being inlined.
  struct Scope {
    Names names;
    const Opsets* opsets = nullptr;
    const Attributes* bound = nullptr;  // attributes of the function call
    std::string prefix;                 // for names of inner values
    bool function = false;              // outer names are not visible
  };

  void add_inputs(const onnx::GraphProto& proto, const std::unordered_set<std::string_view>& initializers);
  void add_initializers(const onnx::GraphProto& proto);
  void add_outputs(const onnx::GraphProto& proto);
  void add_nodes(const NodeOrder& order);
  void add_node(const onnx::NodeProto& proto, const NodeOrder& order);
  void add_operator(const onnx::NodeProto& proto, const NodeOrder& order);
  void add_if(const onnx::NodeProto& proto);
  void inline_function(const onnx::NodeProto& proto, const Function& function);
  void record_metadata(const onnx::NodeProto& proto, const Node& node);
  Attributes call_attributes(const onnx::NodeProto& proto, const Function& function);

  std::vector<ValueId> operands(const onnx::NodeProto& proto);
  ValueId add_output(const std::string& name);
  // The value of a name; kNoValue where nobody makes it.
  ValueId resolve(const std::string& name);
  void refuse_shadowing(std::string_view name) const;

  const ModelFile& file_;
  AttributeReader& attributes_;
  Notes& notes_;
  GraphBuilder* parent_;
  GraphEditor editor_;
  Scope scope_;
  std::vector<Capture> captures_;
};

}  // namespace tandem
