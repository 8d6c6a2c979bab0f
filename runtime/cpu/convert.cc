#include "runtime/cpu/convert.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace tandem {
namespace {

template <class To, class From>
To saturate(From v) {
  using Limits = std::numeric_limits<To>;
  constexpr auto kEnd = static_cast<From>(Limits::max() / 2 + 1) * 2;  // the first value that does not fit
  if (v >= kEnd) return Limits::max();
  if constexpr (std::is_signed_v<To>) {
    if (v < static_cast<From>(Limits::min())) return Limits::min();
  } else {
    if (v <= From{-1}) return 0;
  }
  return std::isnan(v) ? To{0} : static_cast<To>(v);
}

template <class To, class From>
auto convert_one(From v) {
  if constexpr (std::is_same_v<To, bool>) {
    return static_cast<std::uint8_t>(v != 0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return saturate<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

template <class From, class To>
void convert(const void* from, void* to, std::int64_t n) {
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<decltype(convert_one<To>(From{}))*>(to);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = convert_one<To>(x[i]);
}

}  // namespace

ConvertFn converter(DType from, DType to) {
  return dispatch(from, [&](auto f) -> ConvertFn {
    return dispatch(to, [&](auto t) -> ConvertFn {
      using From = decltype(f);
      using To = decltype(t);
      if constexpr (std::is_arithmetic_v<From> && !std::is_same_v<From, bool> && std::is_arithmetic_v<To>)
        return convert<From, To>;
      else
        throw std::logic_error(fmt::format("no conversion of {} to {}", name_of(from), name_of(to)));
    });
  });
}

}  // namespace tandem
