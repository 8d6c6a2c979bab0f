#include "runtime/graph/graph.h"

#include <fmt/format.h>

#include <queue>

#include "runtime/base/error.h"

namespace tandem {

ValueId Graph::add_value(std::string value_name, DType dtype) {
  values.push_back({.name = std::move(value_name), .dtype = dtype, .shape_known = false, .shape = {}, .constant = {}, .parameter = false});
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::add_constant(std::string value_name, Tensor tensor) {
  values.push_back(
      {.name = std::move(value_name), .dtype = tensor.dtype(), .shape_known = true, .shape = tensor.shape(), .constant = tensor, .parameter = false});
  return static_cast<ValueId>(values.size() - 1);
}

std::string describe(const Graph& graph, const Node& node) {
  if (!node.name.empty()) return fmt::format("node \"{}\" ({})", node.name, node.op);
  for (const ValueId out : node.outputs) {
    if (out != kNoValue) return fmt::format("node of \"{}\" ({})", graph.value(out).name, node.op);
  }
  return fmt::format("node without outputs ({})", node.op);
}

std::vector<std::int32_t> producers(const Graph& graph) {
  std::vector<std::int32_t> producer(graph.values.size(), -1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId out : graph.nodes[n].outputs) {
      if (out != kNoValue) producer[static_cast<std::size_t>(out)] = static_cast<std::int32_t>(n);
    }
  }
  return producer;
}

std::vector<std::int32_t> use_counts(const Graph& graph) {
  std::vector<std::int32_t> uses(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    for (const ValueId in : node.inputs) {
      if (in != kNoValue) ++uses[static_cast<std::size_t>(in)];
    }
  }
  for (const ValueId out : graph.outputs) ++uses[static_cast<std::size_t>(out)];
  return uses;
}

void sort_topologically(Graph& graph) {
  const auto producer = producers(graph);
  std::vector<char> given(graph.values.size(), 0);
  for (const ValueId in : graph.inputs) given[static_cast<std::size_t>(in)] = 1;
  std::vector<std::vector<std::size_t>> followers(graph.nodes.size());
  std::vector<std::size_t> waiting(graph.nodes.size(), 0);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId in : graph.nodes[n].inputs) {
      if (in == kNoValue) continue;
      const auto from = producer[static_cast<std::size_t>(in)];
      if (from >= 0) {
        followers[static_cast<std::size_t>(from)].push_back(n);
        ++waiting[n];
      } else if (!given[static_cast<std::size_t>(in)] && !graph.value(in).known()) {
        throw InvalidModel(fmt::format("{} reads \"{}\", which nothing defines", describe(graph, graph.nodes[n]), graph.value(in).name));
      }
    }
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;  // the smallest index first: stable
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (waiting[n] == 0) ready.push(n);
  }
  std::vector<Node> sorted;
  sorted.reserve(graph.nodes.size());
  while (!ready.empty()) {
    const std::size_t n = ready.top();
    ready.pop();
    for (const std::size_t f : followers[n]) {
      if (--waiting[f] == 0) ready.push(f);
    }
    sorted.push_back(std::move(graph.nodes[n]));
  }
  if (sorted.size() != graph.nodes.size()) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      if (waiting[n] > 0) throw InvalidModel(fmt::format("the graph has a cycle through {}", describe(graph, graph.nodes[n])));
    }
  }
  graph.nodes = std::move(sorted);
}

void remove_dead_nodes(Graph& graph) {
  std::vector<char> live(graph.values.size(), 0);
  for (const ValueId out : graph.outputs) live[static_cast<std::size_t>(out)] = 1;
  std::vector<char> keep(graph.nodes.size(), 0);
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    for (const ValueId out : graph.nodes[n].outputs) keep[n] |= out != kNoValue && live[static_cast<std::size_t>(out)];
    if (!keep[n]) continue;
    for (const ValueId in : graph.nodes[n].inputs) {
      if (in != kNoValue) live[static_cast<std::size_t>(in)] = 1;
    }
  }
  std::size_t kept = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (keep[n]) {
      if (kept != n) graph.nodes[kept] = std::move(graph.nodes[n]);
      ++kept;
    }
  }
  graph.nodes.resize(kept);
}

}  // namespace tandem
