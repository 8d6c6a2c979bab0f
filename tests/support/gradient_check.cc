#include "tests/support/gradient_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/graph/gradient.h"
#include "runtime/plan/execute.h"
#include "tests/support/graph_builder.h"

namespace tandem::test {
namespace {

InputBinding binding_of(const std::vector<Tensor>& inputs) {
  InputBinding binding;
  for (const Tensor& t : inputs) binding.shapes.push_back(t.shape());
  return binding;
}

// A plan and what it needs to be run again and again.
class Runner {
 public:
  Runner(const Graph& graph, const std::vector<Tensor>& inputs, const PlanOptions& options)
      : plan_(make_plan(graph, binding_of(inputs), options, cpu_)), pool_(1), store_(memory_, pool_), space_(memory_) {
    weights_ = store_.pack(plan_);
    store_.refresh(plan_, *weights_, inputs);
    arena_ = Buffer(memory_, plan_.arena_bytes);
    space_.fit(plan_);
  }

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    std::vector<const void*> in;
    for (const Tensor& t : inputs) in.push_back(t.data());
    std::vector<Tensor> outputs;
    std::vector<void*> out;
    for (const TensorDesc& d : plan_.outputs) outputs.emplace_back(d.dtype, d.shape);
    for (Tensor& t : outputs) out.push_back(t.mutable_data());
    run_alone({.plan = &plan_, .weights = weights_.get(), .arena = arena_.data(), .inputs = in, .outputs = out}, space_);
    return outputs;
  }

 private:
  const CpuInfo cpu_ = {};
  Plan plan_;
  MappedMemory memory_;
  TaskPool pool_;
  WeightStore store_;
  WorkerSpace space_;
  std::shared_ptr<const PackedWeights> weights_;
  Buffer arena_;
};

Tensor random_like(const Tensor& t, std::uint64_t seed) {
  const Tensor r = random_f32(t.shape(), seed);
  return t.dtype() == DType::kF64 ? in_double(r) : r;
}

double objective(const std::vector<Tensor>& outputs) {
  double sum = 0;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (!is_float(outputs[o].dtype())) continue;
    const auto y = outputs[o].to_doubles(), r = random_like(outputs[o], 1000 + o).to_doubles();
    for (std::size_t i = 0; i < y.size(); ++i) sum += r[i] * y[i];
  }
  return sum;
}

std::vector<std::size_t> float_inputs(const std::vector<Tensor>& inputs) {
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_float(inputs[i].dtype())) which.push_back(i);
  }
  return which;
}

// Gradients of all float inputs by the graph's own backward nodes; an empty tensor where nothing reaches one.
std::vector<Tensor> by_nodes(Graph graph, const std::vector<Tensor>& inputs, const PlanOptions& options) {
  infer(graph, binding_of(inputs));
  std::vector<GradientSeed> seeds;
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    const Value y = graph.value(graph.outputs[o]);
    if (!is_float(y.dtype)) continue;
    const Tensor r = random_like(Tensor(y.dtype, y.shape), 1000 + o);
    seeds.push_back({graph.outputs[o], graph.add_constant("seed" + std::to_string(o), r)});
  }
  std::vector<ValueId> wanted;
  for (const std::size_t i : float_inputs(inputs)) wanted.push_back(graph.inputs[i]);
  const auto gradients = add_gradients(graph, seeds, wanted);
  graph.outputs.clear();
  graph.declared_outputs.clear();
  for (const ValueId g : gradients) {
    if (g != kNoValue) graph.outputs.push_back(g);
  }
  auto found = graph.outputs.empty() ? std::vector<Tensor>() : Runner(graph, inputs, options).run(inputs);
  std::vector<Tensor> out;
  std::size_t next = 0;
  for (const ValueId g : gradients) out.push_back(g == kNoValue ? Tensor() : found[next++]);
  return out;
}

struct Difference {
  std::size_t element;
  double value;
};

std::vector<Difference> central(Runner& runner, std::vector<Tensor>& inputs, std::size_t input, const GradientCheck& options) {
  std::vector<Difference> out;
  const auto size = static_cast<std::size_t>(inputs[input].size());
  const std::size_t stride = std::max<std::size_t>(1, (size + options.most - 1) / std::max<std::size_t>(1, options.most));
  double* x = inputs[input].as_mutable<double>().data();
  for (std::size_t e = 0; e < size; e += stride) {
    const double kept = x[e];
    x[e] = kept + options.step;
    const double above = objective(runner.run(inputs));
    x[e] = kept - options.step;
    const double below = objective(runner.run(inputs));
    x[e] = kept;
    out.push_back({e, (above - below) / (2 * options.step)});
  }
  return out;
}

void compare(const Tensor& got, const std::vector<Difference>& want, double tolerance, const std::string& what) {
  double largest = 0;
  for (const Difference& d : want) largest = std::max(largest, std::abs(d.value));
  const auto g = got ? got.to_doubles() : std::vector<double>();
  for (const Difference& d : want) {
    const double value = got ? g[d.element] : 0;
    ASSERT_NEAR(value, d.value, tolerance * std::max(1.0, largest)) << what << ", element " << d.element;
  }
}

}  // namespace

std::vector<Tensor> run_planned(const Graph& graph, const std::vector<Tensor>& inputs, const PlanOptions& options) {
  return Runner(graph, inputs, options).run(inputs);
}

Tensor in_double(const Tensor& t) {
  if (t.dtype() != DType::kF32) return t;
  const auto values = t.to_doubles();
  return Tensor::of<double>(t.shape(), std::span<const double>(values));
}

Graph in_double(Graph graph) {
  for (Value& v : graph.values) {
    if (v.dtype == DType::kF32) v.dtype = DType::kF64;
    if (v.known()) v.constant = in_double(v.constant);
  }
  for (Declared& d : graph.declared_inputs) {
    if (d.dtype == DType::kF32) d.dtype = DType::kF64;
  }
  return graph;
}

void check_gradients(const Graph& graph, const std::vector<Tensor>& inputs, const GradientCheck& options) {
  const Graph wide = in_double(graph);
  std::vector<Tensor> wide_inputs;
  for (const Tensor& t : inputs) {
    wide_inputs.push_back(in_double(t));
    if (!is_float(t.dtype())) continue;
    Tensor own(DType::kF64, t.shape());  // moved element by element below
    std::copy_n(wide_inputs.back().as<double>().data(), own.size(), own.as_mutable<double>().data());
    wide_inputs.back() = own;
  }
  Runner forward(wide, wide_inputs, {});
  const auto f32 = by_nodes(graph, inputs, options.plan);
  const auto f64 = options.f64_gradient ? by_nodes(wide, wide_inputs, {}) : std::vector<Tensor>();
  std::size_t next = 0;
  for (const std::size_t i : float_inputs(inputs)) {
    const auto want = central(forward, wide_inputs, i, options);
    const std::string name = graph.value(graph.inputs[i]).name;
    compare(f32[next], want, options.f32_tolerance, "float32 gradient of " + name);
    if (options.f64_gradient) compare(f64[next], want, options.f64_tolerance, "float64 gradient of " + name);
    ++next;
  }
}

void check_node_gradients(const NodeCase& c, const GradientCheck& options) {
  GraphBuilder b;
  Node node;
  node.name = "tested";
  node.op = c.op;
  node.attributes = c.attributes;
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    if (!c.operands[i]) {
      node.inputs.push_back(kNoValue);
    } else if (std::find(c.constant.begin(), c.constant.end(), i) != c.constant.end()) {
      node.inputs.push_back(b.constant(name, c.operands[i]));
    } else {
      node.inputs.push_back(b.input(name, c.operands[i].dtype(), c.operands[i].shape()));
      inputs.push_back(c.operands[i]);
    }
  }
  for (std::size_t i = 0; i < c.outputs; ++i) {
    node.outputs.push_back(b.graph.add_value("y" + std::to_string(i)));
    b.output(node.outputs.back());
  }
  b.graph.nodes.push_back(std::move(node));
  check_gradients(b.graph, inputs, options);
}

}  // namespace tandem::test
