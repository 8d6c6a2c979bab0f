// Training runs of other programs in tests/data/training: files, batches and comparison.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/hdf5.h"
#include "runtime/base/tensor.h"

namespace tandem::test {

// Path of a file in tests/data/training.
std::string training_data(const std::string& name);

// One run: a file, or a group of one, with its settings (JSON).
class RecordedRun {
 public:
  explicit RecordedRun(const std::string& file, const std::string& group = "");
  std::vector<double> numbers(const std::string& path) const { return node_.need(path).read().to_doubles(); }
  const io::H5Node& node() const { return node_; }
  const nlohmann::json& settings() const { return settings_; }

 private:
  io::H5Node node_;
  nlohmann::json settings_;
};

// NHWC -> NCHW.
Tensor channels_first(const Tensor&);
Tensor rows(const Tensor&, std::int64_t first, std::int64_t count);

// Every array of `found` but those in "zero_gradient_weights" stands in `group` of the run, within `tolerance`; ten times its own figure for one in
// "own_strays".
void expect_arrays(const RecordedRun& run, const std::string& group, const std::map<std::string, Tensor>& found, double tolerance);

}  // namespace tandem::test
