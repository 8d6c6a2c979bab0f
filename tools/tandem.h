// What a C++ user includes: load an exported network, run it on one or many devices.
//
//   tandem::Model model = tandem::Model::from_file("xception.onnx");
//   tandem::Predictor predictor(model, {.devices = tandem::cpu_devices(2)});
//   std::vector<tandem::Tensor> outputs = predictor.run({images});   // any batch size
//
// Errors are the exceptions of runtime/base/error.h.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "parallel/split.h"
#include "runtime/base/error.h"
#include "runtime/base/tensor.h"
#include "runtime/cpu/cpu_info.h"
#include "runtime/graph/graph.h"
#include "runtime/memory/memory.h"
#include "runtime/ops/op.h"
#include "runtime/plan/plan.h"

namespace tandem {

// An imported network. Immutable; copies share it.
class Model {
 public:
  // Reads a .onnx file (and the external data beside it). Throws InvalidModel, Unsupported, InvalidData (no such file).
  static Model from_file(const std::filesystem::path&);
  // A .onnx file in memory; external data is looked for in `folder` (empty: refused).
  static Model from_memory(std::span<const std::byte>, const std::filesystem::path& folder = {});
  explicit Model(std::shared_ptr<const Graph> graph) : graph_(std::move(graph)) {}

  const Graph& graph() const { return *graph_; }
  std::shared_ptr<const Graph> shared_graph() const { return graph_; }

 private:
  std::shared_ptr<const Graph> graph_;
};

// One device of a run. cpu devices are logical: they share the pool of threads.
struct DeviceId {
  enum class Kind { kCpu, kCuda } kind = Kind::kCpu;
  int ordinal = 0;
};
std::vector<DeviceId> cpu_devices(int count);

struct RunOptions {
  std::vector<DeviceId> devices = {DeviceId{}};
  int threads = 0;  // workers of the pool; 0: what affinity and quota allow
  Precision precision = Precision::kF32;
  bool passes = true;
  bool weights_per_device = false;  // --weights device
  SplitRule split = SplitRule::kBalanced;
  MemoryPolicy memory;
  // What the caller holds while a batch runs, for the memory limit: copies of its inputs and outputs (1: those of run() itself), other bytes.
  std::size_t batch_copies = 1, held_bytes = 0;
  std::function<void(const std::string&)> log;  // warnings and placement, one line each; may be empty
};

// What a plan says about a run of given input shapes.
struct RunReport {
  bool cut = false;    // each device gets a share of the batch; else the whole batch runs on the first
  std::string reason;  // why it is not cut
  std::size_t weights_bytes = 0, activation_bytes = 0, io_bytes = 0, predicted_bytes = 0;  // beyond what the process held before
  std::vector<PlannedBuffer> buffers;                                                      // largest first
  std::vector<std::string> passes;                                                         // what was fused or folded
  struct StepReport {
    std::string node, op, implementation;
    std::vector<std::string> outputs;  // "float32 [1, 32, 149, 149] channels-last"
    double seconds = 0;                // only in profile()
  };
  std::vector<StepReport> steps;
};

// The nodes of a plan, without seconds.
std::vector<RunReport::StepReport> steps_of(const Plan&);

// A network ready to run on a group of devices. run() may be called from several threads at once.
class Predictor {
 public:
  Predictor(Model model, RunOptions options = {});
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;

  // Inputs in the order of the graph's inputs; outputs in the order of its outputs and of their declared types. Half precision inputs may
  // also be given as float32. Throws InvalidData when an input does not fit, OutOfMemory before anything ran.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;

  // Plans for these input shapes (one for each graph input, no -1) without running. `values`: inputs that decide shapes, by index.
  RunReport plan(const std::vector<Shape>& shapes, const std::map<std::size_t, Tensor>& values = {}) const;
  RunReport plan_for(const std::vector<Tensor>& inputs) const;  // the plan that run(inputs) takes
  // Runs `iterations` times with the inputs and gives the mean seconds of each step. Not at the same time as run().
  RunReport profile(const std::vector<Tensor>& inputs, int iterations) const;

  const Model& model() const;
  int threads() const;
  // The pool's queue, for work that should share its threads (decoding).
  void submit(std::function<void()> task) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem
