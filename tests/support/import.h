// Imports and runs models that tests build in memory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "importer/importer.h"
#include "runtime/graph/graph.h"

namespace tandem::test {

inline std::span<const std::byte> bytes_of(const std::string& text) { return {reinterpret_cast<const std::byte*>(text.data()), text.size()}; }
inline Graph import_text(const std::string& model, const std::filesystem::path& folder = {}, const ImportOptions& options = {}) {
  return import_bytes(bytes_of(model), folder, options);
}
// What the refusal says; fails the test when the model is imported.
std::string refusal(const std::string& model, const std::filesystem::path& folder = {}, const ImportOptions& options = {});
// Names of the operators, in order, separated by blanks.
std::string operators_of(const Graph&);
// The value of an operand that must be constant.
const Tensor& constant_operand(const Graph&, const Node&, std::size_t operand);
// Runs a graph on the inputs as they are (shape pass, then every node for itself: no planner).
std::vector<Tensor> run_graph(Graph, const std::vector<Tensor>& inputs);

}  // namespace tandem::test
