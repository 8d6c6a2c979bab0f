// Operators in plain double precision, written from the text of the ONNX standard (opset 24) with simple loops: what differential tests
// compare kernels with. Nothing here is shared with runtime/ops. Arguments are taken as valid.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/tensor.h"

namespace tandem::test::reference {

using Ints = std::vector<std::int64_t>;

// Row-major values. `size_of_terms` says for each element how large the terms were that were added to give it (sum of absolute values):
// rounding errors are relative to it, not to a sum that cancelled.
struct Array {
  Shape shape;
  std::vector<double> values, size_of_terms;

  Array() = default;
  explicit Array(Shape s);
  explicit Array(const Tensor& t);
  double& at(const Ints& index);
  double at(const Ints& index) const { return const_cast<Array*>(this)->at(index); }
  void set(const Ints& index, double value, double terms);
};

// Calls f with every index of `shape`, row-major.
void each(const Shape& shape, const std::function<void(const Ints&)>& f);

// Attributes of sliding windows, spatial dimensions only. Empty: ones (kernel: taken from the weights), no pads. pads: begins, then ends.
struct WindowSpec {
  Ints kernel, strides, dilations, pads;
  std::string auto_pad = "NOTSET";
  bool ceil = false;
};

// Fills in the defaults and resolves auto_pad for the given spatial sizes.
WindowSpec resolved(WindowSpec spec, const Ints& spatial);
Ints window_outputs(const WindowSpec& spec, const Ints& spatial);  // spec resolved

Array conv(const Array& x, const Array& w, const Array* bias, std::int64_t group, WindowSpec spec);
// output_shape empty: from pads and output_padding (which may be empty: zeros).
Array conv_transpose(const Array& x, const Array& w, const Array* bias, std::int64_t group, WindowSpec spec, Ints output_padding,
                     const Ints& output_shape);

// A window without any cell of the input gives NaN.
Array max_pool(const Array& x, WindowSpec spec);
Array average_pool(const Array& x, WindowSpec spec, bool count_include_pad);
Array lp_pool(const Array& x, WindowSpec spec, std::int64_t p);

Array batch_norm(const Array& x, const Array& scale, const Array& bias, const Array& mean, const Array& variance, double epsilon);
Array gemm(const Array& a, const Array& b, const Array* c, double alpha, double beta, bool trans_a, bool trans_b);
Array matmul(const Array& a, const Array& b);  // numpy's, ranks >= 2
Array softmax(const Array& x, std::int64_t axis, bool logarithm);

struct ResizeSpec {
  std::vector<double> scales;  // one for each dimension
  Ints sizes;                  // one for each dimension, or empty: floor(input * scale)
  std::string mode = "nearest", coordinates = "half_pixel", nearest_mode = "round_prefer_floor";
  double cubic_a = -0.75;
  bool exclude_outside = false;
};
Array resize(const Array& x, const ResizeSpec& spec);
// How far the sampled coordinates of nearest mode stay from a place where rounding would tip, places hit exactly not counted.
double distance_to_ties(const Shape& input, const ResizeSpec& spec);

}  // namespace tandem::test::reference
