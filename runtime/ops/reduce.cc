// ReduceMean/Sum/Max/Min/Prod/L1/L2/SumSquare/LogSum/LogSumExp (opset 18). Floats add up in double, integers in 64 bits, in the order of the
// reduced dimensions, long sums in blocks of fixed length: no bit depends on layout, batch or threads.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/cpu/column_sums.h"
#include "runtime/cpu/strided.h"
#include "runtime/ops/families.h"
#include "runtime/ops/pointwise.h"
#include "runtime/ops/reduce.h"

namespace tandem {
namespace {

using Kind = ReduceKind;

struct Name {
  std::string_view op;
  Kind kind;
};
constexpr Name kNames[] = {{"ReduceMean", Kind::kMean},     {"ReduceSum", Kind::kSum},
                           {"ReduceMax", Kind::kMax},       {"ReduceMin", Kind::kMin},
                           {"ReduceProd", Kind::kProd},     {"ReduceL1", Kind::kL1},
                           {"ReduceL2", Kind::kL2},         {"ReduceSumSquare", Kind::kSumSquare},
                           {"ReduceLogSum", Kind::kLogSum}, {"ReduceLogSumExp", Kind::kLogSumExp}};

void infer(InferContext& c) {
  ReduceParams p;
  p.kind = std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& n) { return n.op == c.node().op; })->kind;
  if (p.kind == Kind::kMax || p.kind == Kind::kMin)
    c.expect_dtype(0, kAllTypes);
  else
    c.expect_dtype(0, kNumericTypes);
  const std::int64_t rank = c.rank(0);
  const auto axes = c.has_input(1) ? c.host_ints(1) : std::vector<std::int64_t>{};
  p.keep = c.attributes().integer("keepdims", 1) != 0;
  p.reduced.assign(static_cast<std::size_t>(rank), axes.empty() && c.attributes().integer("noop_with_empty_axes", 0) == 0);
  for (const std::int64_t a : axes) p.reduced[static_cast<std::size_t>(normalise_axis(a, rank))] = true;
  Shape out;
  for (std::size_t d = 0; d < p.reduced.size(); ++d) {
    if (!p.reduced[d])
      out.push_back(c.shape(0)[d]);
    else if (p.keep)
      out.push_back(1);
  }
  c.set_output(0, c.dtype(0), std::move(out));
  c.set_params(std::move(p));
}

template <class A>
A first_value(Kind kind) {
  switch (kind) {
    case Kind::kProd:
      return A{1};
    case Kind::kMax:
    case Kind::kLogSumExp:
      return std::is_floating_point_v<A> ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::lowest();
    case Kind::kMin:
      return std::is_floating_point_v<A> ? std::numeric_limits<A>::infinity() : std::numeric_limits<A>::max();
    default:
      return A{0};
  }
}

template <class A>
bool is_nan(A v) {
  if constexpr (std::is_floating_point_v<A>)
    return std::isnan(v);
  else
    return false;
}

// Integers wrap around.
template <class A>
A add(A a, A b) {
  if constexpr (std::is_floating_point_v<A>)
    return a + b;
  else
    return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
template <class A>
A multiply(A a, A b) {
  if constexpr (std::is_floating_point_v<A>)
    return a * b;
  else
    return static_cast<A>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
template <class A>
A magnitude(A v) {
  if constexpr (std::is_floating_point_v<A>)
    return std::abs(v);
  else
    return v < A{0} ? static_cast<A>(0 - static_cast<std::uint64_t>(v)) : v;
}

// Integers are cut towards zero; what does not fit gives the nearest one, no number the least.
template <class A>
A from_double(double v) {
  if constexpr (!std::is_floating_point_v<A>) {
    const auto least = static_cast<double>(std::numeric_limits<A>::lowest()), most = static_cast<double>(std::numeric_limits<A>::max());
    if (!(v > least)) return std::numeric_limits<A>::lowest();
    if (v >= most) return std::numeric_limits<A>::max();
  }
  return static_cast<A>(v);
}

template <Kind kKind, class A>
void accumulate(A& sum, A v) {
  if constexpr (kKind == Kind::kMax)
    sum = v > sum || is_nan(v) ? v : sum;
  else if constexpr (kKind == Kind::kMin)
    sum = v < sum || is_nan(v) ? v : sum;
  else if constexpr (kKind == Kind::kProd)
    sum = multiply(sum, v);
  else if constexpr (kKind == Kind::kL1)
    sum = add(sum, magnitude(v));
  else if constexpr (kKind == Kind::kSumSquare)
    sum = add(sum, multiply(v, v));
  else
    sum = add(sum, v);
}

template <class A>
A finish(Kind kind, A sum, std::int64_t count) {
  if (kind == Kind::kMean) {
    if constexpr (std::is_floating_point_v<A>) return sum / static_cast<A>(count);
    return count == 0 ? A{0} : sum / static_cast<A>(count);
  }
  if (kind == Kind::kL2) return from_double<A>(std::sqrt(static_cast<double>(sum)));
  if (kind == Kind::kLogSum) return from_double<A>(std::log(static_cast<double>(sum)));
  return sum;
}

constexpr std::int64_t kChunk = 64;  // outputs whose sums are held at a time

// Loops over the outputs (kept) and, for each, over what is reduced.
struct Loops {
  StridedLoop kept, reduced;
  std::int64_t count;
};

// Takes `rows` rows of `n` elements, `row_step` and `step` apart, into the sums of n outputs.
template <class A, class T>
using AddRows = void (*)(const T* x, std::int64_t row_step, std::int64_t rows, std::int64_t step, std::int64_t n, A* sum);
template <Kind kKind, class A, class T>
void add_rows(const T* x, std::int64_t row_step, std::int64_t rows, std::int64_t step, std::int64_t n, A* sum) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * row_step;
    for (std::int64_t j = 0; j < n; ++j) accumulate<kKind>(sum[j], static_cast<A>(row[j * step]));
  }
}
template <class A, class T>
void add_plain_sums(const T* x, std::int64_t row_step, std::int64_t rows, std::int64_t step, std::int64_t n, A* sum) {
  if constexpr (std::is_same_v<T, float>) {
    if (step == 1) return add_rows_f64(x, row_step, rows, n, sum);
  }
  add_rows<Kind::kSum>(x, row_step, rows, step, n, sum);
}
template <class A, class T>
AddRows<A, T> add_rows_of(Kind kind) {
  switch (kind) {
    case Kind::kMax:
      return add_rows<Kind::kMax, A, T>;
    case Kind::kMin:
      return add_rows<Kind::kMin, A, T>;
    case Kind::kProd:
      return add_rows<Kind::kProd, A, T>;
    case Kind::kL1:
      return add_rows<Kind::kL1, A, T>;
    case Kind::kL2:
    case Kind::kSumSquare:
      return add_rows<Kind::kSumSquare, A, T>;
    default:
      return add_plain_sums<A, T>;
  }
}

// Sums of `n` outputs that lie `step` input elements apart.
template <class A, class T>
void sums(Kind kind, const Loops& l, const T* x, std::int64_t step, std::int64_t n, A* sum) {
  const auto add = add_rows_of<A, T>(kind);
  std::fill(sum, sum + n, first_value<A>(kind));
  for (int task = 0; task < l.reduced.tasks(); ++task) {
    l.reduced.for_each_run(task, [&](const std::int64_t* at, std::int64_t run) { add(x + at[0], l.reduced.step(0), run, step, n, sum); });
  }
}

// log(sum(exp x)) with the largest taken out first.
template <class A, class T>
void log_sums(const Loops& l, const T* x, std::int64_t step, std::int64_t n, A* sum) {
  for (std::int64_t j = 0; j < n; ++j) {
    A top;
    sums(Kind::kMax, l, x + j * step, 1, 1, &top);
    const double shift = std::isinf(static_cast<double>(top)) || l.count == 0 ? 0.0 : static_cast<double>(top);
    double total = 0;
    for (int task = 0; task < l.reduced.tasks(); ++task) {
      l.reduced.for_each_run(task, [&](const std::int64_t* at, std::int64_t run) {
        for (std::int64_t r = 0; r < run; ++r) {
          total += std::exp(static_cast<double>(x[j * step + at[0] + r * l.reduced.step(0)]) - shift);
        }
      });
    }
    sum[j] = from_double<A>(std::log(total) + shift);
  }
}

template <class T>
Kernel kernel_of(Kind kind, const Loops& l) {
  using A = std::conditional_t<std::is_floating_point_v<T>, double, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
  return Kernel::single("plain", l.kept.tasks(), [kind, l](const KernelArgs& k, int task) {
    std::array<A, kChunk> sum;
    const std::int64_t in_step = l.kept.step(1), out_step = l.kept.step(0);
    l.kept.for_each_run(task, [&](const std::int64_t* at, std::int64_t run) {
      for (std::int64_t first = 0; first < run; first += kChunk) {
        const std::int64_t n = std::min(kChunk, run - first);
        const T* x = k.input<T>(0) + at[1] + first * in_step;
        if (kind == Kind::kLogSumExp)
          log_sums(l, x, in_step, n, sum.data());
        else
          sums(kind, l, x, in_step, n, sum.data());
        T* y = k.output<T>(0) + at[0] + first * out_step;
        for (std::int64_t j = 0; j < n; ++j) y[j * out_step] = static_cast<T>(finish(kind, sum[static_cast<std::size_t>(j)], l.count));
      }
    });
  });
}

// ---- sums over many elements: blocks of them first, so that few outputs are work for many tasks

constexpr std::int64_t kBlock = 1024;        // reduced elements
constexpr std::int64_t kMostColumns = 4096;  // outputs of a task

bool adds_up(Kind kind) { return kind != Kind::kMax && kind != Kind::kMin && kind != Kind::kProd && kind != Kind::kLogSumExp; }

template <class T>
Kernel blocked_kernel(Kind kind, const Loops& l) {
  const std::int64_t outputs = l.kept.size(), blocks = (l.count + kBlock - 1) / kBlock;
  const std::int64_t columns = std::clamp<std::int64_t>(outputs, 1, kMostColumns), pieces = (outputs + columns - 1) / columns;
  const std::int64_t together = std::max<std::int64_t>(1, kTaskElements / (kBlock * columns)), groups = (blocks + together - 1) / together;
  const auto add = add_rows_of<double, T>(kind);
  Kernel kernel = Kernel::single("blocks", static_cast<int>(pieces * groups), [=](const KernelArgs& k, int task) {
    const std::int64_t first = task / groups * columns, last = std::min(outputs, first + columns);
    const std::int64_t first_block = task % groups * together, last_block = std::min(blocks, first_block + together);
    for (std::int64_t b = first_block; b < last_block; ++b) {
      double* sum = reinterpret_cast<double*>(k.shared) + b * outputs + first;
      std::fill(sum, sum + (last - first), 0.0);
      l.kept.for_each_run_in(first, last, [&](const std::int64_t* at, std::int64_t n) {
        const T* x = k.input<T>(0) + at[1];
        l.reduced.for_each_run_in(b * kBlock, std::min(l.count, (b + 1) * kBlock), [&](const std::int64_t* from, std::int64_t run) {
          add(x + from[0], l.reduced.step(0), run, l.kept.step(1), n, sum);
        });
        sum += n;
      });
    }
  });
  kernel.shared_bytes = static_cast<std::size_t>(blocks * outputs) * sizeof(double);
  kernel.stages.push_back({static_cast<int>(pieces), [=](const KernelArgs& k, int task) {
                             const std::int64_t first = task * columns, last = std::min(outputs, first + columns);
                             const double* part = reinterpret_cast<const double*>(k.shared) + first;
                             l.kept.for_each_run_in(first, last, [&](const std::int64_t* at, std::int64_t n) {
                               T* y = k.output<T>(0) + at[0];
                               for (std::int64_t j = 0; j < n; ++j, ++part) {
                                 double sum = 0;
                                 for (std::int64_t b = 0; b < blocks; ++b) sum += part[b * outputs];
                                 y[j * l.kept.step(0)] = static_cast<T>(finish(kind, sum, l.count));
                               }
                             });
                           }});
  return kernel;
}

Kernel cpu(CpuContext& c) {
  const auto& p = c.params<ReduceParams>();
  const TensorDesc &in = c.in[0], &out = c.out[0];
  const auto in_strides = in.strides(), out_strides = out.strides();
  Shape kept = in.shape, reduced(in.shape.size(), 1);
  std::vector<std::int64_t> to(in.shape.size(), 0);
  std::int64_t count = 1;
  for (std::size_t d = 0, o = 0; d < kept.size(); ++d) {
    if (p.reduced[d]) {
      reduced[d] = kept[d];
      count *= kept[d];
      kept[d] = 1;
      o += p.keep;
    } else {
      to[d] = out_strides[o++];
    }
  }
  const std::int64_t outputs_per_task = std::max<std::int64_t>(kChunk, kTaskElements / std::max<std::int64_t>(1, count));
  const Loops loops{StridedLoop(kept, {to, in_strides}, outputs_per_task), StridedLoop(reduced, {in_strides}), count};
  Kernel kernel;
  dispatch(in.dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_floating_point_v<T>)
      kernel = adds_up(p.kind) && count > kBlock && loops.kept.size() > 0 ? blocked_kernel<T>(p.kind, loops) : kernel_of<T>(p.kind, loops);
    else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      kernel = kernel_of<T>(p.kind, loops);
    else if constexpr (std::is_same_v<T, bool>)
      kernel = kernel_of<std::uint8_t>(p.kind, loops);  // 0 and 1
    else
      throw Unsupported(std::string("needs float32, float64 or integer operands, has ") + std::string(name_of(in.dtype)));
  });
  return kernel;
}

Rows rows(const RowContext& c) {
  const auto& p = c.params<ReduceParams>();
  return p.reduced.empty() || p.reduced[0] ? Rows::mixed() : rows_of_first(c);
}

constexpr OpDef reduce(std::string_view name) {
  OpDef op;
  op.name = name;
  op.max_inputs = 2;
  op.infer = infer;
  op.cpu = cpu;
  op.host_inputs = 2;
  op.rows = rows;
  op.layout = LayoutRule::kAny;
  op.gradient = reduce_gradient;
  return op;
}

}  // namespace

std::span<const OpDef> reduce_ops() {
  static const OpDef ops[] = {reduce(kNames[0].op), reduce(kNames[1].op), reduce(kNames[2].op), reduce(kNames[3].op), reduce(kNames[4].op),
                              reduce(kNames[5].op), reduce(kNames[6].op), reduce(kNames[7].op), reduce(kNames[8].op), reduce(kNames[9].op)};
  return ops;
}

}  // namespace tandem
