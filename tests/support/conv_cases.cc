#include "tests/support/conv_cases.h"

#include <fmt/format.h>

namespace tandem::test {
namespace {

ConvCase completed(ConvCase c) {
  const std::size_t n = c.x.size() - 2;
  if (c.strides.empty()) c.strides.assign(n, 1);
  if (c.dilations.empty()) c.dilations.assign(n, 1);
  if (c.begin.empty()) c.begin.assign(n, 0);
  if (c.end.empty()) c.end.assign(n, 0);
  return c;
}

std::vector<std::int64_t> unravel(std::int64_t at, std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> r(dims.size());
  for (std::size_t d = dims.size(); d-- > 0;) {
    r[d] = at % dims[d];
    at /= dims[d];
  }
  return r;
}

std::int64_t ravel(std::int64_t a, std::int64_t b, const std::vector<std::int64_t>& s, const Shape& shape) {
  std::int64_t at = a * shape[1] + b;
  for (std::size_t d = 0; d < s.size(); ++d) at = at * shape[d + 2] + s[d];
  return at;
}

// Adds every product of x and w to the output it belongs to, visiting inputs for the transposed form and outputs otherwise.
Tensor convolve(const ConvCase& given, const Tensor& xt, const Tensor& wt, const Tensor& bt, const std::vector<std::int64_t>& out, bool transposed) {
  const ConvCase c = completed(given);
  const auto x = xt.to_doubles(), w = wt.to_doubles();
  const std::int64_t outputs = transposed ? c.w[1] * c.group : c.w[0], in_group = c.x[1] / c.group, out_group = outputs / c.group;
  Shape ys{c.x[0], outputs};
  ys.insert(ys.end(), out.begin(), out.end());
  std::vector<double> y(static_cast<std::size_t>(elements(ys)));
  const std::vector<std::int64_t> kernel(c.w.begin() + 2, c.w.end());
  const std::vector<std::int64_t> in(c.x.begin() + 2, c.x.end());
  const auto& walked = transposed ? in : out;
  const auto& other = transposed ? out : in;
  for (std::int64_t n = 0; n < c.x[0]; ++n)
    for (std::int64_t p = 0; p < elements(walked); ++p)
      for (std::int64_t t = 0; t < elements(kernel); ++t) {
        const auto at = unravel(p, walked), tap = unravel(t, kernel);
        auto to = at;
        bool inside = true;
        for (std::size_t d = 0; d < at.size(); ++d) {
          to[d] = at[d] * c.strides[d] - c.begin[d] + tap[d] * c.dilations[d];
          inside = inside && to[d] >= 0 && to[d] < other[d];
        }
        if (!inside) continue;
        for (std::int64_t o = 0; o < outputs; ++o)
          for (std::int64_t i = 0; i < in_group; ++i) {
            const std::int64_t g = o / out_group, channel = g * in_group + i;
            const auto& xi = transposed ? at : to;
            const auto& yi = transposed ? to : at;
            const double weight = transposed ? w[static_cast<std::size_t>(ravel(channel, o % out_group, tap, c.w))]
                                             : w[static_cast<std::size_t>(ravel(o, i, tap, c.w))];
            y[static_cast<std::size_t>(ravel(n, o, yi, ys))] += x[static_cast<std::size_t>(ravel(n, channel, xi, c.x))] * weight;
          }
      }
  if (bt) {
    const auto b = bt.to_doubles();
    const std::int64_t pixels = elements(out);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += b[static_cast<std::size_t>(static_cast<std::int64_t>(i) / pixels % outputs)];
  }
  return Tensor::of<double>(ys, std::span<const double>(y));
}

}  // namespace

std::string to_string(const ConvCase& given) {
  using tandem::to_string;
  const ConvCase c = completed(given);
  return fmt::format("x {} w {} strides {} dilations {} pads {} {} group {}", to_string(c.x), to_string(c.w), to_string(c.strides),
                     to_string(c.dilations), to_string(c.begin), to_string(c.end), c.group);
}

Tensor reference_conv(const ConvCase& given, const Tensor& x, const Tensor& w, const Tensor& b) {
  const ConvCase c = completed(given);
  std::vector<std::int64_t> out;
  for (std::size_t d = 0; d + 2 < c.x.size(); ++d) {
    out.push_back((c.x[d + 2] + c.begin[d] + c.end[d] - (c.w[d + 2] - 1) * c.dilations[d] - 1) / c.strides[d] + 1);
  }
  return convolve(c, x, w, b, out, false);
}

Tensor reference_conv_transpose(const ConvCase& c, const Tensor& x, const Tensor& w, const Tensor& b, const std::vector<std::int64_t>& out) {
  return convolve(c, x, w, b, out, true);
}

Attributes conv_attributes(const ConvCase& given) {
  const ConvCase c = completed(given);
  std::vector<std::int64_t> pads = c.begin;
  pads.insert(pads.end(), c.end.begin(), c.end.end());
  Attributes a;
  a.set("strides", c.strides);
  a.set("dilations", c.dilations);
  a.set("pads", pads);
  a.set("group", c.group);
  return a;
}

Tensor to_type(DType type, const Tensor& t) {
  const auto v = t.to_doubles();
  Tensor r(type, t.shape());
  dispatch(type, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, BFloat16> || std::is_floating_point_v<T>) {
      auto to = r.as_mutable<T>();
      for (std::size_t i = 0; i < v.size(); ++i)
        to[i] = static_cast<T>(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(v[i]));
    }
  });
  return r;
}

Tensor add_f64(const Tensor& a, const Tensor& b) {
  auto x = a.to_doubles();
  const auto y = b.to_doubles();
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  return Tensor::of<double>(a.shape(), std::span<const double>(x));
}

}  // namespace tandem::test
