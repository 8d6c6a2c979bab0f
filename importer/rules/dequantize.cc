// DequantizeLinear's output_dtype: half precision is float32 within a graph.
#include "importer/rules.h"
#include "runtime/base/dtype_onnx.h"

namespace tandem {

void rewrite_dequantize(NodeRewrite& c) {
  const std::int64_t half = c.attributes().integer("output_dtype", 0);
  if (half == dtype_to_onnx(DType::kF16) || half == dtype_to_onnx(DType::kBF16)) c.attributes().erase("output_dtype");
}

}  // namespace tandem
