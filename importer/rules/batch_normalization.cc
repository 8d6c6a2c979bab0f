// BatchNormalization: up to opset 6 `is_test`; up to 8 `spatial`; before 14 training mode means that running statistics are read, and up to
// five outputs; from 14 `training_mode` and three outputs.
#include <fmt/format.h>

#include "importer/rules.h"
#include "runtime/base/error.h"

namespace tandem {
namespace {

// spatial = 0: statistics for every element of a sample. Plain arithmetic does it, broadcast over the batch.
void without_spatial(NodeRewrite& c) {
  const ValueId x = c.input(0), scale = c.input(1), bias = c.input(2), mean = c.input(3), variance = c.input(4);
  const ValueId epsilon = c.real(c.attributes().real("epsilon", 1e-5f), "epsilon");
  const ValueId deviation = c.emit("Sqrt", {c.emit("Add", {variance, epsilon})});
  const ValueId normalised = c.emit("Div", {c.emit("Sub", {x, mean}), deviation});
  Node add;
  add.name = c.node.name;
  add.op = "Add";
  add.inputs = {c.emit("Mul", {normalised, scale}), bias};
  add.outputs = {c.node.outputs.at(0)};
  c.node = std::move(add);
}

}  // namespace

void rewrite_batch_normalization(NodeRewrite& c) {
  Attributes& a = c.attributes();
  const bool asked = c.opset >= 14 ? a.integer("training_mode", 0) != 0 : c.opset >= 7 ? c.file_outputs > 1 : a.integer("is_test", 0) == 0;
  bool read = false;  // someone wants the running statistics
  for (std::size_t i = 1; i < c.node.outputs.size(); ++i) read = read || c.has_output(i);
  if (c.has_output(3) || c.has_output(4)) throw Unsupported("the outputs saved_mean and saved_var of BatchNormalization are not supported");
  // Batch statistics of what follows from weights alone (weight standardisation) do not depend on the mode of the network.
  const bool training = asked && (read || c.options.as_written || c.fixed(0));
  if (read && !training) throw InvalidModel("BatchNormalization has outputs of training mode but is not in training mode");
  if (asked && !training) c.notes.push_back("in training mode: moving statistics are used");
  const bool spatial = c.opset >= 9 || a.integer("spatial", 1) != 0;
  a.erase("is_test");
  a.erase("spatial");
  if (!training) c.node.outputs.resize(1);
  if (training && !read) c.node.outputs = {c.node.outputs[0], c.new_value("running_mean"), c.new_value("running_var")};  // the form has three
  if (!spatial && c.rank(0) != 2) {
    if (training) throw Unsupported("BatchNormalization with spatial=0 in training mode is not supported");
    return without_spatial(c);
  }
  a.set("training_mode", std::int64_t{training});
}

}  // namespace tandem
