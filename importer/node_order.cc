#include "importer/node_order.h"

#include <fmt/format.h>

#include <queue>
#include <unordered_map>

#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Operands of the node, and every name that its subgraphs read (their own names too: harmless, shadowing is refused elsewhere).
std::vector<std::string_view> names_read(const onnx::NodeProto& node) {
  std::vector<std::string_view> names(node.input().begin(), node.input().end());
  std::vector<const onnx::GraphProto*> stack = subgraphs(node);
  while (!stack.empty()) {
    const onnx::GraphProto& g = *stack.back();
    stack.pop_back();
    for (const auto& out : g.output()) names.push_back(out.name());
    for (const auto& inner : g.node()) {
      names.insert(names.end(), inner.input().begin(), inner.input().end());
      const auto deeper = subgraphs(inner);
      stack.insert(stack.end(), deeper.begin(), deeper.end());
    }
  }
  return names;
}

[[noreturn]] void refuse_second(std::string_view name, const onnx::NodeProto& node, const std::string& other) {
  throw InvalidModel(fmt::format("value {} is made twice: by {} and by {}", quote(name), describe(node), other));
}

}  // namespace

NodeOrder order_nodes(const Nodes& nodes, const std::unordered_set<std::string_view>& given) {
  NodeOrder order;
  std::unordered_map<std::string_view, int> producer;
  for (int n = 0; n < nodes.size(); ++n) {
    for (const auto& out : nodes[n].output()) {
      if (out.empty()) continue;
      if (given.contains(out)) refuse_second(out, nodes[n], "an input or initializer");
      const auto [at, fresh] = producer.emplace(out, n);
      if (!fresh) refuse_second(out, nodes[n], describe(nodes[at->second]));
      order.made.insert(out);
    }
  }
  std::vector<std::vector<int>> followers(static_cast<std::size_t>(nodes.size()));
  std::vector<int> waiting(static_cast<std::size_t>(nodes.size()), 0);
  for (int n = 0; n < nodes.size(); ++n) {
    for (const std::string_view name : names_read(nodes[n])) {
      order.read.insert(name);
      const auto from = producer.find(name);
      if (from == producer.end()) continue;
      followers[static_cast<std::size_t>(from->second)].push_back(n);
      ++waiting[static_cast<std::size_t>(n)];
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int n = 0; n < nodes.size(); ++n) {
    if (waiting[static_cast<std::size_t>(n)] == 0) ready.push(n);
  }
  order.nodes.reserve(static_cast<std::size_t>(nodes.size()));
  while (!ready.empty()) {
    const int n = ready.top();
    ready.pop();
    order.nodes.push_back(&nodes[n]);
    for (const int f : followers[static_cast<std::size_t>(n)]) {
      if (--waiting[static_cast<std::size_t>(f)] == 0) ready.push(f);
    }
  }
  for (int n = 0; n < nodes.size() && order.nodes.size() != waiting.size(); ++n) {
    if (waiting[static_cast<std::size_t>(n)] > 0) throw InvalidModel(fmt::format("the graph has a cycle through {}", describe(nodes[n])));
  }
  return order;
}

}  // namespace tandem
