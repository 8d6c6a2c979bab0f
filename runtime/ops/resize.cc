// Resize: nearest neighbours are copied, linear and cubic interpolation go axis by axis (the weights are a product over the axes).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/cpu/convert.h"
#include "runtime/cpu/strided.h"
#include "runtime/ops/families.h"
#include "runtime/ops/gather_sum.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/resize_passes.h"

namespace tandem {
namespace {

constexpr std::int64_t kLongestAxis = std::int64_t{1} << 24;

struct ResizeParams {
  ResizeRule rule;
  float extrapolation = 0;
  std::vector<ResizeAxis> axes;  // one for each axis of the operand
};

// ---- shapes

// A steering operand; one without elements is absent as well.
std::vector<double> given(const InferContext& c, std::size_t i) { return c.has_input(i) ? c.host(i).to_doubles() : std::vector<double>(); }

std::vector<std::size_t> resized_axes(const InferContext& c) {
  std::vector<std::size_t> axes(c.shape(0).size());
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  if (!c.attributes().has("axes")) return axes;
  axes.clear();
  for (const std::int64_t a : c.attributes().integers("axes")) {
    axes.push_back(static_cast<std::size_t>(normalise_axis(a, c.rank(0), "axes")));
    if (std::count(axes.begin(), axes.end(), axes.back()) > 1) throw InvalidModel(fmt::format("axes name axis {} twice", axes.back()));
  }
  return axes;
}

void expect_count(const char* what, std::size_t found, std::size_t wanted) {
  if (found != wanted) throw InvalidModel(fmt::format("{} has {} values, expected {}", what, found, wanted));
}

void set_axis(ResizeAxis& a, double out, double scale) {
  if (!(out >= 0 && out <= static_cast<double>(kLongestAxis)))
    throw InvalidModel(fmt::format("an axis of {} would be resized to {}; at most {} is possible", a.in, out, kLongestAxis));
  if (a.in == 0 && out > 0) throw InvalidModel(fmt::format("an empty axis cannot be resized to {}", out));
  a.out = static_cast<std::int64_t>(out);
  a.scale = scale;
  a.length = scale * static_cast<double>(a.in);
  // A scale that stands for a ratio of lengths, within the precision of float32: take the ratio.
  if (std::abs(a.length - out) <= 1e-6 * out) a.length = out;
  a.identity = a.in == a.out && a.length == out;
}

void scale_axes(ResizeParams& p, const std::vector<std::size_t>& axes, const std::vector<double>& scales) {
  const bool crop = p.rule.coordinates == ResizeCoordinates::kCropAndResize;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& a = p.axes[axes[i]];
    if (!(scales[i] > 0) || std::isinf(scales[i])) throw InvalidModel(fmt::format("scale {} is not a positive number", scales[i]));
    const float part = crop ? static_cast<float>(a.roi_end - a.roi_start) : 1.0f;
    set_axis(a, std::floor(static_cast<double>(static_cast<float>(a.in) * part * static_cast<float>(scales[i]))), scales[i]);
  }
}

void size_axes(ResizeParams& p, const std::vector<std::size_t>& axes, const std::vector<double>& sizes, const std::string& policy) {
  const bool stretch = policy == "stretch", smaller = policy == "not_larger";
  if (!stretch && !smaller && policy != "not_smaller")
    throw InvalidModel(fmt::format("keep_aspect_ratio_policy must be stretch, not_larger or not_smaller, is '{}'", policy));
  double common = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (sizes[i] < 0) throw InvalidModel(fmt::format("size {} is negative", sizes[i]));
    const double scale = sizes[i] / static_cast<double>(std::max<std::int64_t>(1, p.axes[axes[i]].in));
    common = i == 0 ? scale : smaller ? std::min(common, scale) : std::max(common, scale);
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& a = p.axes[axes[i]];
    const auto in = static_cast<double>(a.in);
    if (stretch)
      set_axis(a, sizes[i], a.in == 0 ? 1 : sizes[i] / in);
    else
      set_axis(a, std::floor(common * in + 0.5), common);
  }
}

ResizeRule rule_of(const Attributes& a) {
  ResizeRule r;
  r.mode = resize_mode(a.text("mode", "nearest"));
  r.coordinates = resize_coordinates(a.text("coordinate_transformation_mode", "half_pixel"));
  r.nearest = nearest_mode(a.text("nearest_mode", "round_prefer_floor"));
  r.cubic_a = a.real("cubic_coeff_a", -0.75f);
  r.exclude_outside = a.integer("exclude_outside", 0) != 0;
  r.antialias = a.integer("antialias", 0) != 0;
  return r;
}

void infer(InferContext& c) {
  c.expect_rank(0, 1, 16);
  const Shape& x = c.shape(0);
  ResizeParams p{rule_of(c.attributes()), c.attributes().real("extrapolation_value", 0), std::vector<ResizeAxis>(x.size())};
  if (p.rule.mode != ResizeMode::kNearest && c.dtype(0) == DType::kBool) throw InvalidModel("bool values can only be resized in mode nearest");
  for (std::size_t i = 0; i < x.size(); ++i) {
    p.axes[i].half_pixel_without_shift = c.attributes().text("coordinate_transformation_mode", "") == "tf_half_pixel_for_nn";
    p.axes[i].in = x[i];
    p.axes[i].out = x[i];
  }
  const auto axes = resized_axes(c);
  const auto scales = given(c, 2), sizes = given(c, 3);
  const bool crop = p.rule.coordinates == ResizeCoordinates::kCropAndResize;
  if (crop) {
    const auto roi = given(c, 1);
    expect_count("roi", roi.size(), 2 * axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
      p.axes[axes[i]].roi_start = roi[i];
      p.axes[axes[i]].roi_end = roi[i + axes.size()];
    }
  }
  if (scales.empty() == sizes.empty() && !axes.empty()) throw InvalidModel("exactly one of scales and sizes must be given");
  if (!scales.empty()) {
    expect_count("scales", scales.size(), axes.size());
    scale_axes(p, axes, scales);
  } else if (!sizes.empty()) {
    expect_count("sizes", sizes.size(), axes.size());
    size_axes(p, axes, sizes, c.attributes().text("keep_aspect_ratio_policy", "stretch"));
  }
  Shape y;
  for (ResizeAxis& a : p.axes) {
    a.identity = a.identity && !a.half_pixel_without_shift && (!crop || (a.roi_start == 0 && a.roi_end == 1));
    y.push_back(a.out);
  }
  c.set_params(std::move(p));
  c.set_output(0, c.dtype(0), y);
}

Rows rows(const RowContext& c) { return c.params<ResizeParams>().axes[0].identity ? rows_of_first(c) : Rows::mixed(); }

// ---- nearest

// The output in its memory order: rows of the last table's elements, each `run` neighbouring elements.
struct NearestPlan {
  std::vector<std::vector<std::int64_t>> from;  // operand offset for each index, per outer axis
  std::vector<std::int64_t> step;               // output elements between indices
  std::int64_t run = 1, rows = 1;
};

NearestPlan nearest_plan(const TensorDesc& in, const TensorDesc& out, const ResizeParams& p) {
  const auto fs = in.strides(), ts = out.strides();
  std::vector<std::size_t> order(out.shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ts[a] > ts[b]; });
  NearestPlan plan;
  while (!order.empty()) {
    const std::size_t a = order.back();
    if (!p.axes[a].identity || (out.shape[a] != 1 && (fs[a] != plan.run || ts[a] != plan.run))) break;
    plan.run *= out.shape[a];
    order.pop_back();
  }
  for (const std::size_t a : order) {
    std::vector<std::int64_t> table(static_cast<std::size_t>(out.shape[a]));
    std::iota(table.begin(), table.end(), std::int64_t{0});
    if (!p.axes[a].identity) table = resize_taps(p.rule, p.axes[a]).index;
    for (std::int64_t& i : table) i *= fs[a];
    plan.from.push_back(std::move(table));
    plan.step.push_back(ts[a]);
  }
  if (plan.from.empty()) {
    plan.from.push_back({0});
    plan.step.push_back(0);
  }
  for (std::size_t a = 0; a + 1 < plan.from.size(); ++a) plan.rows *= static_cast<std::int64_t>(plan.from[a].size());
  return plan;
}

Stage nearest_stage(const TensorDesc& in, const TensorDesc& out, const ResizeParams& p) {
  const NearestPlan plan = nearest_plan(in, out, p);
  const std::int64_t row = static_cast<std::int64_t>(plan.from.back().size()) * plan.run;
  const std::int64_t per_task = std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(1, row));
  const int tasks = out.size() == 0 ? 0 : static_cast<int>((plan.rows + per_task - 1) / per_task);
  const DType from = in.dtype, to = out.dtype;
  return dispatch_width(size_of(to), [&](auto tag) {
    using T = decltype(tag);
    return Stage{tasks, [=](const KernelArgs& k, int task) {
                   const std::int64_t last = std::min(plan.rows, (task + 1) * per_task);
                   for (std::int64_t r = task * per_task; r < last; ++r) {
                     std::int64_t source = 0, target = 0, rest = r;
                     for (std::size_t a = plan.from.size() - 1; a-- > 0;) {
                       const auto count = static_cast<std::int64_t>(plan.from[a].size());
                       source += plan.from[a][static_cast<std::size_t>(rest % count)];
                       target += rest % count * plan.step[a];
                       rest /= count;
                     }
                     T* y = k.output<T>(0) + target;
                     if (plan.run == 1 && from == to) {
                       for (const std::int64_t at : plan.from.back()) {
                         *y = k.input<T>(0)[source + at];
                         y += plan.step.back();
                       }
                       continue;
                     }
                     for (const std::int64_t at : plan.from.back()) {
                       copy_elements(from, k.input<std::byte>(0) + (source + at) * static_cast<std::int64_t>(size_of(from)), to, y, plan.run);
                       y += plan.step.back();
                     }
                   }
                 }};
  });
}

// ---- the kernel

// tf_crop_and_resize: output elements whose place is outside the operand along some axis.
void add_extrapolation(Kernel& kernel, CpuContext& c, const ResizeParams& p) {
  const TensorDesc& out = c.out[0];
  if (p.rule.coordinates != ResizeCoordinates::kCropAndResize) return;
  Tensor value(out.dtype, {});
  const double number = p.extrapolation;
  if (out.dtype == DType::kBF16)
    value.as_mutable<BFloat16>()[0] = BFloat16(p.extrapolation);
  else
    converter(DType::kF64, out.dtype)(&number, value.mutable_data(), 1);
  std::vector<Move> moves;
  for (std::size_t a = 0; a < p.axes.size(); ++a) {
    if (p.axes[a].identity) continue;
    const ResizeTaps taps = resize_taps(p.rule, p.axes[a]);
    const auto slab = [&](std::int64_t first, std::int64_t last) {
      Shape box = out.shape;
      box[a] = last - first;
      StridedSide to{out.dtype, out.strides(), first * out.strides()[a]};
      if (box[a] > 0) moves.push_back({0, 0, StridedCopy(box, {out.dtype, std::vector<std::int64_t>(box.size(), 0)}, to), value});
    };
    slab(0, taps.inside_begin);
    slab(taps.inside_end, p.axes[a].out);
  }
  // slabs of different axes overlap: one stage after the other
  for (Move& m : moves) kernel.stages.push_back(move_kernel("", {}, {std::move(m)}).stages[0]);
}

Kernel cpu(CpuContext& c) {
  const auto& p = c.params<ResizeParams>();
  const TensorDesc &in = c.in[0], &out = c.out[0];
  Kernel kernel = move_kernel("plain:resize", c.out, {});  // channel padding
  if (out.size() == 0) return kernel;
  const bool all_identity = std::all_of(p.axes.begin(), p.axes.end(), [](const ResizeAxis& a) { return a.identity; });
  if (p.rule.mode == ResizeMode::kNearest || all_identity) {
    kernel.implementation = "plain:resize_nearest";
    kernel.stages.push_back(nearest_stage(in, out, p));
  } else {
    kernel.implementation = "plain:resize_passes";
    add_resize_passes(kernel, in, out, p.rule, p.axes);
  }
  add_extrapolation(kernel, c, p);
  return kernel;
}

// The transposed interpolation along every axis; what was extrapolated depends on no element.
void gradient(GradientContext& c) {
  const auto& p = c.params<ResizeParams>();
  std::vector<AxisTaps> maps;
  for (std::size_t a = 0; a < p.axes.size(); ++a) {
    if (p.axes[a].identity) continue;
    ResizeTaps taps = resize_taps(p.rule, p.axes[a]);
    for (std::int64_t o = 0; o < p.axes[a].out; ++o) {
      if (o >= taps.inside_begin && o < taps.inside_end) continue;
      const auto first = static_cast<std::size_t>(o);
      for (std::int64_t k = taps.first[first]; k < taps.first[first + 1]; ++k) taps.weight[static_cast<std::size_t>(k)] = 0;
    }
    maps.push_back({a, transposed(taps, p.axes[a].in)});
  }
  // what shrinks most comes first
  std::stable_sort(maps.begin(), maps.end(), [&](const AxisTaps& a, const AxisTaps& b) { return p.axes[a.axis].scale > p.axes[b.axis].scale; });
  c.set(0, emit_gather_sum(c, c.dy(), maps));
}

}  // namespace

std::span<const OpDef> resize_ops() {
  static const OpDef ops[] = {
      {.name = "Resize",
       .max_inputs = 4,
       .infer = infer,
       .cpu = cpu,
       .host_inputs = 0b1110,
       .rows = rows,
       .layout = LayoutRule::kAny,
       .bf16 = Bf16Rule::kStore,
       .gradient = gradient},
  };
  return ops;
}

}  // namespace tandem
