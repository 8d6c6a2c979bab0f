#include "tests/fuzz/network_target.h"

#include "tools/tandem.h"

namespace tandem::fuzz {
namespace {

// Small inputs for a graph: dimensions that the file leaves open become 2 (the first) and 3. Empty: the file asks for large ones.
std::vector<Tensor> inputs_for(const Graph& graph) {
  constexpr std::int64_t kMostElements = 1 << 16;
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const Declared& d = graph.declared_inputs[i];
    Shape shape = d.shape;
    for (std::size_t k = 0; k < shape.size(); ++k) {
      if (shape[k] < 0) shape[k] = k == 0 ? 2 : 3;
    }
    if (elements(shape) > kMostElements) return {};
    inputs.emplace_back(d.dtype, shape);
  }
  return inputs;
}

}  // namespace

bool accepts_network(const Bytes& bytes) {
  constexpr std::size_t kMemory = 256u << 20;
  try {
    const Model model = Model::from_memory(std::as_bytes(std::span(bytes)));
    RunOptions options;
    options.threads = 1;
    options.memory.kind = MemoryPolicy::Kind::kLimit;
    options.memory.limit_bytes = kMemory;
    const std::vector<Tensor> inputs = inputs_for(model.graph());
    if (inputs.size() != model.graph().inputs.size()) return true;
    return Predictor(model, options).run(inputs).size() == model.graph().outputs.size();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tandem::fuzz
