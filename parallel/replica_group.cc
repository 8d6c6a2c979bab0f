#include "parallel/replica_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ranges>

#include "runtime/base/error.h"
#include "runtime/plan/reorder.h"

namespace tandem {
namespace {

// Plans, closures and primitives, thread stacks: what is not counted one by one.
constexpr std::size_t kReserveBytes = std::size_t{6} << 20;
// More different shapes than a program meets in turn; fewer than would fill its memory with plans.
constexpr std::size_t kKeptPlans = 64;

Tensor converted(const Tensor& t, DType to) {
  if (t.dtype() == to) return t;
  Tensor out(to, t.shape());
  reorder(TensorDesc::plain(t.dtype(), t.shape()), t.data(), TensorDesc::plain(to, t.shape()), out.mutable_data());
  return out;
}

bool border_type(DType t) { return t == DType::kF16 || t == DType::kBF16; }

std::string key_of(const InputBinding& binding, const CutProof* cut) {
  std::string key;
  for (std::size_t i = 0; i < binding.shapes.size(); ++i) {
    Shape shape = binding.shapes[i];
    if (cut && cut->input_batched[i]) shape[0] = -1;
    key += to_string(shape);
    const auto value = binding.values.find(i);
    if (value != binding.values.end()) key.append(static_cast<const char*>(value->second.data()), value->second.bytes());
  }
  return key;
}

// Samples in a run of these shapes; 1 where the graph is not cut.
std::int64_t samples_of(const CutProof& cut, const InputBinding& binding) {
  for (std::size_t i = 0; cut.possible && i < binding.shapes.size(); ++i) {
    if (cut.input_batched[i]) return binding.shapes[i][0];
  }
  return 1;
}

const std::byte* row(const Tensor& t, std::int64_t sample, std::int64_t rows_per_sample) {
  const std::size_t bytes = t.shape()[0] == 0 ? 0 : t.bytes() / static_cast<std::size_t>(t.shape()[0]);
  return static_cast<const std::byte*>(t.data()) + static_cast<std::size_t>(sample * rows_per_sample) * bytes;
}

// Finds the memory of one sample of a batch, or of the whole batch where the graph is not cut.
struct SampleRun {
  const PreparedPlan& prepared;
  const std::vector<Tensor>& inputs;
  std::vector<Tensor>& outputs;
  const std::vector<std::int64_t>& share_end;

  template <class F>
  void with(std::int64_t sample, const Buffer& arena, F&& f) const {
    const CutProof& cut = prepared.cut;
    std::vector<const void*> in;
    std::vector<void*> out;
    for (std::size_t i = 0; i < inputs.size(); ++i) in.push_back(cut.possible && cut.input_batched[i] ? row(inputs[i], sample, 1) : inputs[i].data());
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      out.push_back(cut.possible ? const_cast<std::byte*>(row(outputs[o], sample, cut.rows_per_sample[o])) : outputs[o].mutable_data());
    }
    std::size_t replica = 0;
    while (prepared.weights.size() > 1 && sample >= share_end[replica]) ++replica;
    f(Run{&prepared.plan, prepared.weights[replica].get(), arena.data(), in, out});
  }
};

std::shared_ptr<const Graph> folded(const Graph& graph) {
  auto copy = std::make_shared<Graph>(graph);
  fold_constants(*copy);
  return copy;
}

}  // namespace

ReplicaGroup::ReplicaGroup(std::shared_ptr<const Graph> graph, GroupOptions options, TaskPool& pool, const CpuInfo& cpu)
    : graph_(folded(*graph)),
      options_(options),
      pool_(pool),
      cpu_(cpu),
      counted_(system_),
      steering_(steering_inputs(*graph_)),
      resident_before_(resident_bytes()) {
  check_precision(options_.plan.precision, cpu_);
  for (int r = 0; r < (options_.weights_per_replica ? options_.replicas : 1); ++r) stores_.push_back(std::make_unique<WeightStore>(counted_, pool_));
  for (int w = 0; w < pool_.threads(); ++w) spaces_.emplace_back(counted_);
  arenas_.resize(static_cast<std::size_t>(pool_.threads()));
}

ReplicaGroup::~ReplicaGroup() = default;

InputBinding ReplicaGroup::bind(const std::vector<Tensor>& inputs) const {
  if (inputs.size() != graph_->inputs.size())
    throw InvalidData(fmt::format("{} inputs given, the network has {}", inputs.size(), graph_->inputs.size()));
  InputBinding binding;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& v = graph_->value(graph_->inputs[i]);
    if (inputs[i].dtype() != v.dtype)
      throw InvalidData(fmt::format("input \"{}\" must be {}, is {}", v.name, name_of(v.dtype), name_of(inputs[i].dtype())));
    if (v.shape_known) {
      bool fits = v.shape.size() == inputs[i].shape().size();
      for (std::size_t d = 0; fits && d < v.shape.size(); ++d) fits = v.shape[d] < 0 || v.shape[d] == inputs[i].shape()[d];
      if (!fits)
        throw InvalidData(fmt::format("input \"{}\" must have shape {} (-1: any), has {}", v.name, to_string(v.shape), to_string(inputs[i].shape())));
    }
    binding.shapes.push_back(inputs[i].shape());
  }
  for (const std::size_t i : steering_) binding.values.emplace(i, inputs[i]);
  return binding;
}

std::shared_ptr<PreparedPlan> ReplicaGroup::find_plan(const std::string& key) {
  const auto known = plans_.find(key);
  if (known == plans_.end()) return nullptr;
  known->second.used = ++asked_;
  return known->second.plan;
}

void ReplicaGroup::keep_plan(const std::string& key, std::shared_ptr<PreparedPlan> plan) {
  plans_[key] = {std::move(plan), ++asked_};
  if (plans_.size() <= kKeptPlans) return;
  plans_.erase(std::min_element(plans_.begin(), plans_.end(), [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

std::shared_ptr<PreparedPlan> ReplicaGroup::find_or_make_plan(const InputBinding& binding) {
  const std::string whole_key = key_of(binding, nullptr);
  if (auto known = find_plan(whole_key)) return known;
  auto prepared = std::make_shared<PreparedPlan>();
  prepared->cut = prove_cut(*graph_, binding);
  const std::string key = prepared->cut.possible ? "one sample of " + key_of(binding, &prepared->cut) : whole_key;
  if (auto known = find_plan(key)) {
    check_limit(*known, binding);
    keep_plan(whole_key, known);
    return known;
  }
  const InputBinding planned = prepared->cut.possible ? with_batch(binding, prepared->cut, 1) : binding;
  prepared->plan = make_plan(*graph_, planned, options_.plan, cpu_);
  check_limit(*prepared, binding);
  keep_plan(key, prepared);
  if (key != whole_key) keep_plan(whole_key, prepared);
  return prepared;
}

std::shared_ptr<const PreparedPlan> ReplicaGroup::prepare(const InputBinding& binding, bool pack) {
  const std::lock_guard lock(mutex_);
  auto prepared = find_or_make_plan(binding);
  if (!pack || !prepared->weights.empty()) return prepared;
  std::vector<std::shared_ptr<const PackedWeights>> weights = {stores_[0]->pack(prepared->plan)};
  for (std::size_t r = 1; r < stores_.size(); ++r) weights.push_back(stores_[r]->copy(prepared->plan, *weights[0]));
  prepared->weights = std::move(weights);
  return prepared;
}

MemoryPrediction ReplicaGroup::predict(const PreparedPlan& prepared, const InputBinding& binding) const {
  const Plan& plan = prepared.plan;
  const std::int64_t samples = samples_of(prepared.cut, binding);
  MemoryPrediction p;
  const PackingBytes packing = packing_bytes(plan, pool_.threads());
  p.weights = packing.packed * stores_.size();
  p.packing = packing.peak;
  p.constants = plan.constant_bytes();
  const auto arenas = prepared.cut.possible ? std::min<std::int64_t>(samples, pool_.threads()) : 1;
  p.arenas = plan.arena_bytes * static_cast<std::size_t>(arenas);
  p.scratch = plan.scratch_bytes * static_cast<std::size_t>(pool_.threads());
  for (const TensorDesc& d : plan.inputs) p.inputs_outputs += d.bytes() * static_cast<std::size_t>(samples);
  for (const TensorDesc& d : plan.outputs) p.inputs_outputs += d.bytes() * static_cast<std::size_t>(samples);
  p.inputs_outputs *= options_.batch_copies;
  p.reserve = kReserveBytes + options_.held_bytes;
  return p;
}

void ReplicaGroup::check_limit(const PreparedPlan& prepared, const InputBinding& binding) const {
  if (options_.memory_limit == 0) return;
  const MemoryPrediction need = predict(prepared, binding);
  const std::size_t total = resident_before_ + need.total();
  if (total <= options_.memory_limit) return;
  std::string largest;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, prepared.plan.buffers.size()); ++i) {
    largest += fmt::format("{}\"{}\" {}", i ? ", " : "", prepared.plan.buffers[i].value, format_size(prepared.plan.buffers[i].bytes));
  }
  std::string advice = "use a larger limit or fewer threads";
  const std::int64_t samples = samples_of(prepared.cut, binding);
  const auto fits = [&](std::int64_t n) {
    return resident_before_ + predict(prepared, with_batch(binding, prepared.cut, n)).total() <= options_.memory_limit;
  };
  if (samples > 1 && fits(1))
    advice = fmt::format("a batch of {} fits", *std::ranges::partition_point(std::views::iota(std::int64_t{2}, samples), fits) - 1);
  throw OutOfMemory(
      fmt::format("the run needs {} ({} held before, {} weights, {} activations, {} inputs and outputs), the limit is {}; {}; largest buffers: {}",
                  format_size(total), format_size(resident_before_), format_size(need.weights + need.constants),
                  format_size(need.arenas + need.scratch), format_size(need.inputs_outputs), format_size(options_.memory_limit), advice, largest),
      need.total(), resident_before_, options_.memory_limit);
}

std::vector<Tensor> ReplicaGroup::run(const std::vector<Tensor>& given) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < given.size(); ++i) inputs.push_back(border_type(given[i].dtype()) ? converted(given[i], DType::kF32) : given[i]);
  const InputBinding binding = bind(inputs);
  const auto prepared = prepare(binding, true);
  const std::int64_t samples = samples_of(prepared->cut, binding);
  std::vector<Tensor> outputs;
  for (std::size_t o = 0; o < prepared->plan.outputs.size(); ++o) {
    Shape shape = prepared->plan.outputs[o].shape;
    if (prepared->cut.possible) shape[0] = samples * prepared->cut.rows_per_sample[o];
    outputs.emplace_back(prepared->plan.outputs[o].dtype, shape);
  }
  run_batch(*prepared, samples, inputs, outputs);
  for (std::size_t o = 0; o < outputs.size() && o < graph_->declared_outputs.size(); ++o) {
    if (border_type(graph_->declared_outputs[o].dtype)) outputs[o] = converted(outputs[o], graph_->declared_outputs[o].dtype);
  }
  return outputs;
}

void ReplicaGroup::run_batch(const PreparedPlan& prepared, std::int64_t samples, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  const int threads = pool_.threads();
  // A short tail is shared by all workers; in a long run the counter evens out.
  const std::int64_t shared = !prepared.cut.possible ? samples : samples >= 4 * threads ? 0 : samples % threads;
  const std::int64_t alone = samples - shared;
  std::vector<std::int64_t> share_end;  // of each replica
  for (const std::int64_t size : split_batch(samples, options_.replicas, options_.split))
    share_end.push_back((share_end.empty() ? 0 : share_end.back()) + size);
  const SampleRun sample_run{prepared, inputs, outputs, share_end};
  std::vector<StepTimes> worker_times(times_ ? static_cast<std::size_t>(threads) : 0, StepTimes(prepared.plan.steps.size(), 0.0));
  pool_.parallel_for(static_cast<int>(alone), [&](int worker, int sample) {
    Buffer& arena = arenas_[static_cast<std::size_t>(worker)];
    if (arena.bytes() < prepared.plan.arena_bytes) arena = Buffer(counted_, prepared.plan.arena_bytes);
    spaces_[static_cast<std::size_t>(worker)].fit(prepared.plan);
    StepTimes* times = times_ ? &worker_times[static_cast<std::size_t>(worker)] : nullptr;
    sample_run.with(sample, arena, [&](const Run& run) { run_alone(run, spaces_[static_cast<std::size_t>(worker)], times); });
  });
  for (const StepTimes& mine : worker_times) {
    for (std::size_t i = 0; i < mine.size(); ++i) (*times_)[i] += mine[i];
  }
  for (std::int64_t sample = alone; sample < samples; ++sample) {
    Buffer arena = take_arena(prepared.plan.arena_bytes);
    sample_run.with(sample, arena, [&](const Run& run) { run_together(run, pool_, spaces_, times_); });
    give_arena(std::move(arena));
  }
}

Buffer ReplicaGroup::take_arena(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (auto it = free_arenas_.begin(); it != free_arenas_.end(); ++it) {
    if (it->bytes() < bytes) continue;
    Buffer found = std::move(*it);
    free_arenas_.erase(it);
    return found;
  }
  free_arenas_.clear();  // too small ones would only add up
  return Buffer(counted_, bytes);
}

void ReplicaGroup::give_arena(Buffer arena) {
  const std::lock_guard lock(mutex_);
  free_arenas_.push_back(std::move(arena));
}

}  // namespace tandem
