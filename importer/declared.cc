#include "importer/declared.h"

#include <fmt/format.h>

#include "importer/limits.h"
#include "importer/tensor_wire.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem {

Declared read_declared(const onnx::ValueInfoProto& info, const char* what) {
  Declared declared;
  if (!info.has_type()) return declared;
  const auto& type = info.type();
  if (type.value_case() == onnx::TypeProto::VALUE_NOT_SET) return declared;
  return with_context([&] { return fmt::format("graph {} {}", what, quote(info.name())); },
                      [&] {
                        if (!type.has_tensor_type()) throw Unsupported("only tensors are supported, no sequences, maps, optionals or sparse tensors");
                        if (type.tensor_type().elem_type() != 0) declared.dtype = dtype_from_onnx(type.tensor_type().elem_type());
                        if (!type.tensor_type().has_shape()) return declared;
                        const auto& shape = type.tensor_type().shape();
                        if (shape.dim_size() > static_cast<int>(limits::kRank))
                          throw InvalidModel(fmt::format("has more than {} dimensions", limits::kRank));
                        declared.shape_known = true;
                        for (const auto& dim : shape.dim()) {
                          const std::int64_t size = dim.has_dim_value() ? dim.dim_value() : -1;
                          if (size > std::int64_t{1} << 40) throw InvalidModel(fmt::format("has a dimension of {}", size));
                          declared.shape.push_back(size > 0 ? size : -1);
                          declared.symbols.push_back(dim.has_dim_param() ? dim.dim_param().substr(0, 200) : std::string());
                        }
                        return declared;
                      });
}

}  // namespace tandem
