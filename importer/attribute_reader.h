// Attributes of a node and tensors of a file as the graph holds them.
#pragma once

#include "importer/model_file.h"
#include "runtime/graph/attributes.h"

namespace tandem {

class AttributeReader {
 public:
  AttributeReader(const ModelFile& file, ExternalData& external) : file_(file), external_(external) {}

  // A tensor of the file, its data inside or external.
  Tensor tensor(const onnx::TensorProto& stub);
  // Made dense; refused when that takes more than limits::kSparseDenseBytes.
  Tensor sparse_tensor(const onnx::SparseTensorProto&);
  // All attributes but subgraphs. `bound`: the attributes of the function call around it, for references (null outside of functions); an attribute
  // that refers to one the caller did not give is left out. Attributes named twice are refused.
  Attributes read(const onnx::NodeProto&, const Attributes* bound);
  // One attribute's value; nothing for a subgraph.
  void set(Attributes& into, const onnx::AttributeProto&);

 private:
  const ModelFile& file_;
  ExternalData& external_;
};

}  // namespace tandem
