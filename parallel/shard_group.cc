#include "parallel/shard_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <ranges>

#include "parallel/shard_tree.h"
#include "runtime/base/error.h"
#include "runtime/ops/shard_merge.h"

namespace tandem {
namespace {

// Plans, closures, thread stacks: what is not counted one by one.
constexpr std::size_t kReserveBytes = std::size_t{8} << 20;
constexpr std::size_t kHeldVaries = std::size_t{1} << 20;  // from one start of a program to the next
constexpr std::int64_t kAddedAtOnce = 16384;               // elements of a gradient that one task adds

std::size_t row_bytes(const Tensor& t) { return t.shape()[0] == 0 ? 0 : t.bytes() / static_cast<std::size_t>(t.shape()[0]); }

const std::byte* row(const Tensor& t, std::int64_t sample) {
  return static_cast<const std::byte*>(t.data()) + static_cast<std::size_t>(sample) * row_bytes(t);
}

// A shard's part of sum n_i m_i and sum n_i v_i: rows n, n * mean, n * variance.
std::vector<double> weighted(const std::vector<float>& moments, bool unbiased) {
  const std::size_t channels = moments.size() / 3;
  std::vector<double> sums(moments.begin(), moments.end());
  for (std::size_t c = 0; c < channels; ++c) {
    const double n = sums[c];
    sums[channels + c] *= n;
    if (unbiased && n > 1) sums[2 * channels + c] *= n / (n - 1);
  }
  return sums;
}

std::vector<double> added(std::vector<double> a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

}  // namespace

// The training graph for one number of samples.
struct ShardGroup::ShardPlan {
  TrainingGraph training;
  Plan plan;
  std::shared_ptr<const PackedWeights> packed;
  bool fresh = false;  // packed from the current weights
};

// One shard of the batch that runs.
struct ShardGroup::Shard {
  int index = 0;  // in the batch
  std::int64_t first = 0, samples = 0;
  const ShardPlan* plan = nullptr;
  std::byte* arena = nullptr;
  std::vector<const void*> inputs;
  std::int64_t random[3] = {0, 0, 0};
  double busy_seconds = 0;

  std::size_t begin_of(std::size_t segment) const { return segment == 0 ? 0 : plan->plan.segment_ends[segment - 1]; }
  std::size_t end_of(std::size_t segment) const { return plan->plan.segment_ends[segment]; }
  const std::byte* output(std::size_t o) const { return arena + plan->plan.outputs_at[o].at; }
};

ShardGroup::ShardGroup(std::shared_ptr<const Graph> graph, TrainingOptions training, ShardOptions options, TaskPool& pool, const CpuInfo& cpu)
    : graph_(std::move(graph)),
      training_(std::move(training)),
      options_([&] {
        options.plan.outputs_in_arena = true;
        return options;
      }()),
      pool_(pool),
      cpu_(cpu),
      counted_(system_),
      store_(counted_, pool_),
      resident_before_(resident_bytes()),
      device_use_(static_cast<std::size_t>(std::max(1, options_.devices))) {
  check_precision(options_.plan.precision, cpu_);
  std::vector<Shape> shapes;
  for (const ValueId id : training_.trained) shapes.push_back(graph_->value(id).shape);
  weights_ = FlatArrays(counted_, shapes);
  gradients_ = FlatArrays(counted_, shapes);
  for (std::size_t i = 0; i < weights_.count(); ++i) {
    const Tensor values = graph_->value(training_.trained[i]).constant.made();
    std::memcpy(weights_.data(i), values.data(), values.bytes());
  }
  for (const RunningStatistics& r : training_.running) {
    const auto mean = graph_->value(r.mean).constant.to_doubles(), variance = graph_->value(r.variance).constant.to_doubles();
    statistics_.push_back({r, {mean.begin(), mean.end()}, {variance.begin(), variance.end()}});
  }
  for (int w = 0; w < pool_.threads(); ++w) spaces_.emplace_back(counted_);
}

ShardGroup::~ShardGroup() = default;

ShardGroup::ShardPlan& ShardGroup::prepare(const std::vector<Shape>& batch_inputs, std::int64_t samples) {
  InputBinding binding;
  std::string key;
  for (Shape shape : batch_inputs) {
    if (shape.empty()) throw Unsupported("training needs inputs with a batch dimension");
    shape[0] = samples;
    key += to_string(shape);
    binding.shapes.push_back(std::move(shape));
  }
  auto& known = plans_[key];
  if (known) return *known;
  auto made = std::make_unique<ShardPlan>();
  made->training = make_training_graph(*graph_, binding, training_);
  binding.shapes.clear();
  for (const ValueId id : made->training.graph.inputs) binding.shapes.push_back(made->training.graph.value(id).shape);
  made->plan = make_plan(made->training.graph, binding, options_.plan, cpu_);
  made->packed = store_.pack(made->plan);
  known = std::move(made);
  return *known;
}

std::vector<std::size_t> ShardGroup::without_gradient() const {
  return plans_.empty() ? std::vector<std::size_t>() : plans_.begin()->second->training.without_gradient;
}

int ShardGroup::wave_size(int shards) const {
  if (training_.batch_norm == BatchNormMode::kSync) return shards;
  int wave = 1;
  while (wave < pool_.threads()) wave *= 2;
  return std::min(wave, shards);
}

const Plan& ShardGroup::plan(const std::vector<Shape>& inputs) {
  return prepare(inputs, split_batch(inputs.at(0).at(0), options_.shards, options_.split).front()).plan;
}

TrainingPrediction ShardGroup::predict(const std::vector<Shape>& inputs) {
  TrainingPrediction p = predict_as_is(inputs, options_.shards), least = p;
  Recompute of_least = training_.recompute;
  while (!fits(p) && training_.recompute < Recompute::kBlocks) {
    recompute(static_cast<Recompute>(static_cast<int>(training_.recompute) + 1));
    p = predict_as_is(inputs, options_.shards);
    if (p.total() >= least.total()) continue;  // small networks: what is repeated can take more than it saves
    least = p;
    of_least = training_.recompute;
  }
  if (fits(p) || of_least == training_.recompute) return p;
  recompute(of_least);
  return predict_as_is(inputs, options_.shards);
}

// Another level from here on: plans and what they packed are made anew.
void ShardGroup::recompute(Recompute level) {
  training_.recompute = level;
  plans_.clear();
  store_.forget();  // what only those plans would have packed anew
}

TrainingPrediction ShardGroup::predict_as_is(const std::vector<Shape>& inputs, int shards) {
  const auto sizes = split_batch(inputs.at(0).at(0), shards, options_.split);
  TrainingPrediction p;
  p.live_shards = wave_size(static_cast<int>(sizes.size()));
  const ShardPlan& largest = prepare(inputs, *std::max_element(sizes.begin(), sizes.end()));
  const Plan& plan = largest.plan;
  const std::size_t block = static_cast<std::size_t>(weights_.block_size()) * sizeof(float);
  p.weights = block;
  std::size_t partials = 1;  // of the tree: waves that wait for their neighbours
  for (std::size_t waves = (sizes.size() + static_cast<std::size_t>(p.live_shards) - 1) / static_cast<std::size_t>(p.live_shards); waves > 1;
       waves = (waves + 1) / 2)
    ++partials;
  p.gradients = block * partials;
  p.packed = packing_bytes(plan, pool_.threads()).peak;
  p.arenas = plan.arena_bytes * static_cast<std::size_t>(p.live_shards);
  p.scratch = plan.scratch_bytes * static_cast<std::size_t>(pool_.threads());
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    if (!largest.training.graph.value(largest.training.graph.inputs[i]).parameter) p.batch += plan.inputs[i].bytes() * sizes.size();
  }
  p.reserve = kReserveBytes + options_.held_bytes + options_.held_per_sample * static_cast<std::size_t>(inputs[0][0]);
  p.between = options_.between_bytes;
  return p;
}

// More shards of the same batch where they need not all be alive at once, else a smaller batch: each was planned, at the level of recomputation that
// is in force.
std::string ShardGroup::what_fits(const std::vector<Shape>& inputs) {
  const std::int64_t batch = inputs[0][0];
  // Not where the network takes shards of one size only.
  const auto planned_fits = [&](const std::vector<Shape>& shapes, int shards) {
    try {
      return fits(predict_as_is(shapes, shards), kHeldVaries);
    } catch (const Error&) {
      return false;
    }
  };
  const auto shards_fit = [&](std::int64_t k) { return planned_fits(inputs, static_cast<int>(k)); };
  const auto batch_fits = [&](std::int64_t samples) {
    std::vector<Shape> smaller = inputs;
    for (Shape& shape : smaller) shape[0] = samples;
    return planned_fits(smaller, options_.shards);
  };
  const auto up_to = [](std::int64_t first, std::int64_t last) { return std::views::iota(first, last + 1); };
  if (training_.batch_norm != BatchNormMode::kSync && batch > options_.shards && shards_fit(batch))
    return fmt::format("--shards {} fits", *std::ranges::partition_point(up_to(options_.shards + 1, batch), std::not_fn(shards_fit)));
  if (batch > 1 && batch_fits(1)) return fmt::format("a batch of {} fits", *std::ranges::partition_point(up_to(2, batch), batch_fits) - 1);
  return "use a larger limit or smaller images";
}

void ShardGroup::check_limit(const std::vector<Shape>& inputs) {
  if (options_.memory_limit == 0) return;
  const TrainingPrediction need = predict(inputs);
  const std::size_t total = resident_before_ + need.total();
  if (total <= options_.memory_limit) return;
  throw OutOfMemory(
      fmt::format("a step needs {} ({} held before, {} weights and gradients, {} packed, {} activations of {} shards{}), the limit is {}; {}",
                  format_size(total), format_size(resident_before_), format_size(need.weights + need.gradients), format_size(need.packed),
                  format_size(need.arenas), need.live_shards,
                  need.between > need.arenas + need.batch ? fmt::format(", or {} for a checkpoint", format_size(need.between)) : "",
                  format_size(options_.memory_limit), what_fits(inputs)),
      need.total(), resident_before_, options_.memory_limit);
}

// The shards of the batch, each with its plan; arenas come later.
std::vector<ShardGroup::Shard> ShardGroup::cut(const TrainingBatch& batch, std::span<const std::int64_t> sizes) {
  std::vector<Shape> shapes;
  for (const Tensor& t : batch.inputs) shapes.push_back(t.shape());
  std::vector<Shard> shards(sizes.size());
  std::int64_t first = 0;
  for (std::size_t s = 0; s < sizes.size(); first += sizes[s++]) {
    Shard& shard = shards[s];
    shard.index = static_cast<int>(s);
    shard.first = first;
    shard.samples = sizes[s];
    shard.plan = &prepare(shapes, sizes[s]);
    shard.random[0] = batch.seed, shard.random[1] = batch.step, shard.random[2] = first;
    for (const Tensor& t : batch.inputs) shard.inputs.push_back(row(t, first));
    for (std::size_t i = 0; i < weights_.count(); ++i) shard.inputs.push_back(weights_.data(i));
    shard.inputs.push_back(row(batch.target, first));
    shard.inputs.push_back(row(batch.weight, first));
    if (shard.plan->training.has_random) shard.inputs.push_back(shard.random);
  }
  return shards;
}

// Packs the weights where they changed or a plan is new.
void ShardGroup::repack() {
  for (auto& [key, known] : plans_) {
    if (stale_ || !known->fresh) {
      std::vector<Tensor> values(known->plan.inputs.size());
      for (std::size_t i = 0; i < weights_.count(); ++i) values[known->training.data_inputs + i] = weights_.view(i);
      store_.refresh(known->plan, *known->packed, values);
    }
    known->fresh = true;
  }
  stale_ = false;
}

void ShardGroup::fit_arenas(std::span<Shard> shards) {
  std::size_t bytes = 0;
  for (const Shard& s : shards) bytes = std::max(bytes, s.plan->plan.arena_bytes);
  arenas_.resize(std::max(arenas_.size(), shards.size()));
  for (std::size_t s = 0; s < shards.size(); ++s) {
    if (arenas_[s].bytes() < bytes) {
      arenas_[s] = Buffer();  // the old one goes first
      arenas_[s] = Buffer(counted_, bytes);
    }
    shards[s].arena = arenas_[s].data();
  }
}

// to += from, elementwise.
void ShardGroup::add(FlatArrays& to, const FlatArrays& from) {
  const std::int64_t size = to.block_size();
  pool_.parallel_for(static_cast<int>((size + kAddedAtOnce - 1) / kAddedAtOnce), [&](int, int part) {
    float* sum = to.block();
    const float* more = from.block();
    const std::int64_t end = std::min(size, (part + 1) * kAddedAtOnce);
    for (std::int64_t i = part * kAddedAtOnce; i < end; ++i) sum[i] += more[i];
  });
}

BatchResult ShardGroup::run(const TrainingBatch& batch) {
  BatchResult result;
  result.samples = batch.inputs.at(0).shape().at(0);
  std::vector<Shape> shapes;
  for (const Tensor& t : batch.inputs) shapes.push_back(t.shape());
  const auto sizes = split_batch(result.samples, options_.shards, options_.split);
  check_limit(shapes);
  std::vector<Shard> shards = cut(batch, sizes);
  repack();
  losses_.assign(shards.size(), 0.0);
  moments_.assign(statistics_.size(), std::vector<std::vector<float>>(shards.size()));
  const auto wave = static_cast<std::size_t>(wave_size(static_cast<int>(shards.size())));
  // Subtrees of one, two, four ... waves that wait for their right neighbours.
  struct Subtree {
    std::size_t waves;
    FlatArrays sums;
  };
  std::vector<Subtree> waiting;
  const auto add_last = [&] {
    Subtree right = std::move(waiting.back());
    waiting.pop_back();
    add(waiting.back().sums, right.sums);
    waiting.back().waves += right.waves;
    spare_.push_back(std::move(right.sums));
  };
  for (std::size_t first = 0; first < shards.size(); first += wave) {
    const std::span part = std::span(shards).subspan(first, std::min(wave, shards.size() - first));
    fit_arenas(part);
    const bool last = first + wave >= shards.size();
    if (!last || !waiting.empty()) {
      if (spare_.empty()) spare_.emplace_back(counted_, gradients_.shapes());
      waiting.push_back({1, std::move(spare_.back())});
      spare_.pop_back();
    }
    run_wave(part, waiting.empty() ? gradients_ : waiting.back().sums, result);
    while (waiting.size() > 1 && waiting.back().waves == waiting[waiting.size() - 2].waves) add_last();
  }
  while (waiting.size() > 1) add_last();
  if (!waiting.empty()) {
    std::swap(gradients_, waiting[0].sums);
    spare_.push_back(std::move(waiting[0].sums));
  }
  count_use(shards);
  const auto loss_of_shard = [&](int s) { return losses_[static_cast<std::size_t>(s)]; };
  result.loss_sum = merge_tree(0, static_cast<int>(shards.size()), loss_of_shard, [](double a, double b) { return a + b; });
  return result;
}

// On this worker alone, or on all of them together.
void ShardGroup::run_segment(Shard& shard, std::size_t segment, int worker, bool alone, StepTimes* profile) {
  const auto started = std::chrono::steady_clock::now();
  const Plan& plan = shard.plan->plan;
  const Run run{&plan, shard.plan->packed.get(), shard.arena, shard.inputs, {}, shard.begin_of(segment), shard.end_of(segment)};
  if (profile) profile->resize(plan.steps.size());
  if (alone) {
    spaces_[static_cast<std::size_t>(worker)].fit(plan);
    run_alone(run, spaces_[static_cast<std::size_t>(worker)], profile);
  } else {
    run_together(run, pool_, spaces_, profile);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  shard.busy_seconds += alone ? seconds : seconds * pool_.threads();
}

void ShardGroup::count_use(std::span<const Shard> shards) {
  for (const Shard& s : shards) {
    DeviceUse& use = device_use_[static_cast<std::size_t>(share_of(s.index, static_cast<int>(shards.size()), options_.devices))];
    use.samples += s.samples;
    use.busy_seconds += s.busy_seconds;
  }
}

void ShardGroup::run_wave(std::span<Shard> shards, FlatArrays& sums, BatchResult& result) {
  const std::size_t segments = shards[0].plan->plan.segment_ends.size();
  const bool alone = static_cast<int>(shards.size()) >= pool_.threads();
  std::vector<StepTimes> times(spaces_.size());
  for (std::size_t segment = 0; segment < segments; ++segment) {
    const auto run_shard = [&](Shard& s, int worker) {
      run_segment(s, segment, worker, alone, times_ && s.samples == shards[0].samples ? &times[static_cast<std::size_t>(worker)] : nullptr);
    };
    if (alone) {
      pool_.parallel_for(static_cast<int>(shards.size()), [&](int worker, int s) { run_shard(shards[static_cast<std::size_t>(s)], worker); });
    } else {
      for (Shard& s : shards) run_shard(s, 0);
    }
    merge_syncs(shards, segment);
    take_outputs(shards, segment, sums, result);
  }
  for (const StepTimes& t : times) {
    if (times_) times_->resize(std::max(times_->size(), t.size()));
    for (std::size_t s = 0; times_ && s < t.size(); ++s) (*times_)[s] += t[s];
  }
}

void ShardGroup::merge_syncs(std::span<Shard> shards, std::size_t segment) {
  const auto& syncs = shards[0].plan->plan.syncs;
  for (std::size_t i = 0; i < syncs.size(); ++i) {
    if (syncs[i].step < shards[0].begin_of(segment) || syncs[i].step >= shards[0].end_of(segment)) continue;
    const auto part = [&](int s) {
      const Shard& shard = shards[static_cast<std::size_t>(s)];
      return reinterpret_cast<const float*>(shard.arena + shard.plan->plan.syncs[i].part);
    };
    const auto size = static_cast<std::size_t>(syncs[i].desc.size());
    std::vector<float> merged;
    if (syncs[i].kind == Sync::kMoments) {
      merged = merge_tree(
          0, static_cast<int>(shards.size()), [&](int s) { return std::vector<float>(part(s), part(s) + size); },
          [&](std::vector<float> a, const std::vector<float>& b) {
            merge_moments(a.data(), b.data(), a.data(), static_cast<std::int64_t>(size / 3));
            return a;
          });
    } else {
      std::vector<const float*> parts;
      for (std::size_t s = 0; s < shards.size(); ++s) parts.push_back(part(static_cast<int>(s)));
      merged.resize(size);
      add_tree(parts, static_cast<std::int64_t>(size), merged.data());
    }
    for (const Shard& s : shards) std::memcpy(s.arena + s.plan->plan.syncs[i].merged, merged.data(), size * sizeof(float));
  }
}

void ShardGroup::take_outputs(std::span<Shard> shards, std::size_t segment, FlatArrays& sums, BatchResult& result) {
  const Plan& plan = shards[0].plan->plan;
  const auto take_rows = [&](Tensor& all, std::size_t o) {
    if (!all) {
      Shape shape = plan.outputs[o].shape;
      shape[0] = result.samples;
      all = Tensor(plan.outputs[o].dtype, shape);
    }
    for (const Shard& s : shards)
      std::memcpy(const_cast<std::byte*>(row(all, s.first)), s.output(o), row_bytes(all) * static_cast<std::size_t>(s.samples));
  };
  const auto& outputs = shards[0].plan->training.outputs;
  std::vector<std::size_t> gradients;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (plan.outputs_at[o].segment != segment) continue;
    switch (outputs[o].kind) {
      case TrainingOutput::Kind::kLoss:
        for (const Shard& s : shards) std::memcpy(&losses_[static_cast<std::size_t>(s.index)], s.output(o), sizeof(double));
        break;
      case TrainingOutput::Kind::kPrediction:
        take_rows(result.prediction, o);
        break;
      case TrainingOutput::Kind::kGradient:
        gradients.push_back(o);
        break;
      case TrainingOutput::Kind::kMoments:
        for (const Shard& s : shards) {
          const auto* values = reinterpret_cast<const float*>(s.output(o));
          moments_[outputs[o].index][static_cast<std::size_t>(s.index)].assign(values, values + plan.outputs[o].size());
        }
        break;
    }
  }
  add_gradients(shards, gradients, sums);
}

// All gradients that a segment gave in one go; few numbers at once are added sooner than a thread wakes.
void ShardGroup::add_gradients(std::span<Shard> shards, std::span<const std::size_t> gradients, FlatArrays& sums) {
  struct Piece {
    std::size_t output;
    std::int64_t first, count;
  };
  std::vector<Piece> pieces;
  std::int64_t all = 0;
  for (const std::size_t o : gradients) {
    const std::int64_t size = shards[0].plan->plan.outputs[o].size();
    for (std::int64_t first = 0; first < size; first += kAddedAtOnce) pieces.push_back({o, first, std::min(kAddedAtOnce, size - first)});
    all += size;
  }
  const auto add_piece = [&](int, int i) {
    const Piece& p = pieces[static_cast<std::size_t>(i)];
    std::vector<const float*> parts;
    for (const Shard& s : shards) parts.push_back(reinterpret_cast<const float*>(s.output(p.output)) + p.first);
    add_tree(parts, p.count, sums.data(shards[0].plan->training.outputs[p.output].index) + p.first);
  };
  const int count = static_cast<int>(pieces.size());
  if (all * std::ssize(shards) > kAddedAtOnce) return pool_.parallel_for(count, add_piece);
  for (int i = 0; i < count; ++i) add_piece(0, i);
}

void ShardGroup::update_statistics(bool unbiased_variance) {
  for (std::size_t i = 0; i < statistics_.size(); ++i) {
    Statistics& s = statistics_[i];
    const auto channels = static_cast<std::size_t>(s.which.channels);
    const auto& shards = moments_[i];
    if (shards.empty() || shards[0].empty()) continue;  // frozen, or the loss does not depend on it
    // With sync every shard holds the batch's.
    const int parts = training_.batch_norm == BatchNormMode::kSync ? 1 : static_cast<int>(shards.size());
    const auto sums = merge_tree(
        0, parts, [&](int part) { return weighted(shards[static_cast<std::size_t>(part)], unbiased_variance); }, added);
    const float keep = s.which.momentum, take = 1 - keep;
    for (std::size_t c = 0; c < channels; ++c) {
      s.mean[c] = s.mean[c] * keep + static_cast<float>(sums[channels + c] / sums[c]) * take;
      s.variance[c] = s.variance[c] * keep + static_cast<float>(sums[2 * channels + c] / sums[c]) * take;
    }
  }
}

}  // namespace tandem
