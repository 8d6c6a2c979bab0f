#include "runtime/base/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace tandem {

std::int64_t elements(std::span<const std::int64_t> dims) {
  std::int64_t n = 1;
  for (const std::int64_t d : dims) {
    if (d < 0) throw InvalidModel(fmt::format("shape {} has a dimension that is not known or negative", to_string(dims)));
    if (__builtin_mul_overflow(n, d, &n) || n > (std::int64_t{1} << 62)) {
      throw InvalidModel(fmt::format("shape {} has more elements than fit in memory", to_string(dims)));
    }
  }
  return n;
}

std::string to_string(std::span<const std::int64_t> dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> strides(dims.size());
  std::int64_t step = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = step;
    step *= dims[i];
  }
  return strides;
}

Shape broadcast(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  Shape out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {  // i counts from the last dimension
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) throw InvalidModel(fmt::format("shapes {} and {} do not broadcast", to_string(a), to_string(b)));
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

std::int64_t normalise_axis(std::int64_t axis, std::int64_t rank, const char* what) {
  if (axis < -rank || axis >= rank) throw InvalidModel(fmt::format("{} {} is outside [{}, {})", what, axis, -rank, rank));
  return axis < 0 ? axis + rank : axis;
}

}  // namespace tandem
