// Layers of Xception on one thread, as the plan would run them. Counters: useful multiply-adds in GF/s, and their share of the peak that
// a bare loop of multiply-adds reached just before ("of_peak": 1 is the roof). Machines are noisy: compare shares, not rates.
//   build/release/tests/kernel_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only
#include <benchmark/benchmark.h>

#include <chrono>
#include <ctime>

#include "runtime/graph/infer.h"
#include "runtime/ops/op_table.h"
#include "tests/bench/fma_peak.h"
#include "tests/support/node_test.h"

namespace tandem::test {
namespace {

// Of this thread: without what others took from it.
double processor_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// One node with everything it needs to run again and again.
class Runner {
 public:
  // `data`: operands that are computed; 0: the operator's activations.
  Runner(const std::string& op, std::vector<Shape> operands, const Attributes& attributes, std::uint32_t data = 0) {
    node_.op = op;
    node_.attributes = attributes;
    if (data == 0) data = need_op(op).data_inputs;
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
    shared_ = Tensor(DType::kU8, {static_cast<std::int64_t>(kernel_.shared_bytes)});
  }

  void run() {
    const KernelArgs args{pointers_.data(), &y_pointer_, packed_.data(), static_cast<std::byte*>(scratch_.mutable_data()),
                          static_cast<std::byte*>(shared_.mutable_data())};
    for (const Stage& stage : kernel_.stages) {
      for (int t = 0; t < stage.tasks; ++t) stage.run(args, t);
    }
  }
  // The best seconds of each task so far, added up: on a busy machine some run of a short task is undisturbed long before one of the kernel is.
  double time_tasks() {
    const KernelArgs args{pointers_.data(), &y_pointer_, packed_.data(), static_cast<std::byte*>(scratch_.mutable_data()),
                          static_cast<std::byte*>(shared_.mutable_data())};
    double sum = 0;
    std::size_t next = 0;
    for (const Stage& stage : kernel_.stages) {
      for (int t = 0; t < stage.tasks; ++t, ++next) {
        if (next == best_.size()) best_.push_back(1e9);
        const double start = processor_seconds();
        stage.run(args, t);
        best_[next] = std::min(best_[next], processor_seconds() - start);
        sum += best_[next];
      }
    }
    return sum;
  }
  const Kernel& kernel() const { return kernel_; }

 private:
  static TensorDesc desc(const Shape& shape, bool last) {
    last = last && shape.size() > 2;
    return {DType::kF32, shape, last ? Layout::kChannelsLast : Layout::kPlain, last ? shape[1] : 0};
  }
  Graph graph_;
  Node node_;
  CpuInfo cpu_ = CpuInfo::detect();
  Kernel kernel_;
  std::vector<Tensor> tensors_, packs_;
  Tensor y_, scratch_, shared_;
  std::vector<const void*> pointers_, packed_;
  void* y_pointer_ = nullptr;
  std::vector<double> best_;  // of tasks
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

// A convolution (group 1, or depthwise where outputs is 0), its data gradient and its weights', one after the other so that they share the
// machine's mood: GF/s of each, and the gradients' parts of the forward kernel's rate. size, channels, outputs, kernel, stride, images
void gradients(benchmark::State& state) {
  const std::int64_t s = state.range(0), c = state.range(1), k = state.range(3), stride = state.range(4), n = state.range(5);
  const bool depthwise = state.range(2) == 0;
  const std::int64_t o = depthwise ? c : state.range(2), depth = depthwise ? 1 : c, out = (s + stride - 1) / stride;
  const std::int64_t pads = std::max<std::int64_t>(0, (out - 1) * stride + k - s), end = (out - 1) * stride + k - pads / 2 - s;
  Attributes a;
  a.set("strides", std::vector<std::int64_t>{stride, stride});
  a.set("group", depthwise ? c : std::int64_t{1});
  a.set("pads", std::vector<std::int64_t>{pads / 2, pads / 2, std::max<std::int64_t>(0, end), std::max<std::int64_t>(0, end)});
  Attributes back = a;
  back.set("output_padding", std::vector<std::int64_t>(2, std::max<std::int64_t>(0, -end)));
  Attributes weights = a;
  weights.set("kernel_shape", std::vector<std::int64_t>{k, k});
  const Shape x{n, c, s, s}, y{n, o, out, out}, w{o, depth, k, k};
  Runner runners[] = {Runner("Conv", {x, w}, a), Runner("ConvTranspose", {y, w}, back), Runner("ConvGradWeight", {x, y}, weights)};
  double best[3] = {}, peak = 0;
  for (auto _ : state) {
    peak = std::max(peak, fma_peak());
    for (std::size_t i = 0; i < 3; ++i) best[i] = runners[i].time_tasks();
  }
  const double flops = 2 * static_cast<double>(n * out * out * k * k * depth) * static_cast<double>(o);
  state.counters["GF/s"] = flops / best[0] / 1e9;
  state.counters["of_peak"] = flops / best[0] / peak;
  state.counters["data"] = best[0] / best[1];
  state.counters["weights"] = best[0] / best[2];
  state.SetLabel(runners[0].kernel().implementation + ' ' + runners[1].kernel().implementation + ' ' + runners[2].kernel().implementation);
}
BENCHMARK(gradients)
    ->Args({19, 728, 728, 1, 1, 1})
    ->Args({19, 728, 728, 1, 1, 4})
    ->Args({147, 64, 128, 1, 1, 1})
    ->Args({37, 256, 728, 1, 1, 1})
    ->Args({10, 1536, 2048, 1, 1, 1})
    ->Args({56, 64, 64, 3, 1, 1})
    ->Args({14, 256, 256, 3, 1, 1})
    ->Args({149, 32, 64, 3, 1, 1})
    ->Args({299, 3, 32, 3, 2, 1})
    ->Args({37, 256, 728, 1, 2, 1})
    ->Args({56, 128, 128, 3, 2, 1})
    ->Args({19, 728, 0, 3, 1, 1})
    ->Args({147, 128, 0, 3, 1, 1})
    ->Args({56, 144, 0, 3, 2, 1})
    ->Args({28, 144, 0, 5, 1, 1});

// A dense layer: rows, inputs, outputs. The parts are times of the forward product.
void dense(benchmark::State& state) {
  const std::int64_t n = state.range(0), in = state.range(1), out = state.range(2);
  Attributes weights, back;
  weights.set("kernel_shape", std::vector<std::int64_t>{1});
  back.set("transB", std::int64_t{1});
  Runner runners[] = {Runner("Gemm", {{n, in}, {in, out}}, {}, 1), Runner("Gemm", {{n, out}, {in, out}}, back, 1),
                      Runner("ConvGradWeight", {{n, out, 1}, {n, in, 1}}, weights)};
  double best[3] = {};
  for (auto _ : state) {
    for (std::size_t i = 0; i < 3; ++i) best[i] = runners[i].time_tasks();
  }
  state.counters["best_ms"] = best[0] * 1e3;
  state.counters["data"] = best[0] / best[1];
  state.counters["weights"] = best[0] / best[2];
}
BENCHMARK(dense)->Args({1, 2048, 1000})->Args({8, 2048, 1000})->Args({64, 2048, 1000})->Args({8, 4096, 4096});

}  // namespace
}  // namespace tandem::test

BENCHMARK_MAIN();
