#include "tests/support/problems.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "runtime/ops/op_table.h"

namespace tandem::test {
namespace {

using reference::Array;
using reference::Ints;

// SplitMix64: the same numbers everywhere.
class Random {
 public:
  Random(std::uint64_t seed, bool half) : state_(seed), half_(half) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::int64_t in(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool chance(int percent) { return in(0, 99) < percent; }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return *(list.begin() + in(0, static_cast<std::int64_t>(list.size()) - 1));
  }
  // Activations and weights: bf16 numbers where the problem is one of bf16.
  Tensor tensor(Shape shape, double least = -1, double most = 1) {
    Tensor t = parameter(std::move(shape), least, most);
    for (float& v : t.as_mutable<float>()) v = half_ ? static_cast<float>(BFloat16(v)) : v;
    return t;
  }
  // What stays f32 in every precision: bias, statistics.
  Tensor parameter(Shape shape, double least = -1, double most = 1) {
    Tensor t(DType::kF32, std::move(shape));
    for (float& v : t.as_mutable<float>()) v = static_cast<float>(least + (most - least) * static_cast<double>(next() >> 40) * 0x1p-24);
    return t;
  }

 private:
  std::uint64_t state_;
  const bool half_;
};

Shape join(std::int64_t n, std::int64_t c, const Ints& sizes) {
  Shape s = {n, c};
  s.insert(s.end(), sizes.begin(), sizes.end());
  return s;
}

// Mostly two spatial dimensions.
std::size_t spatial_rank(Random& r) {
  const std::int64_t k = r.in(0, 9);
  return k == 0 ? 1 : k == 1 ? 3 : 2;
}

// A window that fits, and the input's spatial sizes. `pool`: pads below the kernel's size, no auto_pad with dilation (a pool's window of
// padding alone means nothing).
struct WindowChoice {
  reference::WindowSpec spec;
  Ints sizes;
};

WindowChoice choose_window(Random& r, bool pool, std::int64_t largest) {
  WindowChoice c;
  const std::size_t rank = spatial_rank(r);
  const bool square = r.chance(50), dilated = r.chance(25);
  const bool is_auto = r.chance(20) && !(pool && dilated);
  c.spec.auto_pad = is_auto ? r.pick<const char*>({"SAME_UPPER", "SAME_LOWER", "VALID"}) : "NOTSET";
  c.spec.ceil = pool && !is_auto && r.chance(40);
  Ints begins, ends;
  for (std::size_t d = 0; d < rank; ++d) {
    const bool repeat = square && d > 0;
    const std::int64_t k = repeat ? c.spec.kernel[0] : r.chance(60) ? 3 : r.in(1, rank == 3 ? 3 : 7);
    c.spec.kernel.push_back(k);
    c.spec.strides.push_back(repeat ? c.spec.strides[0] : r.chance(50) ? 1 : r.in(1, 4));
    c.spec.dilations.push_back(!dilated ? 1 : repeat ? c.spec.dilations[0] : r.in(1, 3));
    const std::int64_t extent = (k - 1) * c.spec.dilations[d] + 1;
    const std::int64_t most = pool ? std::min<std::int64_t>(k - 1, 3) : std::min<std::int64_t>(extent, 4);
    begins.push_back(r.chance(40) ? 0 : r.in(0, most));
    ends.push_back(r.chance(50) ? begins[d] : r.in(0, most));
    const bool padded = !is_auto && c.spec.auto_pad == "NOTSET";
    const std::int64_t least = c.spec.auto_pad.starts_with("SAME") ? 1 : std::max<std::int64_t>(1, extent - (padded ? begins[d] + ends[d] : 0));
    c.sizes.push_back(r.in(least, std::max(least, rank == 1 ? 3 * largest : rank == 3 ? largest / 2 : largest)));
  }
  if (!is_auto && r.chance(85)) {
    c.spec.pads = begins;
    c.spec.pads.insert(c.spec.pads.end(), ends.begin(), ends.end());
  } else if (!is_auto) {
    for (std::size_t d = 0; d < rank; ++d) c.sizes[d] = std::max(c.sizes[d], (c.spec.kernel[d] - 1) * c.spec.dilations[d] + 1);
  }
  return c;
}

void set_window(NodeCase& node, const reference::WindowSpec& spec, bool kernel) {
  if (kernel) node.attributes.set("kernel_shape", spec.kernel);
  node.attributes.set("strides", spec.strides);
  node.attributes.set("dilations", spec.dilations);
  if (!spec.pads.empty()) node.attributes.set("pads", spec.pads);
  if (spec.auto_pad != "NOTSET") node.attributes.set("auto_pad", spec.auto_pad);
  if (spec.ceil) node.attributes.set("ceil_mode", std::int64_t{1});
}

// Multiplications of a convolution are kept below this: 5,000 problems run in seconds.
constexpr std::int64_t kMostProducts = 60000;

struct ConvChoice {
  WindowChoice window;
  std::int64_t batch, channels, filters, group;
};

ConvChoice choose_conv(Random& r, bool depthwise) {
  while (true) {
    ConvChoice c{choose_window(r, false, 14), r.in(1, 3), 0, 0, 1};
    if (depthwise) {
      c.group = c.channels = r.chance(40) ? r.in(1, 80) : r.in(1, 20);
      c.filters = c.channels * (r.chance(70) ? 1 : r.in(2, 4));
    } else {
      c.group = r.chance(70) ? 1 : r.in(2, 5);
      const std::int64_t most = c.group > 1 ? 9 : r.chance(30) ? 70 : 20;
      c.channels = c.group * r.in(1, most);
      c.filters = c.group * r.in(1, most);
    }
    if (r.chance(25)) c.window.spec.kernel.assign(c.window.spec.kernel.size(), 1);
    const Shape x = join(c.batch, c.channels / c.group, c.window.sizes);
    if (elements(x) * c.filters * elements(c.window.spec.kernel) <= kMostProducts * 4) return c;
  }
}

void make_conv(Random& r, Problem& p, bool depthwise) {
  ConvChoice c = choose_conv(r, depthwise);
  if (c.window.spec.auto_pad == "VALID" || c.window.spec.pads.empty()) {
    for (std::size_t d = 0; d < c.window.sizes.size(); ++d) {
      if (c.window.spec.auto_pad.starts_with("SAME")) break;
      c.window.sizes[d] = std::max(c.window.sizes[d], (c.window.spec.kernel[d] - 1) * c.window.spec.dilations[d] + 1);
    }
  }
  p.node.op = "Conv";
  p.node.operands = {r.tensor(join(c.batch, c.channels, c.window.sizes)), r.tensor(join(c.filters, c.channels / c.group, c.window.spec.kernel))};
  if (r.chance(60)) p.node.operands.push_back(r.parameter({c.filters}));
  set_window(p.node, c.window.spec, r.chance(70));
  if (c.group != 1) p.node.attributes.set("group", c.group);
  const Array x(p.node.operands[0]), w(p.node.operands[1]), b(p.node.operands.size() > 2 ? p.node.operands[2] : Tensor(DType::kF32, {0}));
  p.want = reference::conv(x, w, p.node.operands.size() > 2 ? &b : nullptr, c.group, c.window.spec);
}

void make_conv_transpose(Random& r, Problem& p) {
  while (true) {
    ConvChoice c = choose_conv(r, false);
    auto& spec = c.window.spec;
    const std::size_t rank = spec.kernel.size();
    if (spec.auto_pad == "VALID") spec.auto_pad = "NOTSET";
    for (std::int64_t& n : c.window.sizes) n = std::min<std::int64_t>(n, 7);
    Ints padding(rank, 0), shape;
    for (std::size_t d = 0; d < rank; ++d) {
      if (r.chance(40)) padding[d] = r.in(0, std::max(spec.strides[d], spec.dilations[d]) - 1);
      const std::int64_t whole = spec.strides[d] * (c.window.sizes[d] - 1) + padding[d] + (spec.kernel[d] - 1) * spec.dilations[d] + 1;
      shape.push_back(std::max<std::int64_t>(1, whole - r.in(0, std::min<std::int64_t>(3, whole - 1))));
    }
    const bool same = spec.auto_pad.starts_with("SAME"), by_shape = !same && r.chance(20);
    if (same || by_shape) spec.pads.clear();
    bool fits = true;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t whole = spec.strides[d] * (c.window.sizes[d] - 1) + padding[d] + (spec.kernel[d] - 1) * spec.dilations[d] + 1;
      const std::int64_t pads = spec.pads.empty() ? 0 : spec.pads[d] + spec.pads[d + rank];
      fits = fits && whole - pads >= 1 && (!same || whole >= c.window.sizes[d] * spec.strides[d]);
    }
    if (!fits) continue;
    p.node.op = "ConvTranspose";
    p.node.operands = {r.tensor(join(c.batch, c.channels, c.window.sizes)), r.tensor(join(c.channels, c.filters / c.group, spec.kernel))};
    if (r.chance(60)) p.node.operands.push_back(r.parameter({c.filters}));
    set_window(p.node, spec, r.chance(70));
    if (c.group != 1) p.node.attributes.set("group", c.group);
    p.node.attributes.set("output_padding", padding);
    if (by_shape) p.node.attributes.set("output_shape", shape);
    const Array x(p.node.operands[0]), w(p.node.operands[1]), b(p.node.operands.size() > 2 ? p.node.operands[2] : Tensor(DType::kF32, {0}));
    p.want = reference::conv_transpose(x, w, p.node.operands.size() > 2 ? &b : nullptr, c.group, spec, padding, by_shape ? shape : Ints{});
    return;
  }
}

bool finite(const Array& a) {
  for (const double v : a.values) {
    if (!std::isfinite(v)) return false;
  }
  return true;
}

void make_pool(Random& r, Problem& p, const char* op) {
  do {
    WindowChoice c = choose_window(r, true, 17);
    p.node = {};
    p.node.op = op;
    p.node.operands = {r.tensor(join(r.in(1, 2), r.chance(30) ? r.in(1, 70) : r.in(1, 12), c.sizes))};
    set_window(p.node, c.spec, true);
    const Array x(p.node.operands[0]);
    if (p.node.op == "MaxPool") {
      p.want = reference::max_pool(x, c.spec);
    } else if (p.node.op == "AveragePool") {
      const bool include = r.chance(50);
      p.node.attributes.set("count_include_pad", std::int64_t{include});
      p.want = reference::average_pool(x, c.spec, include);
    } else {
      const std::int64_t power = r.in(1, 3);
      p.node.attributes.set("p", power);
      p.want = reference::lp_pool(x, c.spec, power);
    }
  } while (!finite(p.want));
}

void make_global_pool(Random& r, Problem& p) {
  const bool average = r.chance(50);
  p.node.op = average ? "GlobalAveragePool" : "GlobalMaxPool";
  Ints sizes;
  for (std::size_t d = spatial_rank(r); d > 0; --d) sizes.push_back(r.in(1, 19));
  p.node.operands = {r.tensor(join(r.in(1, 3), r.in(1, 40), sizes))};
  reference::WindowSpec spec;
  spec.kernel = sizes;
  const Array x(p.node.operands[0]);
  p.want = average ? reference::average_pool(x, spec, false) : reference::max_pool(x, spec);
}

void make_batch_norm(Random& r, Problem& p) {
  p.node.op = "BatchNormalization";
  Shape shape = {r.in(1, 4), r.in(1, 70)};
  for (std::int64_t d = r.in(0, 3); d > 0; --d) shape.push_back(r.in(1, 9));
  const std::int64_t c = shape[1];
  p.node.operands = {r.tensor(shape, -3, 3), r.parameter({c}, -2, 2), r.parameter({c}), r.parameter({c}), r.parameter({c}, 0.01, 4)};
  const float epsilon = r.pick<float>({1e-5f, 1e-3f, 0.1f});
  p.node.attributes.set("epsilon", epsilon);
  std::vector<Array> a;
  for (const Tensor& t : p.node.operands) a.emplace_back(t);
  p.want = reference::batch_norm(a[0], a[1], a[2], a[3], a[4], static_cast<double>(epsilon));
}

void make_gemm(Random& r, Problem& p) {
  p.node.op = "Gemm";
  const std::int64_t m = r.in(1, 40), k = r.in(1, 90), n = r.in(1, r.chance(30) ? 90 : 20);
  const bool ta = r.chance(30), tb = r.chance(50);
  p.node.operands = {r.tensor(ta ? Shape{k, m} : Shape{m, k}), r.tensor(tb ? Shape{n, k} : Shape{k, n})};
  const std::int64_t form = r.in(0, 6);
  if (form > 0) {
    const Shape shapes[] = {{}, {1}, {n}, {1, n}, {m, 1}, {m, n}};
    p.node.operands.push_back(r.parameter(shapes[form - 1]));
  }
  const float alpha = r.chance(50) ? 1.0f : 0.37f, beta = r.chance(50) ? 1.0f : -1.5f;
  p.node.attributes.set("alpha", alpha);
  p.node.attributes.set("beta", beta);
  p.node.attributes.set("transA", std::int64_t{ta});
  p.node.attributes.set("transB", std::int64_t{tb});
  const Array a(p.node.operands[0]), b(p.node.operands[1]), c(form > 0 ? p.node.operands[2] : Tensor(DType::kF32, {0}));
  p.want = reference::gemm(a, b, form > 0 ? &c : nullptr, static_cast<double>(alpha), static_cast<double>(beta), ta, tb);
}

void make_matmul(Random& r, Problem& p) {
  p.node.op = "MatMul";
  const std::int64_t m = r.in(1, 20), k = r.in(1, 60), n = r.in(1, 40);
  Shape a, b;
  for (std::int64_t d = r.in(0, 2); d > 0; --d) {
    const std::int64_t size = r.in(1, 3);
    a.push_back(r.chance(30) ? 1 : size);
    if (b.size() + 1 == a.size() && r.chance(60)) b.push_back(r.chance(30) ? 1 : size);
  }
  if (b.size() < a.size()) b.clear();
  a.insert(a.end(), {m, k});
  b.insert(b.end(), {k, n});
  p.node.operands = {r.tensor(a), r.tensor(b)};
  p.want = reference::matmul(Array(p.node.operands[0]), Array(p.node.operands[1]));
}

void make_softmax(Random& r, Problem& p) {
  const bool logarithm = r.chance(40);
  p.node.op = logarithm ? "LogSoftmax" : "Softmax";
  Shape shape;
  for (std::int64_t d = r.in(1, 4); d > 0; --d) shape.push_back(r.in(1, 13));
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t axis = r.in(-rank, rank - 1);
  p.node.attributes.set("axis", axis);
  const double spread = r.chance(20) ? 90 : 4;
  p.node.operands = {r.tensor(shape, -spread, spread)};
  p.want = reference::softmax(Array(p.node.operands[0]), axis, logarithm);
}

void make_resize(Random& r, Problem& p) {
  reference::ResizeSpec spec;
  Shape shape;
  do {
    spec = {};
    spec.mode = r.pick<const char*>({"nearest", "linear", "linear", "cubic"});
    spec.coordinates = r.pick<const char*>({"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"});
    spec.nearest_mode = r.pick<const char*>({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
    if (spec.mode == "cubic") {
      spec.cubic_a = r.chance(50) ? -0.75 : -0.5;
      spec.exclude_outside = r.chance(40);
    }
    shape = {r.in(1, 2), r.in(1, 20), r.in(1, 12), r.in(1, 12)};
    const bool sizes = r.chance(50);
    spec.scales = {1, 1};
    if (sizes) spec.sizes = {shape[0], shape[1]};
    for (std::size_t d = 2; d < 4; ++d) {
      if (sizes) spec.sizes.push_back(r.in(1, 20));
      spec.scales.push_back(static_cast<double>(r.chance(50) ? static_cast<float>(r.in(1, 3)) : static_cast<float>(r.in(8, 40)) / 16.0f));
    }
    for (std::size_t d = 2; d < 4 && !sizes; ++d) {
      if (std::floor(static_cast<double>(shape[d]) * spec.scales[d]) < 1) spec.scales[d] = 1;
    }
  } while (spec.mode == "nearest" && reference::distance_to_ties(shape, spec) < 1e-4);
  p.node.op = "Resize";
  p.node.operands = {r.tensor(shape), Tensor()};
  if (spec.sizes.empty()) {
    p.node.operands.push_back(f32({4}, {spec.scales.begin(), spec.scales.end()}));
    p.node.constant = {2};
  } else {
    p.node.operands.push_back(Tensor());
    p.node.operands.push_back(i64({4}, spec.sizes));
    p.node.constant = {3};
  }
  p.node.attributes.set("mode", spec.mode);
  p.node.attributes.set("coordinate_transformation_mode", spec.coordinates);
  p.node.attributes.set("nearest_mode", spec.nearest_mode);
  p.node.attributes.set("cubic_coeff_a", static_cast<float>(spec.cubic_a));
  p.node.attributes.set("exclude_outside", std::int64_t{spec.exclude_outside});
  p.want = reference::resize(Array(p.node.operands[0]), spec);
}

struct Family {
  const char* op;
  int weight;
  void (*make)(Random&, Problem&);
};

const std::vector<Family>& families() {
  static const std::vector<Family> list = {
      {"Conv", 27, [](Random& r, Problem& p) { make_conv(r, p, false); }},
      {"Conv", 15, [](Random& r, Problem& p) { make_conv(r, p, true); }},
      {"ConvTranspose", 8, make_conv_transpose},
      {"MaxPool", 9, [](Random& r, Problem& p) { make_pool(r, p, "MaxPool"); }},
      {"AveragePool", 9, [](Random& r, Problem& p) { make_pool(r, p, "AveragePool"); }},
      {"LpPool", 4, [](Random& r, Problem& p) { make_pool(r, p, "LpPool"); }},
      {"GlobalAveragePool", 2, make_global_pool},
      {"BatchNormalization", 6, make_batch_norm},
      {"Gemm", 7, make_gemm},
      {"MatMul", 3, make_matmul},
      {"Softmax", 4, make_softmax},
      {"Resize", 6, make_resize},
  };
  return list;
}

std::string text_of(const AttributeValue& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return std::to_string(*i);
  if (const auto* f = std::get_if<float>(&value)) return fmt::format("{}", *f);
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  return to_string(std::get<std::vector<std::int64_t>>(value));
}

std::string line_of(int number, const Problem& p) {
  std::string line = fmt::format("problem {}: {}", number, p.node.op);
  for (std::size_t i = 0; i < p.node.operands.size(); ++i) {
    const Tensor& t = p.node.operands[i];
    if (!t) continue;
    const bool constant = std::find(p.node.constant.begin(), p.node.constant.end(), i) != p.node.constant.end();
    line += fmt::format(" x{}{}={}", i, constant ? "(constant)" : "", to_string(t.shape()));
    if (p.node.op == "Resize" && i > 0) line += fmt::format(":{}", t.to_doubles());
  }
  for (const auto& [name, value] : p.node.attributes) line += fmt::format(" {}={}", name, text_of(value));
  if (p.options.layout == Layout::kChannelsLast) line += fmt::format(" layout=channels-last+{}", p.options.extra_pitch);
  if (p.options.precision == Precision::kBF16) line += p.options.widen_outputs ? " bf16 to f32" : " bf16";
  if (p.options.precision == Precision::kBF16x3) line += " bf16x3";
  if (p.options.cpu.emulate_amx) line += " on tiles";
  return line;
}

void set_precision(Random& r, Problem& p, Precision precision) {
  p.options.precision = precision;
  if (precision == Precision::kF32) return;
  const Bf16Rule rule = need_op(p.node.op).bf16;
  p.options.cpu.emulate_amx = precision == Precision::kBF16x3 || r.chance(50);
  p.options.store_bf16 = precision == Precision::kBF16 && rule != Bf16Rule::kWiden;
  p.options.widen_outputs = rule == Bf16Rule::kProduct && r.chance(50);
}

}  // namespace

Problem make_problem(int number, Precision precision) {
  Random r(static_cast<std::uint64_t>(number) * 0x2545f4914f6cdd1du + 1 + static_cast<std::uint64_t>(precision), precision == Precision::kBF16);
  int total = 0;
  for (const Family& f : families()) total += f.weight;
  std::int64_t at = r.in(0, total - 1);
  const Family* family = families().data();
  while (at >= family->weight) at -= (family++)->weight;
  Problem p;
  family->make(r, p);
  // Weights are constants, or computed by another node.
  if (p.node.constant.empty() && r.chance(75)) {
    for (std::size_t i = 1; i < p.node.operands.size(); ++i) p.node.constant.push_back(i);
  }
  const LayoutRule rule = need_op(p.node.op).layout;
  const bool image = p.node.operands[0].rank() >= 3;
  if (image && (rule == LayoutRule::kChannelsLast || (rule == LayoutRule::kAny && r.chance(50)))) {
    p.options.layout = Layout::kChannelsLast;
    const std::int64_t whole_lines = (32 - p.node.operands[0].shape()[1] % 32) % 32;
    p.options.extra_pitch = r.pick<std::int64_t>({0, 0, 1, 3, whole_lines});
  }
  set_precision(r, p, precision);
  p.line = line_of(number, p);
  return p;
}

std::string failure_of(const Problem& p, double rtol) {
  try {
    const Tensor got = run_node(p.node, p.options)[0];
    if (got.shape() != p.want.shape) return fmt::format("{}: shape {}, want {}", p.line, to_string(got.shape()), to_string(p.want.shape));
    const std::vector<double> values = got.to_doubles();
    const double stored = p.options.store_bf16 && !p.options.widen_outputs ? 1.0 / 256 : 0;  // half of bf16's last bit
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double want = p.want.values[i], size = std::max({std::abs(want), p.want.size_of_terms[i] / 100, 1e-32});
      if (!(std::abs(values[i] - want) <= rtol * size + stored * std::abs(want))) {
        return fmt::format("{}: element {} of {}: got {:.9g}, want {:.9g} (terms {:.3g})", p.line, i, to_string(got.shape()), values[i], want,
                           p.want.size_of_terms[i]);
      }
    }
  } catch (const std::exception& e) {
    return fmt::format("{}: {}", p.line, e.what());
  }
  return "";
}

}  // namespace tandem::test
