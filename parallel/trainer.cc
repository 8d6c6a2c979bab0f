#include "parallel/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "runtime/base/error.h"

namespace tandem {
namespace {

Tensor copy_of(const Tensor& t) {
  Tensor copy(t.dtype(), t.shape());
  std::memcpy(copy.mutable_data(), t.data(), t.bytes());
  return copy;
}

Tensor tensor_of(const std::vector<float>& values) {
  return Tensor::of<float>({static_cast<std::int64_t>(values.size())}, std::span<const float>(values));
}

void check_array(const Trainer::NamedArray& found, const std::string& name, const Shape& shape) {
  if (found.name != name) throw InvalidData(fmt::format("expected \"{}\" in the state, found \"{}\"", name, found.name));
  if (found.values.shape() != shape || found.values.dtype() != DType::kF32)
    throw InvalidData(
        fmt::format("\"{}\" must be float32 {}, is {} {}", name, to_string(shape), name_of(found.values.dtype()), to_string(found.values.shape())));
}

std::vector<Shape> shapes_of(const std::vector<OptimizerSlot>& slots) {
  std::vector<Shape> shapes;
  for (const OptimizerSlot& s : slots) shapes.push_back(s.shape);
  return shapes;
}

}  // namespace

Trainer::Trainer(std::shared_ptr<const Graph> graph, TrainerOptions options, TaskPool& pool, const CpuInfo& cpu)
    : options_(std::move(options)), pool_(pool), cpu_(cpu), counted_(system_), store_(counted_, pool_) {
  UpdateGraph made = make_update_graph(options_.parameters, options_.optimizer);
  slot_list_ = std::move(made.slots);
  update_ = planned(made.graph);
  std::size_t arena = update_.plan.arena_bytes;
  slots_ = FlatArrays(counted_, shapes_of(slot_list_));
  if (options_.accumulate > 1) {
    accumulate_ = planned(make_accumulate_graph(options_.parameters));
    arena = std::max(arena, accumulate_.plan.arena_bytes);
  }
  arena_ = Buffer(counted_, arena);
  for (int w = 0; w < pool_.threads(); ++w) spaces_.emplace_back(counted_);
  ShardOptions shards = options_.shards;
  shards.held_bytes += counted_.live_bytes();
  if (options_.saves) {
    std::size_t saved = FlatArrays::bytes_for(slots_.shapes()) + options_.saved_beside;
    for (const TrainedParameter& p : options_.parameters) saved += static_cast<std::size_t>(elements(p.shape)) * sizeof(float);
    shards.between_bytes += 2 * saved;
  }
  group_ = std::make_unique<ShardGroup>(std::move(graph), options_.training, shards, pool_, cpu_);
  if (options_.accumulate > 1) sums_ = FlatArrays(counted_, group_->gradients().shapes());
  for (std::size_t s = 0; s < slot_list_.size(); ++s) {
    const OptimizerSlot& slot = slot_list_[s];
    if (slot.starts_at_weight)
      std::copy_n(group_->weights().data(slot.parameter), slots_.size(s), slots_.data(s));
    else
      std::fill_n(slots_.data(s), slots_.size(s), slot.initial);
  }
}

Trainer::Elementwise Trainer::planned(const Graph& graph) {
  InputBinding binding;
  for (const ValueId id : graph.inputs) binding.shapes.push_back(graph.value(id).shape);
  Elementwise made{make_plan(graph, binding, {}, cpu_), nullptr};
  made.packed = store_.pack(made.plan);
  const auto& steps = made.plan.steps;
  const auto changes = [](const Step& s) { return changes_arrays(s.op); };
  const auto first = std::find_if(steps.begin(), steps.end(), changes);
  if (!std::all_of(first, steps.end(), changes)) throw std::logic_error("a plan of the optimizer computes norms behind its first step");
  made.first_change = static_cast<std::size_t>(first - steps.begin());
  return made;
}

bool Trainer::run(const Elementwise& e, const std::vector<const void*>& inputs, const std::vector<void*>& outputs, const double& norm) {
  Run part{.plan = &e.plan, .weights = e.packed.get(), .arena = arena_.data(), .inputs = inputs, .outputs = outputs};
  part.end_step = e.first_change;
  run_together(part, pool_, spaces_);
  // The squares are added up in double: a sum that is finite has only finite elements, and the other way round.
  if (!std::isfinite(norm)) return false;
  part.first_step = e.first_change;
  part.end_step = e.plan.steps.size();
  run_together(part, pool_, spaces_);
  return true;
}

bool Trainer::accumulate(std::int64_t samples, StepReport& report) {
  if (accumulated_ == 0) std::fill_n(sums_.block(), sums_.block_size(), 0.0f);
  const StepScalars scalars = step_scalars(options_.optimizer, 0, iteration_, 1.0 / static_cast<double>(samples));
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const FlatArrays* arrays : {&group_->weights(), &group_->gradients(), &sums_}) {
    for (std::size_t i = 0; i < arrays->count(); ++i) in.push_back(arrays->data(i));
  }
  in.push_back(scalars.data());
  for (std::size_t i = 0; i < sums_.count(); ++i) out.push_back(sums_.data(i));
  out.push_back(&report.gradient_norm);
  out.push_back(&report.penalty);
  return run(accumulate_, in, out, report.gradient_norm);
}

bool Trainer::update(FlatArrays& gradients, const StepScalars& scalars, double& norm, double& penalty) {
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const FlatArrays* arrays : {&group_->weights(), &gradients, &slots_}) {
    for (std::size_t i = 0; i < arrays->count(); ++i) {
      in.push_back(arrays->data(i));
      if (arrays != &gradients) out.push_back(arrays->data(i));
    }
  }
  in.push_back(scalars.data());
  out.push_back(&norm);
  out.push_back(&penalty);
  if (!run(update_, in, out, norm)) return false;
  group_->weights_changed();
  return true;
}

StepReport Trainer::step(const TrainingBatch& batch, float learning_rate) {
  StepReport report;
  report.batch = group_->run(batch);
  const std::int64_t samples = report.batch.samples;
  report.loss = report.batch.loss_sum / static_cast<double>(samples);
  if (!std::isfinite(report.loss)) return report;
  if (options_.accumulate == 1) {
    report.updated = update(group_->gradients(), step_scalars(options_.optimizer, learning_rate, iteration_, 1.0 / static_cast<double>(samples)),
                            report.gradient_norm, report.penalty);
  } else if (accumulate(samples, report) && ++accumulated_ == options_.accumulate) {
    double norm = 0, penalty = 0;  // of the mean gradient: the report speaks of the batch's, unless only their sum overflowed
    report.updated = update(sums_, step_scalars(options_.optimizer, learning_rate, iteration_, 1.0 / options_.accumulate), norm, penalty);
    if (!report.updated) report.gradient_norm = norm;
    accumulated_ = 0;
  }
  if (report.updated) ++iteration_;
  report.loss += report.penalty;
  if (!report.is_finite()) return report;
  group_->update_statistics(options_.unbiased_variance);
  return report;
}

TrainingPrediction Trainer::predict(const std::vector<Shape>& inputs) { return group_->predict(inputs); }

std::vector<std::string> Trainer::without_gradient() const {
  std::vector<std::string> names;
  for (const std::size_t i : group_->without_gradient()) names.push_back(options_.parameters[i].name);
  return names;
}

Tensor Trainer::weights_of(std::size_t parameter, bool averaged) const {
  for (std::size_t s = 0; averaged && s < slot_list_.size(); ++s) {
    if (slot_list_[s].name == "average" && slot_list_[s].parameter == parameter) return slots_.view(s);
  }
  return group_->weights().view(parameter);
}

double Trainer::penalty(bool averaged) const {
  double sum = 0;
  for (std::size_t i = 0; i < options_.parameters.size(); ++i) {
    if (options_.parameters[i].l2 == 0) continue;
    const Tensor weights = weights_of(i, averaged);
    double squares = 0;
    for (const float w : weights.as<float>()) squares += static_cast<double>(w) * static_cast<double>(w);
    sum += options_.parameters[i].l2 * squares;
  }
  return sum;
}

Graph Trainer::trained(bool averaged) const {
  Graph graph = *group_->graph();
  for (std::size_t i = 0; i < options_.training.trained.size(); ++i) {
    graph.value(options_.training.trained[i]).constant = weights_of(i, averaged);
  }
  for (const auto& s : group_->statistics()) {
    graph.value(s.which.mean).constant = tensor_of(s.mean);
    graph.value(s.which.variance).constant = tensor_of(s.variance);
  }
  return graph;
}

Trainer::State Trainer::view(int accumulated) const {
  State state;
  const auto& parameters = options_.parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) state.weights.push_back({parameters[i].name, group_->weights().view(i)});
  for (const auto& s : group_->statistics()) {
    state.statistics.push_back({group_->graph()->value(s.which.mean).name, tensor_of(s.mean)});
    state.statistics.push_back({group_->graph()->value(s.which.variance).name, tensor_of(s.variance)});
  }
  for (std::size_t s = 0; s < slot_list_.size(); ++s)
    state.slots.push_back({fmt::format("{}/{}", slot_list_[s].name, parameters[slot_list_[s].parameter].name), slots_.view(s)});
  for (std::size_t i = 0; accumulated > 0 && i < sums_.count(); ++i)
    state.slots.push_back({fmt::format("accumulated/{}", parameters[i].name), sums_.view(i)});
  state.iteration = iteration_;
  state.accumulated = accumulated;
  return state;
}

Trainer::State Trainer::state() const {
  State state = view();
  for (auto* arrays : {&state.weights, &state.slots}) {
    for (NamedArray& a : *arrays) a.values = copy_of(a.values);
  }
  return state;
}

void Trainer::restore(const State& state) {
  const State own = view(state.accumulated);
  const auto check = [](const std::vector<NamedArray>& found, const std::vector<NamedArray>& expected) {
    if (found.size() != expected.size()) throw InvalidData(fmt::format("the state has {} arrays, expected {}", found.size(), expected.size()));
    for (std::size_t i = 0; i < found.size(); ++i) check_array(found[i], expected[i].name, expected[i].values.shape());
  };
  check(state.weights, own.weights);
  check(state.statistics, own.statistics);
  check(state.slots, own.slots);
  const auto put = [](const Tensor& from, float* to) { std::memcpy(to, from.data(), from.bytes()); };
  for (std::size_t i = 0; i < state.weights.size(); ++i) put(state.weights[i].values, group_->weights().data(i));
  for (std::size_t i = 0; i < group_->statistics().size(); ++i) {
    put(state.statistics[2 * i].values, group_->statistics()[i].mean.data());
    put(state.statistics[2 * i + 1].values, group_->statistics()[i].variance.data());
  }
  for (std::size_t s = 0; s < slot_list_.size(); ++s) put(state.slots[s].values, slots_.data(s));
  for (std::size_t i = slot_list_.size(); i < state.slots.size(); ++i) put(state.slots[i].values, sums_.data(i - slot_list_.size()));
  iteration_ = state.iteration;
  accumulated_ = state.accumulated;
  group_->weights_changed();
}

}  // namespace tandem
