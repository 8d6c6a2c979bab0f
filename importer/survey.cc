#include <fmt/format.h>

#include "importer/limits.h"
#include "importer/model_file.h"
#include "importer/rules.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

struct Finding {
  std::size_t count = 0;
  std::string first, reason;
};

// Why an operator cannot be imported at its opset; empty when it can.
std::string reason_against(const onnx::NodeProto& node, const Opsets& opsets) {
  if (!domain_of(node.domain()).empty()) return fmt::format(" of domain {}", quote(node.domain()));
  const OperatorForm* form = find_form(node.op_type());
  if (!form) return fmt::format(" at opset {}", opsets.onnx);
  if (opsets.onnx < form->since) return fmt::format(" at opset {} (ONNX has it since opset {})", opsets.onnx, form->since);
  if (opsets.onnx > form->until) return fmt::format(" at opset {} (ONNX has it until opset {})", opsets.onnx, form->until);
  return {};
}

class Survey {
 public:
  explicit Survey(const ModelFile& file) : file_(file) {}

  void run() {
    walk(file_.proto.graph().node(), file_.opsets);
    for (const auto& [key, f] : file_.functions) walk(f.proto->node(), f.opsets);
    if (!found_.empty()) throw Unsupported(message());
  }

 private:
  void walk(const Nodes& nodes, const Opsets& opsets) {
    std::vector<const Nodes*> stack{&nodes};
    while (!stack.empty()) {
      const Nodes& level = *stack.back();
      stack.pop_back();
      for (const auto& node : level) {
        for (const auto* g : subgraphs(node)) stack.push_back(&g->node());
        if (file_.function_of(node)) continue;
        const std::string reason = reason_against(node, opsets);
        if (reason.empty()) continue;
        Finding& finding = found_[node.op_type() + reason];
        if (finding.count++ == 0) finding = {1, describe(node), reason};
        foreign_ = foreign_ || !domain_of(node.domain()).empty();
      }
    }
  }

  std::string message() const {
    constexpr std::size_t kShown = 12;
    std::string text = found_.size() == 1 ? "an operator is not supported:" : fmt::format("{} operators are not supported:", found_.size());
    std::size_t shown = 0;
    for (const auto& [key, finding] : found_) {
      if (shown++ == kShown) {
        text += fmt::format("\n  and {} more", found_.size() - kShown);
        break;
      }
      const std::string_view op = std::string_view(key).substr(0, key.size() - finding.reason.size());
      text += fmt::format("\n  operator {}{}: {} {}, first {}", op.substr(0, 200), finding.reason, finding.count,
                          finding.count == 1 ? "node" : "nodes", finding.first);
    }
    text += foreign_ ? "\n  export the model with ONNX's own operators (domain \"\"), before a runtime's optimiser has rewritten it"
                     : "\n  export the model for inference, at an opset that has these operators, or replace the layers that make them";
    return text;
  }

  const ModelFile& file_;
  std::map<std::string, Finding> found_;
  bool foreign_ = false;
};

}  // namespace

void refuse_unknown_operators(const ModelFile& file) { Survey(file).run(); }

}  // namespace tandem
