#include "tests/support/recorded_runs.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tandem::test {

std::string training_data(const std::string& name) { return TANDEM_SOURCE_DIR "/tests/data/training/" + name; }

RecordedRun::RecordedRun(const std::string& file, const std::string& group)
    : node_(group.empty() ? io::H5File(training_data(file)).root() : io::H5File(training_data(file)).root().need(group)),
      settings_(nlohmann::json::parse(node_.text("settings").value())) {}

Tensor channels_first(const Tensor& x) {
  const Shape s = x.shape();
  Tensor out(DType::kF32, {s[0], s[3], s[1], s[2]});
  const auto from = x.as<float>();
  const auto to = out.as_mutable<float>();
  const std::int64_t pixels = s[1] * s[2];
  for (std::int64_t n = 0; n < s[0]; ++n)
    for (std::int64_t p = 0; p < pixels; ++p)
      for (std::int64_t c = 0; c < s[3]; ++c)
        to[static_cast<std::size_t>((n * s[3] + c) * pixels + p)] = from[static_cast<std::size_t>((n * pixels + p) * s[3] + c)];
  return out;
}

Tensor rows(const Tensor& t, std::int64_t first, std::int64_t count) {
  Shape shape = t.shape();
  const std::size_t row = t.bytes() / static_cast<std::size_t>(shape[0]);
  shape[0] = count;
  Tensor out(t.dtype(), shape);
  std::memcpy(out.mutable_data(), static_cast<const std::byte*>(t.data()) + static_cast<std::size_t>(first) * row,
              row * static_cast<std::size_t>(count));
  return out;
}

void expect_arrays(const RecordedRun& run, const std::string& group, const std::map<std::string, Tensor>& found, double tolerance) {
  const nlohmann::json none = nlohmann::json::object();
  const nlohmann::json zero = run.settings().value("zero_gradient_weights", none), own = run.settings().value("own_strays", none);
  std::size_t compared = 0;
  for (const auto& [name, values] : found) {
    if (zero.contains(name.substr(name.find_first_of('/') + 1)) || zero.contains(name)) continue;
    const auto node = run.node().find(group + "/" + name);
    ASSERT_TRUE(node) << group << "/" << name;
    const auto want = node->read().to_doubles(), got = values.to_doubles();
    ASSERT_EQ(want.size(), got.size()) << name;
    const double most = own.contains(name) ? 10 * own[name].get<double>() : tolerance;
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], most) << group << "/" << name << " element " << i;
    ++compared;
  }
  EXPECT_GE(compared, 7u) << group;
}

}  // namespace tandem::test
