#include "runtime/graph/optimizer.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/base/error.h"

namespace tandem {
namespace {

bool is_adam(const OptimizerOptions& o) { return o.kind == OptimizerKind::kAdam || o.kind == OptimizerKind::kAdamW; }
bool is_torch(const OptimizerOptions& o) { return o.convention == OptimizerConvention::kTorch; }
bool decoupled(const OptimizerOptions& o) { return !is_torch(o) || o.kind == OptimizerKind::kAdamW; }

// The slots that one parameter's step has, in the order of the operator's operands.
std::vector<std::string> step_slots(const OptimizerOptions& o) {
  std::vector<std::string> names;
  if (is_adam(o)) return {"momentum", "velocity"};
  if (o.kind == OptimizerKind::kAdagrad) return {"accumulator"};
  if (o.kind == OptimizerKind::kRmsprop) names.push_back("velocity");
  if (o.momentum > 0) names.push_back("momentum");
  if (o.kind == OptimizerKind::kRmsprop && o.centered) names.push_back("average_gradient");
  return names;
}

std::string step_operator(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kRmsprop:
      return "RmspropStep";
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return "AdamStep";
    case OptimizerKind::kAdagrad:
      return "AdagradStep";
    default:
      return "SgdStep";
  }
}

class Builder {
 public:
  explicit Builder(std::span<const TrainedParameter> parameters) : parameters_(parameters) {
    if (parameters.empty()) throw UsageError("there is nothing to train: no parameter is left");
  }

  ValueId input(std::string name, Shape shape) {
    const ValueId id = graph.add_value(std::move(name), DType::kF32);
    graph.value(id).shape = shape;
    graph.value(id).shape_known = true;
    graph.inputs.push_back(id);
    graph.declared_inputs.push_back({.dtype = DType::kF32, .shape_known = true, .shape = shape, .symbols = std::vector<std::string>(shape.size())});
    return id;
  }
  std::vector<ValueId> inputs(const std::string& prefix) {
    std::vector<ValueId> ids;
    for (const TrainedParameter& p : parameters_) ids.push_back(input(prefix + p.name, p.shape));
    return ids;
  }
  void output(ValueId id) {
    graph.outputs.push_back(id);
    graph.declared_outputs.push_back({});
  }
  std::vector<ValueId> node(const std::string& op, const std::string& name, std::vector<ValueId> in, Attributes attributes, std::size_t outputs = 1) {
    Node n;
    n.name = name;
    n.op = op;
    n.attributes = std::move(attributes);
    n.inputs = std::move(in);
    for (std::size_t i = 0; i < outputs; ++i) n.outputs.push_back(graph.add_value(fmt::format("{} {} {}", name, op, i)));
    graph.nodes.push_back(std::move(n));
    return graph.nodes.back().outputs;
  }
  // [1, 2] for each parameter: sum of g^2, penalty; and the same of all. Norm and penalty stand before every node that changes an array, so that who
  // runs the graph can look at them first.
  void add_norms(const std::vector<ValueId>& weights, const std::vector<ValueId>& gradients, ValueId scalars) {
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      Attributes a;
      a.set("l2", static_cast<float>(parameters_[p].l2));
      norms.push_back(node("GradientNorms", parameters_[p].name, {weights[p], gradients[p], scalars}, std::move(a))[0]);
    }
    Attributes rows, keep;
    rows.set("axis", std::int64_t{0});
    keep.set("keepdims", std::int64_t{1});
    const ValueId all = node("Concat", "norms", norms, std::move(rows))[0];
    const ValueId axes = graph.add_constant("axis of the norms", Tensor::ints(std::array<std::int64_t, 1>{0}));
    total = node("ReduceSum", "norms", {all, axes}, std::move(keep))[0];
    const ValueId flat_shape = graph.add_constant("shape of the norms", Tensor::ints(std::array<std::int64_t, 1>{2}));
    const ValueId flat = node("Reshape", "norms", {total, flat_shape}, {})[0];
    Attributes split;
    split.set("axis", std::int64_t{0});
    split.set("num_outputs", std::int64_t{2});
    const auto parts = node("Split", "norms", {flat}, std::move(split), 2);
    norm_ = node("Sqrt", "norm", {parts[0]}, {})[0];
    penalty_ = parts[1];
  }
  // Adds norm and penalty to the outputs.
  void output_norms() {
    output(norm_);
    output(penalty_);
  }

  Graph graph;
  std::vector<ValueId> norms;
  ValueId total = kNoValue;

 private:
  std::span<const TrainedParameter> parameters_;
  ValueId norm_ = kNoValue, penalty_ = kNoValue;
};

Attributes step_attributes(const TrainedParameter& p, const OptimizerOptions& o) {
  Attributes a;
  const auto set = [&](const char* name, double v) { a.set(name, static_cast<float>(v)); };
  set("l2", p.l2);
  set("rate_factor", p.rate_factor);
  const double decay = p.decays ? o.weight_decay : 0;
  set("decay", decoupled(o) ? decay : 0);
  set("coupled_decay", decoupled(o) ? 0 : decay);
  set("clip_value", o.clip_value);
  set("clip_norm", o.clip_norm > 0 ? o.clip_norm : o.global_clip_norm);
  a.set("torch", std::int64_t{is_torch(o)});
  set("momentum", o.momentum);
  set("epsilon", o.epsilon);
  if (o.kind == OptimizerKind::kSgd) a.set("nesterov", std::int64_t{o.nesterov});
  if (o.kind == OptimizerKind::kRmsprop) {
    set("rho", o.rho);
    set("one_minus_rho", 1 - o.rho);
    a.set("centered", std::int64_t{o.centered});
  }
  if (is_adam(o)) {
    set("one_minus_beta1", 1 - o.beta1);
    set("one_minus_beta2", 1 - o.beta2);
  }
  return a;
}

std::vector<OptimizerSlot> slots_of(std::span<const TrainedParameter> parameters, const OptimizerOptions& o) {
  std::vector<std::string> names = step_slots(o);
  if (o.ema > 0) names.push_back("average");
  std::vector<OptimizerSlot> slots;
  for (const std::string& name : names) {
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      slots.push_back({name, p, parameters[p].shape, name == "accumulator" ? static_cast<float>(o.accumulator) : 0.0f, name == "average"});
    }
  }
  return slots;
}

void expect(bool holds, const char* option, const char* range, double found) {
  if (!holds) throw UsageError(fmt::format("{} must be {}, is {}", option, range, found));
}

}  // namespace

OptimizerOptions default_optimizer(std::string_view name, OptimizerConvention convention) {
  OptimizerOptions o;
  o.convention = convention;
  const bool torch = is_torch(o);
  if (name == "momentum" || name == "nesterov") {
    o.momentum = 0.9;
    o.nesterov = name == "nesterov";
  } else if (name == "rmsprop") {
    o.kind = OptimizerKind::kRmsprop;
    o.rho = torch ? 0.99 : 0.9;
  } else if (name == "adam") {
    o.kind = OptimizerKind::kAdam;
  } else if (name == "adamw") {
    o.kind = OptimizerKind::kAdamW;
    o.weight_decay = torch ? 0.01 : 0.004;
  } else if (name == "adagrad") {
    o.kind = OptimizerKind::kAdagrad;
    o.accumulator = torch ? 0 : 0.1;
  } else if (name != "sgd") {
    throw UsageError(fmt::format("the optimizer must be sgd, momentum, nesterov, rmsprop, adam, adamw or adagrad, is \"{}\"", name));
  }
  if (torch) o.epsilon = o.kind == OptimizerKind::kAdagrad ? 1e-10 : 1e-8;
  return o;
}

double default_rate(OptimizerKind kind, OptimizerConvention convention) {
  const bool torch = convention == OptimizerConvention::kTorch;
  if (kind == OptimizerKind::kSgd) return torch ? 0.001 : 0.01;
  if (kind == OptimizerKind::kRmsprop || kind == OptimizerKind::kAdagrad) return torch ? 0.01 : 0.001;
  return 0.001;
}

void check(const OptimizerOptions& o) {
  expect(o.momentum >= 0 && o.momentum < 1, "the momentum", "in [0, 1)", o.momentum);
  expect(!o.nesterov || o.momentum > 0, "the momentum", "above 0 with nesterov", o.momentum);
  expect(o.rho >= 0 && o.rho < 1, "rho", "in [0, 1)", o.rho);
  expect(o.beta1 >= 0 && o.beta1 < 1, "beta1", "in [0, 1)", o.beta1);
  expect(o.beta2 >= 0 && o.beta2 < 1, "beta2", "in [0, 1)", o.beta2);
  expect(o.epsilon >= 0 && std::isfinite(o.epsilon), "epsilon", "a finite number of at least 0", o.epsilon);
  expect(o.accumulator >= 0 && std::isfinite(o.accumulator), "the initial accumulator", "a finite number of at least 0", o.accumulator);
  expect(o.weight_decay >= 0 && std::isfinite(o.weight_decay), "the weight decay", "a finite number of at least 0", o.weight_decay);
  expect(o.clip_value >= 0, "the clip value", "at least 0", o.clip_value);
  expect(o.clip_norm >= 0, "the clip norm", "at least 0", o.clip_norm);
  expect(o.global_clip_norm >= 0, "the global clip norm", "at least 0", o.global_clip_norm);
  expect(o.ema >= 0 && o.ema < 1, "the decay of the moving average", "in [0, 1)", o.ema);
  if ((o.clip_value > 0) + (o.clip_norm > 0) + (o.global_clip_norm > 0) > 1) {
    throw UsageError("gradients are clipped by value, by norm or by global norm: only one of the three can be chosen");
  }
}

UpdateGraph make_update_graph(std::span<const TrainedParameter> parameters, const OptimizerOptions& o) {
  check(o);
  Builder b(parameters);
  UpdateGraph made;
  made.slots = slots_of(parameters, o);
  const auto weights = b.inputs("weight "), gradients = b.inputs("gradient ");
  std::vector<ValueId> slots;
  for (const OptimizerSlot& s : made.slots) slots.push_back(b.input(s.name + " " + parameters[s.parameter].name, s.shape));
  const ValueId scalars = b.input("scalars", {static_cast<std::int64_t>(kStepScalars)});
  b.add_norms(weights, gradients, scalars);

  // Each step reads a norm of its own gradient (or of all), so that the norm is taken before the weight changes.
  const std::size_t count = parameters.size(), own = step_slots(o).size();
  std::vector<ValueId> new_weights(count), new_slots(slots.size());
  for (std::size_t p = 0; p < count; ++p) {
    std::vector<ValueId> in{weights[p], gradients[p], scalars, o.global_clip_norm > 0 ? b.total : b.norms[p]};
    for (std::size_t s = 0; s < own; ++s) in.push_back(slots[s * count + p]);
    const auto out = b.node(step_operator(o.kind), parameters[p].name, std::move(in), step_attributes(parameters[p], o), 1 + own);
    new_weights[p] = out[0];
    for (std::size_t s = 0; s < own; ++s) new_slots[s * count + p] = out[1 + s];
    if (o.ema > 0) new_slots[own * count + p] = b.node("MovingAverage", parameters[p].name, {slots[own * count + p], out[0], scalars}, {})[0];
  }
  for (const ValueId w : new_weights) b.output(w);
  for (const ValueId s : new_slots) b.output(s);
  b.output_norms();
  made.graph = std::move(b.graph);
  return made;
}

Graph make_accumulate_graph(std::span<const TrainedParameter> parameters) {
  Builder b(parameters);
  const auto weights = b.inputs("weight "), gradients = b.inputs("gradient "), sums = b.inputs("accumulated ");
  const ValueId scalars = b.input("scalars", {static_cast<std::int64_t>(kStepScalars)});
  b.add_norms(weights, gradients, scalars);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    b.output(b.node("AccumulateGradient", parameters[p].name, {sums[p], gradients[p], scalars}, {})[0]);
  }
  b.output_norms();
  return std::move(b.graph);
}

bool changes_arrays(std::string_view op) { return op.ends_with("Step") || op == "AccumulateGradient" || op == "MovingAverage"; }

StepScalars step_scalars(const OptimizerOptions& o, float learning_rate, std::int64_t iteration, double scale) {
  StepScalars s{};
  s[kGradientScale] = static_cast<float>(scale);
  s[kRate] = s[kStepRate] = learning_rate;
  s[kSecondRoot] = 1;
  s[kAverageMomentum] = iteration == 0 && !is_torch(o) ? 0.0f : static_cast<float>(o.ema);
  if (is_adam(o)) {
    const auto t = static_cast<double>(iteration + 1);
    const auto beta = [&](double b) { return is_torch(o) ? b : static_cast<double>(static_cast<float>(b)); };
    const double first = 1 - std::pow(beta(o.beta1), t), root = std::sqrt(1 - std::pow(beta(o.beta2), t));
    const double rate = static_cast<double>(learning_rate) / first;
    s[kStepRate] = static_cast<float>(is_torch(o) ? rate : rate * root);
    if (is_torch(o)) s[kSecondRoot] = static_cast<float>(root);
  }
  return s;
}

}  // namespace tandem
