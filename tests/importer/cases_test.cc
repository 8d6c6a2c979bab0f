// The smallest inputs that show known faults of other importers and runtimes (tests/data/cases), on one and three devices, with and without
// optimising passes. manifest.json holds the right answers, which are none of ours: ONNX Runtime's, the standard's, or arithmetic's.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "importer/importer.h"
#include "runtime/ops/op_table.h"
#include "tests/support/files.h"
#include "tests/support/subprocess.h"
#include "tools/tandem.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kCases = fs::path(TANDEM_SOURCE_DIR) / "tests" / "data" / "cases";

// The manifest writes NaN and infinities as bare words; JSON knows them as strings only.
json read_manifest() {
  std::ostringstream text;
  text << std::ifstream(kCases / "manifest.json").rdbuf();
  std::string s = text.str();
  for (const auto& [bare, quoted] :
       std::vector<std::pair<std::string, std::string>>{{"NaN", "\"nan\""}, {"-Infinity", "\"-inf\""}, {"Infinity", "\"inf\""}}) {
    for (std::size_t at = s.find(bare); at != std::string::npos; at = s.find(bare, at + quoted.size())) {
      if (at == 0 || s[at - 1] == '"') continue;
      s.replace(at, bare.size(), quoted);
    }
  }
  return json::parse(s);
}

double number(const json& j) {
  if (j.is_number()) return j.get<double>();
  const std::string s = j.get<std::string>();
  return s == "nan" ? std::nan("") : s == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

Tensor input_of(const json& j) {
  std::vector<float> values;
  for (const json& v : j.at("data")) values.push_back(static_cast<float>(number(v)));
  EXPECT_EQ(j.at("type"), "float32");
  return Tensor::of<float>(j.at("dims").get<Shape>(), std::span<const float>(values));
}

// The folder as the cases want it: the links, the pipe and the device that external data name are made here.
void make_folder(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(kCases)) fs::copy(entry.path(), folder / entry.path().filename());
  fs::create_symlink("w.bin", folder / "link.bin");
  fs::create_directory(folder / "elsewhere");
  fs::copy(kCases / "w.bin", folder / "elsewhere" / "secret.bin");
  fs::create_directory_symlink("elsewhere", folder / "dirlink");
  fs::create_hard_link(folder / "elsewhere" / "secret.bin", folder / "hard.bin");
  ASSERT_EQ(::mkfifo((folder / "fifo.bin").c_str(), 0600), 0);
}

std::vector<Tensor> run(const fs::path& file, const json& inputs, bool passes, int devices) {
  RunOptions options;
  options.passes = passes;
  options.devices = cpu_devices(devices);
  options.threads = 2;
  const Predictor predictor(Model::from_file(file), options);
  std::vector<Tensor> given;
  const Graph& graph = predictor.model().graph();
  for (const ValueId id : graph.inputs) given.push_back(input_of(inputs.at(graph.value(id).name)));
  return predictor.run(given);
}

void compare(const json& want, const std::vector<Tensor>& got, const json& names) {
  for (std::size_t k = 0; k < got.size(); ++k) {
    const auto expected = want.find(names.at(k).get<std::string>());
    if (expected == want.end() || expected->is_null()) continue;
    const std::vector<double> values = got[k].to_doubles();
    ASSERT_EQ(values.size(), expected->size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double w = number((*expected)[i]);
      if (std::isnan(w)) {
        ASSERT_TRUE(std::isnan(values[i])) << "element " << i;
      } else {
        ASSERT_NEAR(values[i], w, 1e-4 + 1e-4 * std::abs(w)) << "element " << i;
      }
    }
  }
  if (want.contains("dims")) {
    ASSERT_EQ(got.at(0).shape(), want.at("dims").get<Shape>());
  }
}

void check(const json& c, const fs::path& file, bool passes, int devices) {
  const json& expect = c.at("expect");
  const bool open = expect.is_null() || (expect.is_object() && expect.contains("y") && expect.at("y").is_null());
  try {
    const auto got = run(file, c.at("inputs"), passes, devices);
    ASSERT_NE(expect, "reject") << "was not refused";
    if (!open) compare(expect, got, c.at("outputs"));
  } catch (const Error& e) {
    ASSERT_TRUE(open || expect == "reject") << e.what();
    ASSERT_GT(std::string(e.what()).size(), 20u) << e.what();
  }
}

TEST(Cases, EveryOneOnOneAndThreeDevicesWithAndWithoutPasses) {
  const TemporaryFolder folder;
  make_folder(folder.path());
  std::size_t count = 0;
  for (const json& c : read_manifest()) {
    const std::string name = c.at("name");
    ++count;
    for (const bool passes : {true, false}) {
      for (const int devices : {1, 3}) {
        SCOPED_TRACE(name + (passes ? ", passes" : ", no passes") + ", devices " + std::to_string(devices));
        check(c, folder / (name + ".onnx"), passes, devices);
      }
    }
  }
  EXPECT_EQ(count, 149u);
}

}  // namespace
}  // namespace tandem::test
