// Concat and Split: a strided copy for each part.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/ops/families.h"
#include "runtime/ops/gradient_support.h"
#include "runtime/ops/movement.h"

namespace tandem {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 61;

struct Parts {
  std::size_t axis = 0;
  std::vector<std::int64_t> sizes;  // along the axis
};

void infer_concat(InferContext& c) {
  Parts p;
  c.expect_rank(0, 1, 64);
  p.axis = static_cast<std::size_t>(normalise_axis(c.attributes().integer("axis"), c.rank(0)));
  Shape y = c.shape(0);
  y[p.axis] = 0;
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    c.expect_same_dtype(0, i);
    Shape x = c.shape(i), first = c.shape(0);
    const bool fits = x.size() == first.size() && [&] {
      x[p.axis] = first[p.axis] = 0;
      return x == first;
    }();
    if (!fits)
      throw InvalidModel(fmt::format("operands 0 and {} have shapes {} and {}; they may differ only along axis {}", i, to_string(c.shape(0)),
                                     to_string(c.shape(i)), p.axis));
    p.sizes.push_back(c.shape(i)[p.axis]);
    y[p.axis] += p.sizes.back();
    if (y[p.axis] > kMostElements) throw InvalidModel(fmt::format("the operands have more than {} elements along axis {}", kMostElements, p.axis));
  }
  c.set_params(std::move(p));
  c.set_output(0, c.dtype(0), y);
}

Kernel cpu_concat(CpuContext& c) {
  const auto& p = c.params<Parts>();
  const auto to = c.out[0].strides();
  std::vector<Move> moves;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    moves.push_back({i, 0, StridedCopy(c.in[i].shape, side_of(c.in[i]), {c.out[0].dtype, to, at * to[p.axis]})});
    at += p.sizes[i];
  }
  return move_kernel("plain:concat", c.out, std::move(moves));
}

Rows rows_concat(const RowContext& c) {
  const Rows& first = c.inputs[0];
  const bool same = std::all_of(c.inputs.begin(), c.inputs.end(), [&](const Rows& r) { return r.is_batched() && r.per_sample == first.per_sample; });
  return same && c.params<Parts>().axis != 0 ? first : Rows::mixed();
}

// The first `wanted` of `count` parts of ceil(size / count), the last of all smaller (opset 18).
std::vector<std::int64_t> even_parts(std::int64_t size, std::int64_t count, std::size_t wanted) {
  const std::int64_t part = size / count + (size % count != 0), filled = part == 0 ? count : size / part;
  if (filled < count - 1) throw InvalidModel(fmt::format("an axis of {} cannot be split in {} parts of {}", size, count, part));
  std::vector<std::int64_t> sizes(wanted, part);
  if (static_cast<std::int64_t>(wanted) == count) sizes.back() = size - part * (count - 1);
  return sizes;
}

void infer_split(InferContext& c) {
  c.expect_rank(0, 1, 64);
  Parts p;
  p.axis = static_cast<std::size_t>(normalise_axis(c.attributes().integer("axis", 0), c.rank(0)));
  const std::int64_t size = c.shape(0)[p.axis], outputs = static_cast<std::int64_t>(c.outputs());
  if (c.has_input(1)) {
    if (c.attributes().has("num_outputs")) throw InvalidModel("operand 'split' and attribute 'num_outputs' exclude each other");
    p.sizes = c.host_ints(1);
    std::int64_t left = size;
    for (const std::int64_t part : p.sizes) {
      if (part < 0 || part > left) throw InvalidModel(fmt::format("split {} does not add up to the axis of {}", to_string(p.sizes), size));
      left -= part;
    }
    if (left != 0) throw InvalidModel(fmt::format("split {} does not add up to the axis of {}", to_string(p.sizes), size));
  } else if (c.attributes().has("num_outputs")) {
    const std::int64_t count = c.attributes().integer("num_outputs");
    if (count < 1 || count < outputs) throw InvalidModel(fmt::format("num_outputs is {}, the node has {} outputs", count, outputs));
    p.sizes = even_parts(size, count, c.outputs());
  } else {
    if (size % outputs != 0) throw InvalidModel(fmt::format("an axis of {} cannot be split in {} equal parts", size, outputs));
    p.sizes.assign(c.outputs(), size / outputs);
  }
  if (p.sizes.size() < c.outputs()) throw InvalidModel(fmt::format("{} parts for {} outputs", p.sizes.size(), outputs));
  for (std::size_t i = 0; i < c.outputs(); ++i) {
    Shape y = c.shape(0);
    y[p.axis] = p.sizes[i];
    c.set_output(i, c.dtype(0), y);
  }
  c.set_params(std::move(p));
}

Kernel cpu_split(CpuContext& c) {
  const auto& p = c.params<Parts>();
  const auto from = c.in[0].strides();
  std::vector<Move> moves;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < c.out.size(); ++i) {
    if (c.out[i]) moves.push_back({0, i, StridedCopy(c.out[i].shape, {c.in[0].dtype, from, at * from[p.axis]}, side_of(c.out[i]))});
    at += p.sizes[i];
  }
  return move_kernel("plain:split", c.out, std::move(moves));
}

Rows rows_split(const RowContext& c) { return c.params<Parts>().axis != 0 && c.inputs[0].is_batched() ? c.inputs[0] : Rows::mixed(); }

void concat_gradient(GradientContext& c) {
  const auto& p = c.params<Parts>();
  const auto parts = c.emit("Split", {c.dy(), c.ints(p.sizes)}, attribute("axis", static_cast<std::int64_t>(p.axis)), p.sizes.size());
  for (std::size_t i = 0; i < parts.size(); ++i) c.set(i, parts[i]);
}

void split_gradient(GradientContext& c) {
  const auto& p = c.params<Parts>();
  const Shape x = c.shape(c.input(0));
  std::vector<ValueId> parts;
  std::int64_t missing = x[p.axis];  // the last parts may have no output
  ValueId any = kNoValue;
  for (std::size_t i = 0; i < c.node().outputs.size(); ++i) any = any == kNoValue ? c.dy(i) : any;
  const auto zero_part = [&](std::int64_t size) {
    Shape s = x;
    s[p.axis] = size;
    return zeros(c, any, std::move(s));
  };
  for (std::size_t i = 0; i < c.node().outputs.size(); ++i) {
    parts.push_back(c.dy(i) == kNoValue ? zero_part(p.sizes[i]) : c.dy(i));
    missing -= p.sizes[i];
  }
  if (missing > 0) parts.push_back(zero_part(missing));
  c.set(0, c.emit("Concat", std::move(parts), attribute("axis", static_cast<std::int64_t>(p.axis))));
}

}  // namespace

std::span<const OpDef> concat_ops() {
  static const OpDef ops[] = {
      {.name = "Concat",
       .max_inputs = -1,
       .infer = infer_concat,
       .cpu = cpu_concat,
       .data_inputs = 0xffffffffu,
       .rows = rows_concat,
       .layout = LayoutRule::kAny,
       .bf16 = Bf16Rule::kStore,
       .gradient = concat_gradient},
      {.name = "Split",
       .max_inputs = 2,
       .max_outputs = -1,
       .infer = infer_split,
       .cpu = cpu_split,
       .host_inputs = 2,
       .rows = rows_split,
       .layout = LayoutRule::kAny,
       .bf16 = Bf16Rule::kStore,
       .gradient = split_gradient},
  };
  return ops;
}

}  // namespace tandem
