// Dropout: up to opset 6 `is_test`, up to 11 the attribute `ratio` and never active at inference; from 12 ratio and training_mode are operands.
// A training mode written in the file is turned off: who trains says so. Before opset 10 the mask has the data's type.
#include "importer/rules.h"
#include "runtime/base/error.h"

namespace tandem {
namespace {

bool is_true(const Tensor* t) { return t && t->dtype() == DType::kBool && t->size() == 1 && t->as<bool>()[0]; }
bool is_zero(const Tensor* t) { return t && is_float(t->dtype()) && t->size() == 1 && t->to_doubles()[0] == 0; }

}  // namespace

void rewrite_dropout(NodeRewrite& c) {
  c.attributes().erase("is_test");
  if (c.opset < 12) {
    const float ratio = c.attributes().real("ratio", 0.5f);
    c.attributes().erase("ratio");
    c.node.inputs.resize(1);
    c.set_input(1, c.real(ratio, "ratio"));
    if (c.opset < 10 && c.has_output(1)) {
      Node mask;
      mask.op = "Cast";
      mask.attributes.set("to", std::int64_t{1});
      mask.outputs = {c.redirect_output(1)};
      mask.inputs = {c.node.outputs[1]};
      c.after.push_back(std::move(mask));
    }
    return;
  }
  if (!is_true(c.constant(2))) return;
  if (!is_zero(c.constant(1))) {
    if (c.options.as_written) throw Unsupported("Dropout in training mode gives random values; export the model for inference");
    c.notes.push_back("in training mode: turned off");
  }
  c.node.inputs.resize(2);
}

}  // namespace tandem
