// Reshape, Flatten, Squeeze, Unsqueeze: other shapes of the same bytes.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/graph/gradient.h"
#include "runtime/ops/families.h"

namespace tandem {
namespace {

// ONNX Reshape: 0 copies the operand's dimension (allowzero = 0), one -1 is what is left. Copied dimensions take no part in the
// division, so that -1 is defined beside a copied empty batch.
Shape reshaped(const Shape& from, Shape to, bool allow_zero) {
  std::int64_t left = 1, taken = 1;
  std::size_t free_at = to.size();
  std::vector<char> copied(from.size(), 0);
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == -1) {
      if (free_at != to.size()) throw InvalidModel(fmt::format("shape {} has more than one -1", to_string(to)));
      free_at = i;
    } else if (to[i] == 0 && !allow_zero) {
      if (i >= from.size())
        throw InvalidModel(fmt::format("shape {} copies dimension {}, the operand has shape {}", to_string(to), i, to_string(from)));
      to[i] = from[i];
      copied[i] = 1;
    } else if (to[i] < 0) {
      throw InvalidModel(fmt::format("shape {} has a negative dimension", to_string(to)));
    }
  }
  if (free_at != to.size()) {
    Shape of_operand, of_target;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (!copied[i]) of_operand.push_back(from[i]);
    }
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (i != free_at && (i >= copied.size() || !copied[i])) of_target.push_back(to[i]);
    }
    left = elements(of_operand);
    taken = elements(of_target);
    if (taken == 0 || left % taken != 0)
      throw InvalidModel(fmt::format("shape {} does not fit the operand's {} ({} elements over {})", to_string(to), to_string(from), left, taken));
    to[free_at] = left / taken;
  }
  if (elements(to) != elements(from)) {
    throw InvalidModel(
        fmt::format("cannot reshape {} ({} elements) to {} ({} elements)", to_string(from), elements(from), to_string(to), elements(to)));
  }
  return to;
}

void infer_reshape(InferContext& c) {
  c.expect_rank(1, 1, 1);
  c.set_output(0, c.dtype(0), reshaped(c.shape(0), c.host_ints(1), c.attributes().integer("allowzero", 0) != 0));
}

void infer_flatten(InferContext& c) {
  const Shape& x = c.shape(0);
  const auto rank = static_cast<std::int64_t>(x.size());
  const std::int64_t given = c.attributes().integer("axis", 1), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) throw InvalidModel(fmt::format("axis {} is outside [{}, {}]", given, -rank, rank));
  const std::span<const std::int64_t> dims(x);
  const auto at = static_cast<std::size_t>(axis);
  c.set_output(0, c.dtype(0), {elements(dims.first(at)), elements(dims.subspan(at))});
}

void infer_squeeze(InferContext& c) {
  const Shape& x = c.shape(0);
  std::vector<char> drop(x.size(), 0);
  if (c.has_input(1)) {
    for (const std::int64_t given : c.host_ints(1)) {
      const auto axis = static_cast<std::size_t>(normalise_axis(given, c.rank(0)));
      if (x[axis] != 1) throw InvalidModel(fmt::format("axis {} of {} is not 1 and cannot be squeezed", given, to_string(x)));
      drop[axis] = 1;
    }
  } else {
    for (std::size_t i = 0; i < x.size(); ++i) drop[i] = x[i] == 1;
  }
  Shape y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!drop[i]) y.push_back(x[i]);
  }
  c.set_output(0, c.dtype(0), y);
}

void infer_unsqueeze(InferContext& c) {
  const Shape& x = c.shape(0);
  const auto axes = c.host_ints(1);
  const std::int64_t rank = c.rank(0) + static_cast<std::int64_t>(axes.size());
  Shape y(static_cast<std::size_t>(rank), -1);
  for (const std::int64_t given : axes) {
    std::int64_t& dim = y[static_cast<std::size_t>(normalise_axis(given, rank))];
    if (dim == 1) throw InvalidModel(fmt::format("axis {} is given twice", given));
    dim = 1;
  }
  auto next = x.begin();
  for (std::int64_t& dim : y) {
    if (dim == -1) dim = *next++;
  }
  c.set_output(0, c.dtype(0), y);
}

void gradient(GradientContext& c) { c.set(0, c.reshape(c.dy(), c.shape(c.input(0)))); }

constexpr OpDef reshaping(OpDef op) {
  op.rows = rows_contiguous;
  op.gradient = gradient;
  op.view = true;
  return op;
}

}  // namespace

std::span<const OpDef> reshape_ops() {
  static const OpDef ops[] = {
      reshaping({.name = "Reshape", .min_inputs = 2, .max_inputs = 2, .infer = infer_reshape, .host_inputs = 2}),
      reshaping({.name = "Flatten", .infer = infer_flatten}),
      reshaping({.name = "Squeeze", .min_inputs = 1, .max_inputs = 2, .infer = infer_squeeze, .host_inputs = 2}),
      reshaping({.name = "Unsqueeze", .min_inputs = 2, .max_inputs = 2, .infer = infer_unsqueeze, .host_inputs = 2}),
  };
  return ops;
}

}  // namespace tandem
