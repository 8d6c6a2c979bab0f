// Convolution problems for tests, and their answer in double precision straight from ONNX's text.
#pragma once

#include <string>
#include <vector>

#include "runtime/cpu/activation.h"
#include "tests/support/node_test.h"

namespace tandem::test {

struct ConvCase {
  Shape x, w;                                                // logical order; w as Conv or ConvTranspose wants it
  std::vector<std::int64_t> strides, dilations, begin, end;  // empty: 1, 1, 0, 0
  std::int64_t group = 1;
};
std::string to_string(const ConvCase&);

// The answer in f64. b: may be empty. `out`: spatial output sizes of the transposed form.
Tensor reference_conv(const ConvCase&, const Tensor& x, const Tensor& w, const Tensor& b);
Tensor reference_conv_transpose(const ConvCase&, const Tensor& x, const Tensor& w, const Tensor& b, const std::vector<std::int64_t>& out);

// Sets strides, dilations, pads and group.
Attributes conv_attributes(const ConvCase&);
// The same values in another float type (f32, bf16, f64).
Tensor to_type(DType, const Tensor&);
// f(x) per element, in f64.
template <class F>
Tensor map_f64(const Tensor& t, F&& f) {
  std::vector<double> v = t.to_doubles();
  for (double& x : v) x = f(x);
  return Tensor::of<double>(t.shape(), std::span<const double>(v));
}
Tensor add_f64(const Tensor& a, const Tensor& b);

}  // namespace tandem::test
