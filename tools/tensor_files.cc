#include "tools/tensor_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "importer/tensor_proto.h"
#include "io/npy.h"
#include "runtime/base/error.h"

namespace tandem::cli {

Tensor read_tensor(const std::string& file) {
  if (file.ends_with(".npy")) return io::read_npy(file);
  if (file.ends_with(".pb")) return read_tensor_file(file).tensor;
  throw UsageError(fmt::format("expected a .npy or .pb file, found \"{}\"", file));
}

std::string difference(const Tensor& got, const Tensor& want, double rtol, double atol) {
  if (got.dtype() != want.dtype()) return fmt::format("type {} instead of {}", name_of(got.dtype()), name_of(want.dtype()));
  if (got.shape() != want.shape()) return fmt::format("shape {} instead of {}", to_string(got.shape()), to_string(want.shape()));
  const auto g = got.to_doubles(), w = want.to_doubles();
  std::size_t wrong = 0, first = 0;
  double worst = 0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (g[i] == w[i] || (std::isnan(g[i]) && std::isnan(w[i]))) continue;
    const double error = std::abs(g[i] - w[i]);
    if (error <= atol + rtol * std::abs(w[i])) continue;
    if (wrong++ == 0) first = i;
    worst = std::isnan(error) || std::isnan(worst) ? NAN : std::max(worst, error);
  }
  if (wrong == 0) return {};
  return fmt::format("{} of {} elements differ, first at {}: {} instead of {}, largest difference {}", wrong, g.size(), first, g[first], w[first],
                     worst);
}

std::vector<std::string> output_file_names(const Graph& graph) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const ValueId id : graph.outputs) {
    std::string base = graph.value(id).name;
    std::replace(base.begin(), base.end(), '/', '_');
    std::replace(base.begin(), base.end(), ':', '_');
    if (base == "." || base == "..") base = "_";
    std::string name = base;
    for (int n = 2; !taken.insert(name).second; ++n) name = fmt::format("{}_{}", base, n);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace tandem::cli
