// Slice, Pad, CenterCropPad: boxes of the operand, with something around them.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/ops/families.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/slice.h"

namespace tandem {
namespace {

std::vector<std::int64_t> all_axes(std::int64_t rank) {
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i < rank; ++i) axes.push_back(i);
  return axes;
}

// The axes that a steering operand lists (all when it is absent), normalised, none twice.
std::vector<std::int64_t> listed_axes(std::vector<std::int64_t> axes, std::int64_t rank) {
  std::vector<char> seen(static_cast<std::size_t>(rank), 0);
  for (std::int64_t& a : axes) {
    a = normalise_axis(a, rank, "axes");
    char& s = seen[static_cast<std::size_t>(a)];
    if (s) throw InvalidModel(fmt::format("axes {} name one axis twice", to_string(axes)));
    s = 1;
  }
  return axes;
}

// ---- Slice

// One axis: numpy's rule after negative values count from the end. With a negative step, an end beyond the last element leaves nothing
// (the text of the standard; there is no "until the end" but INT64_MIN). Returns the number of elements.
std::int64_t slice_axis(std::int64_t dim, std::int64_t end, std::int64_t& start, std::int64_t step) {
  if (step == 0) throw InvalidModel("a step of 0");
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  const bool forward = step > 0;
  start = std::clamp<std::int64_t>(start, 0, std::max<std::int64_t>(0, forward ? dim : dim - 1));
  end = forward ? std::clamp<std::int64_t>(end, 0, dim) : std::clamp<std::int64_t>(end, -1, dim - 1);
  const std::int64_t length = forward ? end - start : start - end;
  if (length <= 0 || dim == 0) return 0;
  const std::uint64_t stride = forward ? static_cast<std::uint64_t>(step) : -static_cast<std::uint64_t>(step);
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(length) - 1) / stride) + 1;
}

void infer_slice(InferContext& c) {
  const auto starts = c.host_ints(1), ends = c.host_ints(2);
  const auto axes =
      listed_axes(c.has_input(3) ? c.host_ints(3) : all_axes(std::min<std::int64_t>(c.rank(0), static_cast<std::int64_t>(starts.size()))), c.rank(0));
  const auto steps = c.has_input(4) ? c.host_ints(4) : std::vector<std::int64_t>(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    throw InvalidModel(fmt::format("starts, ends, axes and steps have {}, {}, {} and {} values for an operand of shape {}", starts.size(),
                                   ends.size(), axes.size(), steps.size(), to_string(c.shape(0))));
  }
  Shape y = c.shape(0);
  SliceBox box{std::vector<std::int64_t>(y.size(), 0), std::vector<std::int64_t>(y.size(), 1)};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<std::size_t>(axes[i]);
    box.starts[a] = starts[i];
    y[a] = slice_axis(y[a], ends[i], box.starts[a], steps[i]);
    box.steps[a] = y[a] > 1 ? steps[i] : 1;  // with one element the step does not matter and may be huge
  }
  c.set_params(std::move(box));
  c.set_output(0, c.dtype(0), y);
}

Kernel cpu_slice(CpuContext& c) {
  const auto& box = c.params<SliceBox>();
  StridedSide from = side_of(c.in[0]);
  for (std::size_t i = 0; i < box.starts.size(); ++i) {
    from.offset += box.starts[i] * from.strides[i];
    from.strides[i] *= box.steps[i];
  }
  return move_kernel("plain:slice", c.out, {{0, 0, StridedCopy(c.out[0].shape, from, side_of(c.out[0]))}});
}

Rows rows_slice(const RowContext& c) {
  const auto& box = c.params<SliceBox>();
  return box.starts[0] == 0 && box.steps[0] == 1 ? rows_of_first(c) : Rows::mixed();
}

// ---- Pad

PadMode pad_mode(const std::string& text) {
  if (text == "constant") return PadMode::kConstant;
  if (text == "reflect") return PadMode::kReflect;
  if (text == "edge") return PadMode::kEdge;
  if (text == "wrap") return PadMode::kWrap;
  throw InvalidModel(fmt::format("mode must be constant, reflect, edge or wrap, is '{}'", text));
}

// What the mode can take its values from.
void check_source(PadMode mode, std::int64_t dim, std::int64_t before, std::int64_t after, std::size_t axis) {
  if (mode == PadMode::kConstant || (before <= 0 && after <= 0)) return;
  if (dim == 0) throw InvalidModel(fmt::format("axis {} is empty and can only be padded with a constant", axis));
  if (mode == PadMode::kReflect && std::max(before, after) >= dim)
    throw InvalidModel(fmt::format("mode reflect pads axis {} of {} elements by {} and {}; less than {} is possible", axis, dim, before, after, dim));
}

void infer_pad(InferContext& c) {
  const std::int64_t rank = c.rank(0);
  const auto pads = c.host_ints(1);
  const auto axes = listed_axes(c.has_input(3) ? c.host_ints(3) : all_axes(rank), rank);
  if (pads.size() != 2 * axes.size())
    throw InvalidModel(fmt::format("pads has {} values, {} axes want {}", pads.size(), axes.size(), 2 * axes.size()));
  if (c.has_input(2)) {
    c.expect_same_dtype(0, 2);
    if (elements(c.shape(2)) != 1) throw InvalidModel(fmt::format("the constant must be one value, has shape {}", to_string(c.shape(2))));
  }
  Shape y = c.shape(0);
  Padding p{pad_mode(c.attributes().text("mode", "constant")), std::vector<std::int64_t>(y.size(), 0), std::vector<std::int64_t>(y.size(), 0)};
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<std::size_t>(axes[i]);
    const std::int64_t before = pads[i], after = pads[i + axes.size()], dim = y[a];
    if (std::max(before, after) > kMost || std::min(before, after) < -kMost || dim + before + after < 0 || before < -dim || after < -dim)
      throw InvalidModel(fmt::format("pads {} and {} do not fit axis {} of {} elements", before, after, a, dim));
    check_source(p.mode, dim, before, after, a);
    p.before[a] = before;
    p.after[a] = after;
    y[a] = dim + before + after;
  }
  c.set_params(std::move(p));
  c.set_output(0, c.dtype(0), y);
}

// Every combination of the axes' stretches is one copy.
std::vector<Move> stretch_moves(const TensorDesc& in, const TensorDesc& out, const std::vector<std::vector<Stretch>>& axes) {
  constexpr std::size_t kMostMoves = 4096;
  const auto from = in.strides(), to = out.strides();
  std::size_t total = 1;
  for (const auto& s : axes) {
    total *= s.size();
    if (total > kMostMoves) throw Unsupported("mode reflect, edge or wrap is not supported on so many axes at once");
  }
  std::vector<Move> moves;
  for (std::size_t n = 0; n < total; ++n) {
    Shape box;
    StridedSide source{in.dtype, {}, 0}, target{out.dtype, {}, 0};
    std::size_t rest = n;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const Stretch& s = axes[a][rest % axes[a].size()];
      rest /= axes[a].size();
      box.insert(box.end(), {s.repeats, s.count});
      source.offset += s.from * from[a];
      source.strides.insert(source.strides.end(), {0, s.step * from[a]});
      target.offset += s.to * to[a];
      target.strides.insert(target.strides.end(), {s.count * to[a], to[a]});
    }
    moves.push_back({0, 0, StridedCopy(box, source, target)});
  }
  return moves;
}

// What lies around the box [at, at + count) of the output: two slabs for each axis.
std::vector<Move> surrounding(const TensorDesc& out, const std::vector<std::int64_t>& at, const Shape& count, bool from_operand, DType value_type) {
  std::vector<Move> moves;
  const auto to = out.strides();
  Shape box = out.shape;
  StridedSide target{out.dtype, to, 0};
  for (std::size_t a = 0; a < box.size(); ++a) {
    const auto slab = [&](std::int64_t start, std::int64_t size) {
      if (size <= 0) return;
      Shape s = box;
      s[a] = size;
      StridedSide t = target;
      t.offset += start * to[a];
      if (from_operand)
        moves.push_back({2, 0, StridedCopy(s, {value_type, std::vector<std::int64_t>(s.size(), 0), 0}, t)});
      else
        moves.push_back(zero_move(0, s, t));
    };
    slab(0, at[a]);
    slab(at[a] + count[a], out.shape[a] - at[a] - count[a]);
    target.offset += at[a] * to[a];
    box[a] = count[a];
  }
  return moves;
}

Kernel cpu_pad(CpuContext& c) {
  const auto& p = c.params<Padding>();
  const TensorDesc &in = c.in[0], &out = c.out[0];
  if (p.mode != PadMode::kConstant) {
    std::vector<std::vector<Stretch>> axes;
    for (std::size_t a = 0; a < p.before.size(); ++a) axes.push_back(stretches(p.mode, in.shape[a], p.before[a], p.after[a]));
    return move_kernel("plain:pad", c.out, stretch_moves(in, out, axes));
  }
  StridedSide from = side_of(in), to = side_of(out);
  Shape box = in.shape, at(box.size());
  for (std::size_t a = 0; a < box.size(); ++a) {
    const std::int64_t cut = std::max<std::int64_t>(-p.before[a], 0);
    at[a] = std::max<std::int64_t>(p.before[a], 0);
    box[a] = std::max<std::int64_t>(0, in.shape[a] - cut - std::max<std::int64_t>(-p.after[a], 0));
    from.offset += cut * from.strides[a];
    to.offset += at[a] * to.strides[a];
  }
  const bool given = c.has_input(2);
  std::vector<Move> moves = surrounding(out, at, box, given, given ? c.in[2].dtype : DType::kNone);
  moves.push_back({0, 0, StridedCopy(box, from, to)});
  return move_kernel("plain:pad", c.out, std::move(moves));
}

Rows rows_pad(const RowContext& c) {
  const auto& p = c.params<Padding>();
  return p.before[0] == 0 && p.after[0] == 0 ? rows_of_first(c) : Rows::mixed();
}

// ---- CenterCropPad: Pad with zeros whose amounts follow from the target, the odd element at the end.

void infer_center_crop_pad(InferContext& c) {
  Shape y = c.shape(0);
  const auto target = c.host_ints(1);
  const auto axes = listed_axes(c.attributes().integers("axes", all_axes(c.rank(0))), c.rank(0));
  if (target.size() != axes.size()) throw InvalidModel(fmt::format("shape has {} values for {} axes", target.size(), axes.size()));
  Padding p{PadMode::kConstant, std::vector<std::int64_t>(y.size(), 0), std::vector<std::int64_t>(y.size(), 0)};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<std::size_t>(axes[i]);
    if (target[i] < 0) throw InvalidModel(fmt::format("shape {} has a negative value", to_string(target)));
    const std::int64_t more = target[i] - y[a];
    p.before[a] = more / 2;
    p.after[a] = more - more / 2;
    y[a] = target[i];
  }
  c.set_params(std::move(p));
  c.set_output(0, c.dtype(0), y);
}

}  // namespace

std::vector<Stretch> stretches(PadMode mode, std::int64_t dim, std::int64_t before, std::int64_t after) {
  std::vector<Stretch> s;
  const std::int64_t left = std::max<std::int64_t>(before, 0), right = std::max<std::int64_t>(after, 0);
  const std::int64_t first = std::max<std::int64_t>(-before, 0), kept = dim - first - std::max<std::int64_t>(-after, 0);
  if (mode == PadMode::kReflect) {
    s.push_back({0, left, -1, left});
    s.push_back({left + kept, dim - 2, -1, right});
  } else if (mode == PadMode::kEdge) {
    s.push_back({0, 0, 0, left});
    s.push_back({left + kept, dim - 1, 0, right});
  } else if (left > 0 || right > 0) {
    const std::int64_t head = left % dim, tail = right % dim;
    s.push_back({0, dim - head, 1, head});
    s.push_back({head, 0, 1, dim, left / dim});
    s.push_back({left + kept, 0, 1, dim, right / dim});
    s.push_back({left + kept + right - tail, 0, 1, tail});
  }
  s.push_back({left, first, 1, kept});
  std::erase_if(s, [](const Stretch& x) { return x.count <= 0 || x.repeats <= 0; });
  return s;
}

std::span<const OpDef> slice_ops() {
  static const OpDef ops[] = {
      {.name = "Slice",
       .min_inputs = 3,
       .max_inputs = 5,
       .infer = infer_slice,
       .cpu = cpu_slice,
       .host_inputs = 0b11110,
       .rows = rows_slice,
       .layout = LayoutRule::kAny,
       .bf16 = Bf16Rule::kStore,
       .gradient = slice_gradient},
      {.name = "Pad",
       .min_inputs = 2,
       .max_inputs = 4,
       .infer = infer_pad,
       .cpu = cpu_pad,
       .host_inputs = 0b1010,
       .rows = rows_pad,
       .layout = LayoutRule::kAny,
       .bf16 = Bf16Rule::kStore,
       .gradient = pad_gradient},
      {.name = "CenterCropPad",
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_center_crop_pad,
       .cpu = cpu_pad,
       .host_inputs = 0b10,
       .rows = rows_pad,
       .layout = LayoutRule::kAny,
       .bf16 = Bf16Rule::kStore,
       .gradient = pad_gradient},
  };
  return ops;
}

}  // namespace tandem
