#include "tests/conformance/fixtures.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace tandem::test {

std::filesystem::path fixtures_folder() { return std::filesystem::path(TANDEM_SOURCE_DIR) / "tests" / "data" / "fixtures"; }

std::vector<Fixture> read_fixtures(const std::filesystem::path& folder) {
  std::vector<Fixture> fixtures;
  std::ifstream file(folder / "manifest.json");
  for (const nlohmann::json& entry : nlohmann::json::parse(file)) {
    Fixture f;
    f.name = entry.at("name");
    f.folder = folder / f.name;
    f.rtol = entry.value("rtol", 0.0);
    f.atol = entry.value("atol", 0.0);
    f.reject = entry.value("reject", "");
    f.training = entry.value("mode", "") == "TRAINING";
    fixtures.push_back(std::move(f));
  }
  return fixtures;
}

std::vector<RunOptions> all_settings() {
  std::vector<RunOptions> settings;
  for (const bool passes : {true, false}) {
    for (const int devices : {1, 3}) {
      RunOptions run;
      run.devices = cpu_devices(devices);
      run.threads = 2;
      run.passes = passes;
      settings.push_back(run);
    }
  }
  return settings;
}

std::string say(const RunOptions& run) { return "devices " + std::to_string(run.devices.size()) + (run.passes ? "; passes" : "; no passes"); }

}  // namespace tandem::test
