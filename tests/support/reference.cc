#include "tests/support/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem::test::reference {

Array::Array(Shape s) : shape(std::move(s)) {
  values.assign(static_cast<std::size_t>(elements(shape)), 0.0);
  size_of_terms = values;
}

Array::Array(const Tensor& t) : shape(t.shape()), values(t.to_doubles()) {
  for (const double v : values) size_of_terms.push_back(std::abs(v));
}

namespace {

std::size_t offset(const Shape& shape, const Ints& index) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
  return static_cast<std::size_t>(at);
}

// Adds products and remembers how large they were.
struct Sum {
  double value = 0, terms = 0;
  void add(double v) {
    value += v;
    terms += std::abs(v);
  }
};

Ints spatial(const Array& a) { return {a.shape.begin() + 2, a.shape.end()}; }

Shape with_spatial(std::int64_t n, std::int64_t c, const Ints& sizes) {
  Shape s = {n, c};
  s.insert(s.end(), sizes.begin(), sizes.end());
  return s;
}

// Index of the cell that kernel position k of the window at `out` sees. False: it lies outside the input.
bool cell(const WindowSpec& spec, const Ints& sizes, const Ints& out, const Ints& k, Ints& in) {
  bool inside = true;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    in[d + 2] = out[d + 2] * spec.strides[d] - spec.pads[d] + k[d] * spec.dilations[d];
    inside = inside && in[d + 2] >= 0 && in[d + 2] < sizes[d];
  }
  return inside;
}

}  // namespace

double& Array::at(const Ints& index) { return values[offset(shape, index)]; }

void Array::set(const Ints& index, double value, double terms) {
  values[offset(shape, index)] = value;
  size_of_terms[offset(shape, index)] = terms;
}

void each(const Shape& shape, const std::function<void(const Ints&)>& f) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  Ints index(shape.size(), 0);
  while (true) {
    f(index);
    std::size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

WindowSpec resolved(WindowSpec spec, const Ints& sizes) {
  const std::size_t rank = sizes.size();
  if (spec.strides.empty()) spec.strides.assign(rank, 1);
  if (spec.dilations.empty()) spec.dilations.assign(rank, 1);
  if (spec.pads.empty() || spec.auto_pad != "NOTSET") spec.pads.assign(2 * rank, 0);
  if (spec.auto_pad.starts_with("SAME")) {
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t out = (sizes[d] + spec.strides[d] - 1) / spec.strides[d];
      const std::int64_t extent = (spec.kernel[d] - 1) * spec.dilations[d] + 1;
      const std::int64_t total = std::max<std::int64_t>(0, (out - 1) * spec.strides[d] + extent - sizes[d]);
      spec.pads[d] = spec.auto_pad == "SAME_UPPER" ? total / 2 : (total + 1) / 2;
      spec.pads[d + rank] = total - spec.pads[d];
    }
  }
  return spec;
}

Ints window_outputs(const WindowSpec& spec, const Ints& sizes) {
  Ints out;
  const std::size_t rank = sizes.size();
  for (std::size_t d = 0; d < rank; ++d) {
    const double extent = static_cast<double>((spec.kernel[d] - 1) * spec.dilations[d] + 1);
    const double room = static_cast<double>(sizes[d] + spec.pads[d] + spec.pads[d + rank]) - extent;
    const double steps = room / static_cast<double>(spec.strides[d]);
    auto n = static_cast<std::int64_t>(spec.ceil ? std::ceil(steps) : std::floor(steps)) + 1;
    // A window that would start in the padding at the end is ignored.
    if (spec.ceil && (n - 1) * spec.strides[d] >= sizes[d] + spec.pads[d]) --n;
    out.push_back(n);
  }
  return out;
}

Array conv(const Array& x, const Array& w, const Array* bias, std::int64_t group, WindowSpec spec) {
  spec.kernel = spatial(w);
  spec = resolved(spec, spatial(x));
  const std::int64_t filters = w.shape[0], per_group = filters / group, depth = w.shape[1];
  Array y(with_spatial(x.shape[0], filters, window_outputs(spec, spatial(x))));
  each(y.shape, [&](const Ints& out) {
    Sum sum;
    Ints in = out;
    each(spec.kernel, [&](const Ints& k) {
      if (!cell(spec, spatial(x), out, k, in)) return;
      Ints weight = with_spatial(out[1], 0, k);
      for (std::int64_t c = 0; c < depth; ++c) {
        in[1] = out[1] / per_group * depth + c;
        weight[1] = c;
        sum.add(x.at(in) * w.at(weight));
      }
    });
    if (bias) sum.add(bias->values[static_cast<std::size_t>(out[1])]);
    y.set(out, sum.value, sum.terms);
  });
  return y;
}

Array conv_transpose(const Array& x, const Array& w, const Array* bias, std::int64_t group, WindowSpec spec, Ints output_padding,
                     const Ints& output_shape) {
  const Ints sizes = spatial(x);
  const std::size_t rank = sizes.size();
  const bool same = spec.auto_pad.starts_with("SAME");
  spec.kernel = spatial(w);
  WindowSpec s = spec;
  if (same) s.auto_pad = "NOTSET";
  s = resolved(s, sizes);
  if (output_padding.empty()) output_padding.assign(rank, 0);
  Ints outputs;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t whole = s.strides[d] * (sizes[d] - 1) + output_padding[d] + (s.kernel[d] - 1) * s.dilations[d] + 1;
    if (!output_shape.empty() || same) {
      outputs.push_back(output_shape.empty() ? sizes[d] * s.strides[d] : output_shape[d]);
      const std::int64_t total = std::max<std::int64_t>(0, whole - outputs[d]);
      s.pads[d] = spec.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      s.pads[d + rank] = total - s.pads[d];
    } else {
      outputs.push_back(whole - s.pads[d] - s.pads[d + rank]);
    }
  }
  const std::int64_t per_group = w.shape[1], depth = x.shape[1] / group;
  Array y(with_spatial(x.shape[0], per_group * group, outputs));
  if (bias)
    each(y.shape,
         [&](const Ints& i) { y.set(i, bias->values[static_cast<std::size_t>(i[1])], std::abs(bias->values[static_cast<std::size_t>(i[1])])); });
  each(x.shape, [&](const Ints& in) {
    each(s.kernel, [&](const Ints& k) {
      Ints out = in;
      for (std::size_t d = 0; d < rank; ++d) {
        out[d + 2] = in[d + 2] * s.strides[d] - s.pads[d] + k[d] * s.dilations[d];
        if (out[d + 2] < 0 || out[d + 2] >= outputs[d]) return;
      }
      Ints weight = with_spatial(in[1], 0, k);
      for (std::int64_t f = 0; f < per_group; ++f) {
        out[1] = in[1] / depth * per_group + f;
        weight[1] = f;
        const double term = x.at(in) * w.at(weight);
        y.at(out) += term;
        y.size_of_terms[offset(y.shape, out)] += std::abs(term);
      }
    });
  });
  return y;
}

namespace {

// Folds the cells of each window. finish(accumulated, cells inside the input, cells inside input and padding).
Array pool(const Array& x, WindowSpec spec, double start, const std::function<double(double, double)>& fold,
           const std::function<double(double, double, double)>& finish) {
  const Ints sizes = spatial(x);
  const std::size_t rank = sizes.size();
  spec = resolved(spec, sizes);
  Array y(with_spatial(x.shape[0], x.shape[1], window_outputs(spec, sizes)));
  each(y.shape, [&](const Ints& out) {
    double value = start, terms = 0, inside = 0, padded = 0;
    Ints in = out;
    each(spec.kernel, [&](const Ints& k) {
      const bool is_cell = cell(spec, sizes, out, k, in);
      bool counts = true;
      for (std::size_t d = 0; d < rank; ++d) counts = counts && in[d + 2] < sizes[d] + spec.pads[d + rank];
      padded += counts;
      if (!is_cell) return;
      ++inside;
      value = fold(value, x.at(in));
      terms += std::abs(x.at(in));
    });
    const double result = inside == 0 ? std::nan("") : finish(value, inside, padded);
    y.set(out, result, std::max(std::abs(result), terms / std::max(inside, 1.0)));
  });
  return y;
}

}  // namespace

Array max_pool(const Array& x, WindowSpec spec) {
  return pool(
      x, std::move(spec), -std::numeric_limits<double>::infinity(), [](double a, double b) { return std::max(a, b); },
      [](double v, double, double) { return v; });
}

Array average_pool(const Array& x, WindowSpec spec, bool count_include_pad) {
  return pool(
      x, std::move(spec), 0, [](double a, double b) { return a + b; },
      [&](double v, double inside, double padded) { return v / (count_include_pad ? padded : inside); });
}

Array lp_pool(const Array& x, WindowSpec spec, std::int64_t p) {
  const auto power = static_cast<double>(p);
  return pool(
      x, std::move(spec), 0, [&](double a, double b) { return a + std::pow(std::abs(b), power); },
      [&](double v, double, double) { return std::pow(v, 1 / power); });
}

Array batch_norm(const Array& x, const Array& scale, const Array& bias, const Array& mean, const Array& variance, double epsilon) {
  Array y(x.shape);
  each(x.shape, [&](const Ints& i) {
    const std::size_t c = x.shape.size() > 1 ? static_cast<std::size_t>(i[1]) : 0;
    const double factor = scale.values[c] / std::sqrt(variance.values[c] + epsilon);
    Sum sum;
    sum.add(x.at(i) * factor);
    sum.add(-mean.values[c] * factor);
    sum.add(bias.values[c]);
    y.set(i, sum.value, sum.terms);
  });
  return y;
}

namespace {

// The element of an array that is broadcast (numpy's rule) to an index of a higher or equal rank.
double broadcast_at(const Array& a, const Ints& index) {
  Ints own(a.shape.size());
  for (std::size_t d = 0; d < own.size(); ++d) own[d] = a.shape[d] == 1 ? 0 : index[index.size() - own.size() + d];
  return a.at(own);
}

}  // namespace

Array gemm(const Array& a, const Array& b, const Array* c, double alpha, double beta, bool trans_a, bool trans_b) {
  const std::int64_t m = a.shape[trans_a ? 1 : 0], depth = a.shape[trans_a ? 0 : 1], n = b.shape[trans_b ? 0 : 1];
  Array y(Shape{m, n});
  each(y.shape, [&](const Ints& i) {
    Sum sum;
    for (std::int64_t k = 0; k < depth; ++k) {
      sum.add(alpha * a.at(trans_a ? Ints{k, i[0]} : Ints{i[0], k}) * b.at(trans_b ? Ints{i[1], k} : Ints{k, i[1]}));
    }
    if (c) sum.add(beta * broadcast_at(*c, i));
    y.set(i, sum.value, sum.terms);
  });
  return y;
}

Array matmul(const Array& a, const Array& b) {
  const std::size_t ra = a.shape.size(), rb = b.shape.size();
  Shape shape = broadcast(std::span(a.shape).first(ra - 2), std::span(b.shape).first(rb - 2));
  shape.push_back(a.shape[ra - 2]);
  shape.push_back(b.shape[rb - 1]);
  Array y(shape);
  each(y.shape, [&](const Ints& i) {
    Sum sum;
    Ints left = i, right = i;
    for (std::int64_t k = 0; k < a.shape[ra - 1]; ++k) {
      left.back() = k;
      right[right.size() - 2] = k;
      sum.add(broadcast_at(a, left) * broadcast_at(b, right));
    }
    y.set(i, sum.value, sum.terms);
  });
  return y;
}

Array softmax(const Array& x, std::int64_t axis, bool logarithm) {
  Array y(x.shape);
  const auto d = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(x.shape.size()) : axis);
  each(x.shape, [&](const Ints& i) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    Ints at = i;
    for (at[d] = 0; at[d] < x.shape[d]; ++at[d]) largest = std::max(largest, x.at(at));
    for (at[d] = 0; at[d] < x.shape[d]; ++at[d]) sum += std::exp(x.at(at) - largest);
    const double v = x.at(i) - largest;
    const double result = logarithm ? v - std::log(sum) : std::exp(v) / sum;
    y.set(i, result, logarithm ? std::abs(v) + std::abs(std::log(sum)) : result);
  });
  return y;
}

}  // namespace tandem::test::reference
