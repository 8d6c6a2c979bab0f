// Operators that are one strided copy: Transpose, DepthToSpace, SpaceToDepth, Expand, Tile.
#include <fmt/format.h>

#include "runtime/ops/families.h"
#include "runtime/ops/gradient_support.h"
#include "runtime/ops/movement.h"

namespace tandem {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// ---- Transpose

struct Transposition {
  std::vector<std::size_t> perm;  // output axis i is operand axis perm[i]
};

void infer_transpose(InferContext& c) {
  const Shape& x = c.shape(0);
  std::vector<std::int64_t> perm;
  for (std::size_t i = x.size(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
  perm = c.attributes().integers("perm", perm);
  Transposition t;
  std::vector<char> seen(x.size(), 0);
  Shape y;
  for (const std::int64_t given : perm) {
    const auto axis = index(normalise_axis(given, c.rank(0), "perm"));
    if (seen[axis]) throw InvalidModel(fmt::format("perm {} names axis {} twice", to_string(perm), axis));
    seen[axis] = 1;
    t.perm.push_back(axis);
    y.push_back(x[axis]);
  }
  if (y.size() != x.size()) throw InvalidModel(fmt::format("perm {} does not fit the operand's shape {}", to_string(perm), to_string(x)));
  c.set_params(std::move(t));
  c.set_output(0, c.dtype(0), y);
}

Kernel cpu_transpose(CpuContext& c) {
  const auto from = c.in[0].strides();
  std::vector<std::int64_t> permuted;
  for (const std::size_t axis : c.params<Transposition>().perm) permuted.push_back(from[axis]);
  return move_kernel("plain:transpose", c.out, {{0, 0, StridedCopy(c.out[0].shape, {c.in[0].dtype, permuted}, side_of(c.out[0]))}});
}

Rows rows_transpose(const RowContext& c) {
  const auto& perm = c.params<Transposition>().perm;
  return !perm.empty() && perm[0] == 0 ? rows_of_first(c) : Rows::mixed();
}

// ---- DepthToSpace, SpaceToDepth

struct Blocks {
  std::int64_t size;
  bool column_row_depth;  // CRD: channel = c * size^2 + row * size + column; DCR: channel = (row * size + column) * C + c
};

std::int64_t block_size(const InferContext& c) {
  c.expect_rank(0, 4, 4);
  const std::int64_t b = c.attributes().integer("blocksize");
  if (b < 1 || b > (1 << 15)) throw InvalidModel(fmt::format("blocksize {} is outside [1, 32768]", b));
  return b;
}

void infer_depth_to_space(InferContext& c) {
  const std::int64_t b = block_size(c);
  const Shape& x = c.shape(0);
  const std::string mode = c.attributes().text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") throw InvalidModel(fmt::format("mode must be DCR or CRD, is '{}'", mode));
  if (x[1] % (b * b) != 0) throw InvalidModel(fmt::format("{} channels are not a multiple of blocksize squared ({})", x[1], b * b));
  c.set_params(Blocks{b, mode == "CRD"});
  c.set_output(0, c.dtype(0), {x[0], x[1] / (b * b), x[2] * b, x[3] * b});
}

void infer_space_to_depth(InferContext& c) {
  const std::int64_t b = block_size(c);
  const Shape& x = c.shape(0);
  if (x[2] % b != 0 || x[3] % b != 0) throw InvalidModel(fmt::format("height and width of {} are not multiples of blocksize {}", to_string(x), b));
  c.set_params(Blocks{b, false});
  c.set_output(0, c.dtype(0), {x[0], x[1] * b * b, x[2] / b, x[3] / b});
}

// Both are the same copy over (n, c, y, row, x, column); `deep` has the channels, `wide` the pixels.
struct BlockStrides {
  Shape box;
  std::vector<std::int64_t> deep, wide;
};

BlockStrides block_strides(const TensorDesc& deep, const TensorDesc& wide, const Blocks& blocks) {
  const auto d = deep.strides(), w = wide.strides();
  const std::int64_t b = blocks.size, channels = wide.shape[1];
  const std::int64_t channel = blocks.column_row_depth ? b * b : 1, column = blocks.column_row_depth ? 1 : channels;
  return {{deep.shape[0], channels, deep.shape[2], b, deep.shape[3], b},
          {d[0], channel * d[1], d[2], b * column * d[1], d[3], column * d[1]},
          {w[0], w[1], b * w[2], w[2], b * w[3], w[3]}};
}

Kernel cpu_depth_to_space(CpuContext& c) {
  const auto s = block_strides(c.in[0], c.out[0], c.params<Blocks>());
  return move_kernel("plain:depth_to_space", c.out, {{0, 0, StridedCopy(s.box, {c.in[0].dtype, s.deep}, {c.out[0].dtype, s.wide})}});
}

Kernel cpu_space_to_depth(CpuContext& c) {
  const auto s = block_strides(c.out[0], c.in[0], c.params<Blocks>());
  return move_kernel("plain:space_to_depth", c.out, {{0, 0, StridedCopy(s.box, {c.in[0].dtype, s.wide}, {c.out[0].dtype, s.deep})}});
}

// ---- Expand, Tile

void infer_expand(InferContext& c) {
  c.expect_rank(1, 1, 1);
  const Shape target = c.host_ints(1);
  elements(target);
  c.set_output(0, c.dtype(0), broadcast(c.shape(0), target));
}

Kernel cpu_expand(CpuContext& c) {
  const auto strides = c.in[0].strides();
  std::vector<std::int64_t> from(c.out[0].shape.size(), 0);
  for (std::size_t i = strides.size(), o = from.size(); i-- > 0;) {
    --o;
    from[o] = c.in[0].shape[i] == 1 ? 0 : strides[i];
  }
  return move_kernel("plain:expand", c.out, {{0, 0, StridedCopy(c.out[0].shape, {c.in[0].dtype, from}, side_of(c.out[0]))}});
}

Rows rows_expand(const RowContext& c) { return c.output_shape().size() == c.input_shape(0).size() ? rows_of_first(c) : Rows::mixed(); }

void infer_tile(InferContext& c) {
  const auto repeats = c.host_ints(1);
  Shape y = c.shape(0);
  if (repeats.size() != y.size()) throw InvalidModel(fmt::format("repeats has {} values, the operand's shape is {}", repeats.size(), to_string(y)));
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (repeats[i] < 0) throw InvalidModel(fmt::format("repeats {} has a negative value", to_string(repeats)));
    const std::int64_t both[] = {y[i], repeats[i]};
    y[i] = elements(both);
  }
  c.set_output(0, c.dtype(0), y);
}

Kernel cpu_tile(CpuContext& c) {
  const Shape &x = c.in[0].shape, &y = c.out[0].shape;
  const auto from = c.in[0].strides(), to = c.out[0].strides();
  Shape box;
  std::vector<std::int64_t> box_from, box_to;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t repeats = x[i] == 0 ? 0 : y[i] / x[i];
    box.insert(box.end(), {repeats, x[i]});
    box_from.insert(box_from.end(), {0, from[i]});
    box_to.insert(box_to.end(), {repeats < 2 ? 0 : x[i] * to[i], to[i]});
  }
  return move_kernel("plain:tile", c.out, {{0, 0, StridedCopy(box, {c.in[0].dtype, box_from}, {c.out[0].dtype, box_to})}});
}

// ---- backward

void transpose_gradient(GradientContext& c) {
  const auto& perm = c.params<Transposition>().perm;
  std::vector<std::int64_t> inverse(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<std::int64_t>(i);
  c.set(0, c.emit("Transpose", {c.dy()}, attribute("perm", std::move(inverse))));
}

void depth_to_space_gradient(GradientContext& c) {
  const auto blocks = c.params<Blocks>();
  if (!blocks.column_row_depth) return c.set(0, c.emit("SpaceToDepth", {c.dy()}, attribute("blocksize", blocks.size)));
  const Shape x = c.shape(c.input(0));
  const std::int64_t b = blocks.size;
  const ValueId parts = c.reshape(c.dy(), {x[0], x[1] / (b * b), x[2], b, x[3], b});
  const ValueId moved = c.emit("Transpose", {parts}, attribute("perm", std::vector<std::int64_t>{0, 1, 3, 5, 2, 4}));
  c.set(0, c.reshape(moved, x));
}

void space_to_depth_gradient(GradientContext& c) { c.set(0, c.emit("DepthToSpace", {c.dy()}, attribute("blocksize", c.params<Blocks>().size))); }

void expand_gradient(GradientContext& c) { c.set_summed(0, c.dy()); }

void tile_gradient(GradientContext& c) {
  const Shape x = c.shape(c.input(0)), y = c.shape(c.output());
  Shape parts;
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t repeats = x[i] == 0 ? 0 : y[i] / x[i];
    if (repeats != 1) {
      axes.push_back(static_cast<std::int64_t>(parts.size()));
      parts.push_back(repeats);
    }
    parts.push_back(x[i]);
  }
  if (axes.empty()) return c.set(0, c.dy());
  c.set(0, c.reshape(c.emit("ReduceSum", {c.reshape(c.dy(), parts), c.ints(axes)}), x));
}

constexpr OpDef moving(OpDef op) {
  op.layout = LayoutRule::kAny;
  op.bf16 = Bf16Rule::kStore;
  return op;
}

}  // namespace

std::span<const OpDef> transpose_ops() {
  static const OpDef ops[] = {
      moving({.name = "Transpose", .infer = infer_transpose, .cpu = cpu_transpose, .rows = rows_transpose, .gradient = transpose_gradient}),
      moving({.name = "DepthToSpace",
              .infer = infer_depth_to_space,
              .cpu = cpu_depth_to_space,
              .rows = rows_of_first,
              .gradient = depth_to_space_gradient}),
      moving({.name = "SpaceToDepth",
              .infer = infer_space_to_depth,
              .cpu = cpu_space_to_depth,
              .rows = rows_of_first,
              .gradient = space_to_depth_gradient}),
      moving({.name = "Expand",
              .min_inputs = 2,
              .max_inputs = 2,
              .infer = infer_expand,
              .cpu = cpu_expand,
              .host_inputs = 2,
              .rows = rows_expand,
              .gradient = expand_gradient}),
      moving({.name = "Tile",
              .min_inputs = 2,
              .max_inputs = 2,
              .infer = infer_tile,
              .cpu = cpu_tile,
              .host_inputs = 2,
              .rows = rows_of_first,
              .gradient = tile_gradient}),
  };
  return ops;
}

}  // namespace tandem
