#include "tools/tandem.h"

#include <fmt/format.h>

#include "importer/importer.h"
#include "parallel/replica_group.h"

namespace tandem {
namespace {

std::string describe_desc(const TensorDesc& d) {
  if (!d) return "-";
  return fmt::format("{} {}{}", name_of(d.dtype), to_string(d.shape), d.layout == Layout::kChannelsLast ? " channels-last" : "");
}

GroupOptions group_options(const RunOptions& options, const CpuInfo& cpu) {
  GroupOptions group;
  for (const DeviceId& d : options.devices) {
    if (d.kind != DeviceId::Kind::kCpu) throw UsageError("this build has no GPU plugin: use --devices cpu or cpu:N");
  }
  if (options.devices.empty()) throw UsageError("no device is given");
  group.replicas = static_cast<int>(options.devices.size());
  group.plan = {.precision = options.precision, .passes = options.passes};
  group.weights_per_replica = options.weights_per_device;
  group.split = options.split;
  group.batch_copies = options.batch_copies;
  group.held_bytes = options.held_bytes;
  group.memory_limit = options.memory.limit(cpu.memory_bytes);
  return group;
}

}  // namespace

std::vector<RunReport::StepReport> steps_of(const Plan& plan) {
  std::vector<RunReport::StepReport> steps;
  for (const Step& step : plan.steps) {
    steps.push_back({.node = step.node, .op = step.op, .implementation = step.kernel.implementation, .outputs = {}});
    for (const TensorDesc& d : step.out_descs) steps.back().outputs.push_back(describe_desc(d));
  }
  return steps;
}

struct Predictor::Impl {
  Impl(Model given, RunOptions chosen)
      : model(std::move(given)),
        options(std::move(chosen)),
        cpu(CpuInfo::detect()),
        pool(options.threads > 0 ? options.threads : cpu.default_threads()),
        group(model.shared_graph(), group_options(options, cpu), pool, cpu) {
    if (options.log && options.precision == Precision::kBF16 && !cpu.amx_bf16) {
      options.log("this CPU has no AMX: bf16 is right but slower than f32 here");
    }
  }

  InputBinding binding_of(const std::vector<Tensor>& inputs) const {
    InputBinding binding;
    for (const Tensor& t : inputs) binding.shapes.push_back(t.shape());
    for (const std::size_t i : steering_inputs(model.graph())) binding.values.emplace(i, inputs.at(i));
    return binding;
  }

  RunReport report(const PreparedPlan& prepared, const InputBinding& binding) const {
    const MemoryPrediction memory = group.predict(prepared, binding);
    RunReport r;
    r.cut = prepared.cut.possible;
    r.reason = prepared.cut.reason;
    r.weights_bytes = memory.weights + memory.constants;
    r.activation_bytes = memory.arenas + memory.scratch;
    r.io_bytes = memory.inputs_outputs;
    r.predicted_bytes = memory.total();
    r.buffers = prepared.plan.buffers;
    r.passes = prepared.plan.fused;
    r.steps = steps_of(prepared.plan);
    return r;
  }

  Model model;
  RunOptions options;
  CpuInfo cpu;
  TaskPool pool;
  ReplicaGroup group;
};

Model Model::from_file(const std::filesystem::path& path) { return Model(std::make_shared<const Graph>(import_file(path))); }

Model Model::from_memory(std::span<const std::byte> bytes, const std::filesystem::path& folder) {
  return Model(std::make_shared<const Graph>(import_bytes(bytes, folder)));
}

std::vector<DeviceId> cpu_devices(int count) {
  std::vector<DeviceId> devices;
  for (int i = 0; i < count; ++i) devices.push_back({DeviceId::Kind::kCpu, i});
  return devices;
}

Predictor::Predictor(Model model, RunOptions options) : impl_(std::make_unique<Impl>(std::move(model), std::move(options))) {}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

std::vector<Tensor> Predictor::run(const std::vector<Tensor>& inputs) const { return impl_->group.run(inputs); }

RunReport Predictor::plan(const std::vector<Shape>& shapes, const std::map<std::size_t, Tensor>& values) const {
  const InputBinding binding{shapes, values};
  return impl_->report(*impl_->group.prepare(binding), binding);
}

RunReport Predictor::plan_for(const std::vector<Tensor>& inputs) const {
  const InputBinding binding = impl_->binding_of(inputs);
  return impl_->report(*impl_->group.prepare(binding), binding);
}

RunReport Predictor::profile(const std::vector<Tensor>& inputs, int iterations) const {
  impl_->group.run(inputs);
  const InputBinding binding = impl_->binding_of(inputs);
  const auto prepared = impl_->group.prepare(binding);
  StepTimes times(prepared->plan.steps.size(), 0.0);
  impl_->group.set_profile(&times);
  for (int i = 0; i < iterations; ++i) impl_->group.run(inputs);
  impl_->group.set_profile(nullptr);
  RunReport r = impl_->report(*prepared, binding);
  for (std::size_t i = 0; i < times.size(); ++i) r.steps[i].seconds = times[i] / std::max(1, iterations);
  return r;
}

const Model& Predictor::model() const { return impl_->model; }
int Predictor::threads() const { return impl_->pool.threads(); }
void Predictor::submit(std::function<void()> task) const { impl_->pool.submit(std::move(task)); }

}  // namespace tandem
