#include "runtime/ops/window.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/shape.h"

namespace tandem {
namespace {

constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;

AutoPad read_auto_pad(const Attributes& attributes) {
  const std::string text = attributes.text("auto_pad", "NOTSET");
  if (text == "NOTSET" || text.empty()) return AutoPad::kNotSet;
  if (text == "SAME_UPPER") return AutoPad::kSameUpper;
  if (text == "SAME_LOWER") return AutoPad::kSameLower;
  if (text == "VALID") return AutoPad::kValid;
  throw InvalidModel(fmt::format("attribute auto_pad must be NOTSET, SAME_UPPER, SAME_LOWER or VALID, is \"{}\"", text));
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

}  // namespace

std::vector<std::int64_t> spatial_integers(const Attributes& attributes, const char* name, std::size_t count, std::int64_t otherwise,
                                           std::int64_t least) {
  std::vector<std::int64_t> values = attributes.integers(name, {});
  if (values.empty()) values.assign(count, otherwise);
  if (values.size() != count) throw InvalidModel(fmt::format("attribute {} must have {} entries, has {}", name, count, values.size()));
  for (const std::int64_t v : values) {
    if (v < least || v > kMost)
      throw InvalidModel(fmt::format("attribute {} must be at least {} and below 2^31, is {}", name, least, to_string(values)));
  }
  return values;
}

WindowAttributes read_window(const Attributes& attributes, std::size_t rank, std::span<const std::int64_t> kernel) {
  WindowAttributes w;
  if (kernel.empty() || !attributes.integers("kernel_shape", {}).empty()) {
    if (attributes.integers("kernel_shape", {}).empty()) throw InvalidModel("attribute kernel_shape is required and missing");
    w.kernel = spatial_integers(attributes, "kernel_shape", rank, 1, 1);
  }
  if (!kernel.empty()) {
    if (kernel.size() != rank) throw InvalidModel(fmt::format("the kernel must have {} spatial dimensions, is {}", rank, to_string(kernel)));
    if (w.kernel.empty()) w.kernel.assign(kernel.begin(), kernel.end());
    if (!std::equal(kernel.begin(), kernel.end(), w.kernel.begin())) {
      throw InvalidModel(fmt::format("attribute kernel_shape is {}, the weights have {}", to_string(w.kernel), to_string(kernel)));
    }
    if (std::any_of(kernel.begin(), kernel.end(), [](std::int64_t k) { return k < 1 || k > kMost; })) {
      throw InvalidModel(fmt::format("the kernel's dimensions must be at least 1, are {}", to_string(kernel)));
    }
  }
  w.strides = spatial_integers(attributes, "strides", rank, 1, 1);
  w.dilations = spatial_integers(attributes, "dilations", rank, 1, 1);
  w.auto_pad = read_auto_pad(attributes);
  w.ceil = kernel.empty() && attributes.integer("ceil_mode", 0) != 0;
  w.begin.assign(rank, 0);
  w.end.assign(rank, 0);
  if (w.auto_pad == AutoPad::kNotSet) {
    const auto pads = spatial_integers(attributes, "pads", 2 * rank, 0, 0);
    w.begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
    w.end.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  }
  return w;
}

Window resolve_window(const WindowAttributes& w, std::span<const std::int64_t> input) {
  if (input.size() != w.kernel.size())
    throw InvalidModel(fmt::format("the input must have {} spatial dimensions, has {}", w.kernel.size(), input.size()));
  Window r{{input.begin(), input.end()}, {}, w.kernel, w.strides, w.dilations, w.begin, w.end};
  for (std::size_t d = 0; d < input.size(); ++d) {
    const std::int64_t n = input[d], s = w.strides[d], extent = r.extent(d);
    if (w.auto_pad == AutoPad::kSameUpper || w.auto_pad == AutoPad::kSameLower) {
      const std::int64_t out = ceil_div(n, s), total = std::max<std::int64_t>(0, (out - 1) * s + extent - n);
      r.begin[d] = w.auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
      r.end[d] = total - r.begin[d];
      r.output.push_back(out);
      continue;
    }
    const std::int64_t slack = n + r.begin[d] + r.end[d] - extent;
    if (slack < 0) {
      throw InvalidModel(fmt::format("the kernel spans {} cells of spatial dimension {}, the padded input has {}", extent, d, slack + extent));
    }
    std::int64_t out = (w.ceil ? ceil_div(slack, s) : slack / s) + 1;
    if (w.ceil && (out - 1) * s >= n + r.begin[d]) --out;
    r.output.push_back(out);
  }
  return r;
}

Window3 three_dimensions(const Window& w) {
  Window3 all{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}};
  for (std::size_t i = 0, to = 3 - w.rank(); i < w.rank(); ++i, ++to) {
    all.in[to] = w.input[i];
    all.out[to] = w.output[i];
    all.kernel[to] = w.kernel[i];
    all.strides[to] = w.strides[i];
    all.dilations[to] = w.dilations[i];
    all.begin[to] = w.begin[i];
  }
  return all;
}

std::int64_t Window::taps() const { return elements(kernel); }

Window::Reach Window::reach(std::size_t d, std::int64_t at) const {
  Reach r;
  r.start = at * strides[d] - begin[d];
  r.first = r.start < 0 ? std::min(kernel[d], ceil_div(-r.start, dilations[d])) : 0;
  r.last = r.start >= input[d] ? 0 : std::min(kernel[d], (input[d] - 1 - r.start) / dilations[d] + 1);
  r.last = std::max(r.last, r.first);
  return r;
}

std::int64_t Window::padded_count(std::size_t d, std::int64_t at) const {
  const std::int64_t start = at * strides[d] - begin[d], padded = input[d] + end[d];
  return start >= padded ? 0 : std::min(kernel[d], (padded - 1 - start) / dilations[d] + 1);
}

}  // namespace tandem
