// The nodes of one graph or function body in an order in which every operand is made before it is read, and who reads what.
#pragma once

#include <string_view>
#include <unordered_set>
#include <vector>

#include "importer/model_file.h"

namespace tandem {

struct NodeOrder {
  std::vector<const onnx::NodeProto*> nodes;
  std::unordered_set<std::string_view> made;  // outputs of the nodes
  std::unordered_set<std::string_view> read;  // names that nodes or their subgraphs read
};

// Stable where the order is free. `given`: names of inputs and initialisers of this body. Throws InvalidModel for a name that two nodes make or
// that `given` has too, and for a cycle, naming a node. The views point into the protos and `given`.
NodeOrder order_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, const std::unordered_set<std::string_view>& given);

}  // namespace tandem
