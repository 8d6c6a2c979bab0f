// Layers of Xception on one thread, as the plan would run them. Counters: useful multiply-adds in GF/s, and their share of the peak that
// a bare loop of multiply-adds reached just before ("of_peak": 1 is the roof). Machines are noisy: compare shares, not rates.
//   build/release/tests/kernel_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only
#include <benchmark/benchmark.h>

#include <chrono>

#include "runtime/graph/infer.h"
#include "runtime/ops/op_table.h"
#include "tests/bench/fma_peak.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

// One node with everything it needs to run again and again.
class Runner {
 public:
  Runner(const std::string& op, std::vector<Shape> operands, const Attributes& attributes) {
    node_.op = op;
    node_.attributes = attributes;
    const std::uint32_t data = need_op(op).data_inputs;
    std::vector<TensorDesc> in;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].empty()) {
        node_.inputs.push_back(kNoValue);
        in.emplace_back();
        pointers_.push_back(nullptr);
        continue;
      }
      tensors_.push_back(random_f32(operands[i], i + 1));
      const bool activation = data >> i & 1;
      node_.inputs.push_back(activation ? graph_.add_value("x" + std::to_string(i), DType::kF32)
                                        : graph_.add_constant("w" + std::to_string(i), tensors_.back()));
      graph_.value(node_.inputs.back()).shape = operands[i];
      graph_.value(node_.inputs.back()).shape_known = true;
      in.push_back(desc(operands[i], activation));
      pointers_.push_back(tensors_.back().data());
    }
    node_.outputs.push_back(graph_.add_value("y"));
    infer_node(graph_, node_);
    const TensorDesc out = desc(graph_.value(node_.outputs[0]).shape, true);
    y_ = Tensor(DType::kF32, out.shape);
    y_pointer_ = y_.mutable_data();
    CpuContext context(graph_, node_, in, {out}, Precision::kF32, cpu_);
    kernel_ = need_op(op).cpu(context);
    for (const Pack& p : context.packs()) {
      packs_.emplace_back(DType::kU8, Shape{static_cast<std::int64_t>(p.bytes)});
      p.fill(graph_.value(p.operand).constant, packs_.back().mutable_data());
      packed_.push_back(packs_.back().data());
    }
    scratch_ = Tensor(DType::kU8, {static_cast<std::int64_t>(kernel_.scratch_bytes)});
  }

  void run() {
    const KernelArgs args{pointers_.data(), &y_pointer_, packed_.data(), static_cast<std::byte*>(scratch_.mutable_data()), nullptr};
    for (const Stage& stage : kernel_.stages) {
      for (int t = 0; t < stage.tasks; ++t) stage.run(args, t);
    }
  }
  const Kernel& kernel() const { return kernel_; }

 private:
  static TensorDesc desc(const Shape& shape, bool last) {
    return {DType::kF32, shape, last ? Layout::kChannelsLast : Layout::kPlain, last ? shape[1] : 0};
  }
  Graph graph_;
  Node node_;
  CpuInfo cpu_ = CpuInfo::detect();
  Kernel kernel_;
  std::vector<Tensor> tensors_, packs_;
  Tensor y_, scratch_;
  std::vector<const void*> pointers_, packed_;
  void* y_pointer_ = nullptr;
};

void measure(benchmark::State& state, Runner& runner, double products) {
  double peak = 0, best = 1e9;
  for (auto _ : state) {
    state.PauseTiming();
    peak = std::max(peak, fma_peak());
    state.ResumeTiming();
    const auto start = std::chrono::steady_clock::now();
    runner.run();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  state.counters["GF/s"] = 2 * products / best / 1e9;
  state.counters["of_peak"] = 2 * products / best / peak;
  state.counters["best_ms"] = best * 1e3;
  state.SetLabel(runner.kernel().implementation);
}

Attributes same() {
  Attributes a;
  a.set("auto_pad", std::string("SAME_UPPER"));
  a.set("activation", std::string("relu"));
  return a;
}

// size, channels, outputs, residual
void separable(benchmark::State& state) {
  const std::int64_t s = state.range(0), c = state.range(1), o = state.range(2);
  Attributes a = same();
  a.set("pre_relu", std::int64_t{1});
  Runner runner("FusedSeparable", {{1, c, s, s}, {c, 1, 3, 3}, {c}, {o, c, 1, 1}, {o}, state.range(3) ? Shape{1, o, s, s} : Shape{}}, a);
  measure(state, runner, static_cast<double>(s * s * c) * static_cast<double>(o + 9));
}
BENCHMARK(separable)
    ->Args({147, 64, 128, 0})
    ->Args({147, 128, 128, 0})
    ->Args({74, 128, 256, 0})
    ->Args({74, 256, 256, 0})
    ->Args({37, 256, 728, 0})
    ->Args({37, 728, 728, 0})
    ->Args({19, 728, 728, 0})
    ->Args({19, 728, 728, 1})
    ->Args({19, 728, 1024, 0})
    ->Args({10, 1024, 1536, 0})
    ->Args({10, 1536, 2048, 0});

// size, channels, outputs, kernel, stride
void convolution(benchmark::State& state) {
  const std::int64_t s = state.range(0), c = state.range(1), o = state.range(2), k = state.range(3), stride = state.range(4);
  Attributes a = same();
  a.set("strides", std::vector<std::int64_t>{stride, stride});
  Runner runner("FusedConv", {{1, c, s, s}, {o, c, k, k}, {o}}, a);
  const std::int64_t out = (s + stride - 1) / stride;
  measure(state, runner, static_cast<double>(out * out * c * k * k) * static_cast<double>(o));
}
BENCHMARK(convolution)
    ->Args({147, 64, 128, 1, 1})
    ->Args({147, 128, 128, 1, 1})
    ->Args({74, 256, 256, 1, 1})
    ->Args({299, 3, 32, 3, 2})
    ->Args({149, 32, 64, 3, 1})
    ->Args({147, 64, 128, 1, 2})
    ->Args({37, 256, 728, 1, 2})
    ->Args({19, 728, 728, 1, 1})
    ->Args({56, 64, 64, 3, 1})
    ->Args({14, 256, 256, 3, 1})
    ->Args({7, 512, 512, 3, 1})
    ->Args({7, 512, 2048, 1, 1});

// size, channels, kernel, stride
void depthwise(benchmark::State& state) {
  const std::int64_t s = state.range(0), c = state.range(1), k = state.range(2), stride = state.range(3);
  Attributes a = same();
  a.set("strides", std::vector<std::int64_t>{stride, stride});
  a.set("group", c);
  Runner runner("FusedConv", {{1, c, s, s}, {c, 1, k, k}, {c}}, a);
  const std::int64_t out = (s + stride - 1) / stride;
  measure(state, runner, static_cast<double>(out * out * c * k * k));
}
BENCHMARK(depthwise)->Args({147, 64, 3, 1})->Args({74, 128, 3, 1})->Args({19, 728, 3, 1})->Args({56, 144, 3, 2})->Args({28, 144, 5, 1});

}  // namespace
}  // namespace tandem::test

BENCHMARK_MAIN();
