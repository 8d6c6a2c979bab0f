#include "importer/functions.h"

#include <fmt/format.h>

#include "importer/limits.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// One body: how many nodes it has itself and which functions it calls, how often. Subgraphs count as part of it.
struct Body {
  std::size_t nodes = 0;
  std::map<const Function*, std::size_t> calls;
};

Body read_body(const ModelFile& file, const Nodes& nodes) {
  Body body;
  std::vector<const Nodes*> stack{&nodes};
  while (!stack.empty()) {
    const Nodes& level = *stack.back();
    stack.pop_back();
    for (const auto& node : level) {
      if (const Function* called = file.function_of(node))
        ++body.calls[called];
      else
        ++body.nodes;
      for (const auto* g : subgraphs(node)) stack.push_back(&g->node());
    }
  }
  return body;
}

struct State {
  Body body;
  enum { kNew, kOpen, kDone } mark = kNew;
  std::size_t total = 0;  // nodes after inlining, at most kNodes + 1
  int depth = 0;
};

class Checker {
 public:
  explicit Checker(const ModelFile& file) : file_(file) {
    for (const auto& [key, f] : file.functions) states_[&f].body = read_body(file, f.proto->node());
  }

  // Depth first with an explicit stack.
  void visit(const Function* root) {
    std::vector<std::pair<const Function*, std::map<const Function*, std::size_t>::const_iterator>> stack;
    const auto open = [&](const Function* f) {
      states_[f].mark = State::kOpen;
      stack.emplace_back(f, states_[f].body.calls.begin());
    };
    if (states_[root].mark == State::kNew) open(root);
    while (!stack.empty()) {
      auto& [function, next] = stack.back();
      State& state = states_[function];
      if (next == state.body.calls.end()) {
        close(state);
        stack.pop_back();
        continue;
      }
      const Function* called = next->first;
      ++next;
      if (states_[called].mark == State::kOpen)
        throw InvalidModel(fmt::format("function {} calls itself, directly or through others", quote(called->proto->name())));
      if (states_[called].mark == State::kNew) open(called);
    }
  }

  std::size_t expanded(const Body& body) const {
    std::size_t total = std::min(body.nodes, limits::kNodes + 1);
    for (const auto& [f, times] : body.calls) {
      const std::size_t inner = states_.at(f).total;
      total += times > limits::kNodes / std::max<std::size_t>(inner, 1) ? limits::kNodes + 1 : times * inner;
      total = std::min(total, limits::kNodes + 1);
    }
    return total;
  }

 private:
  void close(State& state) {
    state.mark = State::kDone;
    // A call costs something even where the body is empty, so that doubling chains of empty functions are counted as well.
    state.total = std::min(expanded(state.body) + 1, limits::kNodes + 1);
    for (const auto& [f, times] : state.body.calls) state.depth = std::max(state.depth, states_[f].depth + 1);
    if (state.depth > limits::kFunctionDepth) throw InvalidModel(fmt::format("functions call each other more than {} deep", limits::kFunctionDepth));
  }

  const ModelFile& file_;
  std::map<const Function*, State> states_;
};

}  // namespace

void check_functions(const ModelFile& file) {
  if (file.functions.empty()) return;
  Checker checker(file);
  for (const auto& [key, f] : file.functions) checker.visit(&f);
  if (checker.expanded(read_body(file, file.proto.graph().node())) > limits::kNodes)
    throw InvalidModel(fmt::format("the model has more than {} nodes once its functions are inlined", limits::kNodes));
}

}  // namespace tandem
