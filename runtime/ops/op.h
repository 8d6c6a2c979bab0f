// An operator is data: one OpDef, defined beside its kernels in runtime/ops/<family>.cc. The importer, planner, parallel and tools
// know operators only through this file and the table (op_table.h).
//
// Adding an operator: runtime/ops/<family>.cc with a `std::span<const OpDef> <family>_ops()`, one line in families.h, one in
// op_table.cc, tests in tests/ops/<family>_test.cc. CUDA kernels lie beside it (<family>.cu, <family>_cuda.cc) and are listed by the
// plugin's own table, so an OpDef holds no device pointer but the CPU's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/tensor.h"
#include "runtime/cpu/cpu_info.h"
#include "runtime/graph/graph.h"

namespace tandem {

class GradientContext;  // runtime/graph/gradient.h

// ---- shape pass

// One node in the shape pass. Shapes of all inputs are concrete here.
class InferContext {
 public:
  InferContext(Graph& graph, Node& node) : graph_(graph), node_(node) {}

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes; }
  std::size_t inputs() const { return node_.inputs.size(); }
  std::size_t outputs() const { return node_.outputs.size(); }
  bool has_input(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNoValue; }
  bool has_output(std::size_t i) const { return i < node_.outputs.size() && node_.outputs[i] != kNoValue; }
  // Throw InvalidModel when operand i is absent.
  DType dtype(std::size_t i) const;
  const Shape& shape(std::size_t i) const;
  std::int64_t rank(std::size_t i) const { return static_cast<std::int64_t>(shape(i).size()); }
  // The operand's value, or null when it is computed at run time.
  const Tensor* constant(std::size_t i) const;
  // An operand that steers shapes: throws Unsupported when its value is not known before planning.
  const Tensor& host(std::size_t i) const;
  std::vector<std::int64_t> host_ints(std::size_t i) const { return host(i).to_ints(); }

  // No-op for outputs that nobody asked for.
  void set_output(std::size_t i, DType, Shape);
  // The parsed attributes; kernels get them back by CpuContext::params<T>().
  template <class T>
  void set_params(T params) {
    node_.params = std::make_shared<const T>(std::move(params));
  }
  // Checks, with what was expected and found. All throw InvalidModel.
  void expect_rank(std::size_t i, std::int64_t at_least, std::int64_t at_most) const;
  void expect_dtype(std::size_t i, std::span<const DType> allowed) const;
  void expect_same_dtype(std::size_t a, std::size_t b) const;

 private:
  ValueId need(std::size_t i) const;
  Graph& graph_;
  Node& node_;
};

// ---- the proof that a graph may be cut along axis 0

// How a value depends on the batch. batched with m: dimension 0 is m * N, and block i of m rows depends on row i of the inputs alone.
struct Rows {
  enum class Kind : std::uint8_t { kInvariant, kBatched, kMixed } kind = Kind::kInvariant;
  std::int64_t per_sample = 1;  // m
  static Rows invariant() { return {}; }
  static Rows batched(std::int64_t m) { return {Kind::kBatched, m}; }
  static Rows mixed() { return {Kind::kMixed, 0}; }
  bool is_batched() const { return kind == Kind::kBatched; }
};

struct RowContext {
  const Graph& graph;
  const Node& node;
  std::int64_t batch;            // N of this probe
  std::span<const Rows> inputs;  // absent operands and constants are invariant; at least one is batched, none mixed
  const Shape& input_shape(std::size_t i) const { return graph.value(node.inputs[i]).shape; }
  const Shape& output_shape(std::size_t i = 0) const { return graph.value(node.outputs[i]).shape; }
  template <class T>
  const T& params() const {
    return *static_cast<const T*>(node.params.get());
  }
};
// Gives the rule for every output of the node; Rows::mixed() where nothing can be proven.
using RowRule = Rows (*)(const RowContext&);

Rows rows_elementwise(const RowContext&);  // numpy broadcasting; invariant operands may not touch axis 0
Rows rows_of_first(const RowContext&);     // operand 0 batched, all others invariant; axis 0 of the output is axis 0 of operand 0
Rows rows_contiguous(const RowContext&);   // the output holds operand 0's elements in the same order (Reshape, Flatten, ...)

// ---- kernels

enum class Precision : std::uint8_t { kF32, kBF16x3, kBF16 };

// kPlain: row-major in logical order. kChannelsLast (rank >= 3): logical [N, C, d...], in memory N, d..., C.
enum class Layout : std::uint8_t { kPlain, kChannelsLast };

// A tensor as a kernel meets it.
struct TensorDesc {
  DType dtype = DType::kNone;  // kNone: absent operand
  Shape shape;                 // logical (ONNX) order
  Layout layout = Layout::kPlain;
  std::int64_t channel_pitch = 0;  // kChannelsLast: elements from one pixel to the next, >= C; what lies between is finite and ignored
  static TensorDesc plain(DType t, Shape s) { return {t, std::move(s), Layout::kPlain, 0}; }
  explicit operator bool() const { return dtype != DType::kNone; }
  std::int64_t rank() const { return static_cast<std::int64_t>(shape.size()); }
  std::int64_t size() const { return elements(shape); }
  std::size_t bytes() const;                  // of memory, pitch included
  std::vector<std::int64_t> strides() const;  // elements, per logical dimension
};

// Pointers of one call. Order as in the node; null for absent operands and outputs that nobody reads.
struct KernelArgs {
  const void* const* in;
  void* const* out;
  const void* const* packed;  // in the order of CpuContext::pack calls
  std::byte* scratch;         // Kernel::scratch_bytes, the worker's own, 64-byte aligned, not initialised
  std::byte* shared;          // Kernel::shared_bytes, one for the step, 64-byte aligned, not initialised
  template <class T>
  const T* input(std::size_t i) const {
    return static_cast<const T*>(in[i]);
  }
  template <class T>
  T* output(std::size_t i) const {
    return static_cast<T*>(out[i]);
  }
};

// Some tasks that may run in any order and at the same time, each on one thread. How the work is cut depends on shapes alone, never on
// the number of threads; a task writes only its own part of the outputs.
struct Stage {
  int tasks = 1;
  std::function<void(const KernelArgs&, int task)> run;  // const in effect: called from several threads; allocates nothing
};

// A prepared node: everything that can be done before the first run is done.
struct Kernel {
  std::string implementation;  // "plain:conv_f64", "hwy:f32:direct" ...: shown by plan and bench
  std::vector<Stage> stages;   // one after the other
  std::size_t scratch_bytes = 0, shared_bytes = 0;
  std::uint32_t in_place = 0;  // bit i: output 0 may lie in input i's memory when both have the same desc (element k is read before it is written)

  static Kernel single(std::string implementation, int tasks, std::function<void(const KernelArgs&, int)> run);
};

// Bytes that a kernel derives from a constant operand once, or from a parameter once a step (weights in the kernel's layout), 64-byte
// aligned. Shared by all plans and devices with the same operand and key.
struct Pack {
  ValueId operand = kNoValue;  // whose values it is made from
  std::string key;             // layout, block sizes, type: same operand and key means same bytes
  std::size_t bytes = 0;
  std::function<void(const Tensor& operand, void* destination)> fill;  // may run on any thread, at the same time as others
};

// One node while its CPU kernel is prepared.
class CpuContext {
 public:
  CpuContext(const Graph& graph, const Node& node, std::vector<TensorDesc> in_descs, std::vector<TensorDesc> out_descs, Precision chosen,
             const CpuInfo& cpu_info)
      : in(std::move(in_descs)), out(std::move(out_descs)), precision(chosen), cpu(cpu_info), graph_(graph), node_(node) {}

  const std::vector<TensorDesc> in, out;
  const Precision precision;
  const CpuInfo& cpu;

  const Node& node() const { return node_; }
  template <class T>
  const T& params() const {
    return *static_cast<const T*>(node_.params.get());
  }
  bool has_input(std::size_t i) const { return i < in.size() && in[i]; }
  bool has_output(std::size_t i) const { return i < out.size() && out[i]; }
  // The operand's value when it is constant, else null. Constants are always plain. Large ones may be deferred (tensor.h): a kernel reads them
  // in a pack's fill function, which gets the operand made, and does not hold on to them.
  const Tensor* constant(std::size_t i) const;
  // Operand i may be packed: it is constant, or a parameter.
  bool packable(std::size_t i) const;
  // Asks for packed bytes made from packable operand i; returns the index into KernelArgs::packed. The kernel reads the operand through them
  // alone: the plan keeps no pointer to the constant, and a mapped file's pages go.
  std::size_t pack(std::size_t operand, std::string key, std::size_t bytes, std::function<void(const Tensor& operand, void* destination)> fill);
  const std::vector<Pack>& packs() const { return packs_; }
  std::uint32_t dropped() const { return dropped_; }  // bit i: operand i is packed

 private:
  const Graph& graph_;
  const Node& node_;
  std::vector<Pack> packs_;
  std::uint32_t dropped_ = 0;
};

// ---- the definition

// Which layouts the CPU kernel takes.
enum class LayoutRule : std::uint8_t {
  kPlain,         // all operands and outputs plain (the default)
  kAny,           // every operand and output in whatever layout it has (kernels go by TensorDesc::strides)
  kChannelsLast,  // data operands (OpDef::data_inputs) and outputs of rank >= 3 channels-last, everything else plain
};
// What an operator does under --precision bf16 (f32 graph, activations held as bf16).
enum class Bf16Rule : std::uint8_t {
  kWiden,    // operands are widened to f32, outputs are f32 (the default: normalisation, softmax, loss, reductions)
  kStore,    // reads and writes bf16 activations, computes in f32
  kProduct,  // reads bf16 activations and rounds its other factor; writes bf16 where all readers store it, else f32 (logits, graph outputs)
};

// A node whose output is the same for all shards of a batch: the plan is cut there, the group merges the shards' operands along the tree.
enum class Sync : std::uint8_t {
  kNone,
  kSum,      // elementwise sum
  kMoments,  // [3, C] rows n, mean, sum of squared deviations; merged by Chan's formula
};

struct OpDef {
  std::string_view name;
  std::int16_t min_inputs = 1, max_inputs = 1;  // -1: any number
  std::int16_t max_outputs = 1;                 // -1: any number
  void (*infer)(InferContext&) = nullptr;
  Kernel (*cpu)(CpuContext&) = nullptr;  // null: only folded or replaced before planning
  std::uint32_t host_inputs = 0;         // bit i: operand i steers shapes and must be known before planning
  std::uint32_t data_inputs = 1;         // bit i: operand i is an activation (layout and bf16 rules apply)
  RowRule rows = nullptr;                // null: nothing can be proven
  LayoutRule layout = LayoutRule::kPlain;
  Bf16Rule bf16 = Bf16Rule::kWiden;
  // Emits the nodes that compute the operands' gradients; null: the operator cannot be trained through.
  void (*gradient)(GradientContext&) = nullptr;
  Sync sync = Sync::kNone;
  bool view = false;              // output 0 is operand 0's bytes (plain); costs nothing, needs no kernel
  bool foldable = true;           // false: random
  bool reads_shape_only = false;  // the result depends on the operand's shape, never on its values (Shape, Size)
};

}  // namespace tandem
