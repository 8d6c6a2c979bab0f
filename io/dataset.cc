#include "io/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "io/dataset_sources.h"
#include "io/listing.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Dataset> open_by_name(const std::string& path, const DatasetOptions& o) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return open_class_folders(path, o);
  if (!exists(path)) throw InvalidData(fmt::format("there is no file or folder {}", quote_whole(path)));
  std::string name = path;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto ends = [&](const char* suffix) { return name.ends_with(suffix); };
  if (ends(".csv") || ends(".txt")) return open_list(path, o);
  if (ends(".npy")) return open_npy(path, o);
  if (ends(".npz")) return open_npz(path, o);
  if (ends(".h5") || ends(".hdf5")) return open_h5(path, o);
  if (ends("ubyte") || ends("ubyte.gz") || ends(".idx") || ends(".idx.gz")) return open_idx(path, o);
  throw InvalidData(fmt::format("{} is no data set this program knows: class folders, .csv, .txt, .npy, .npz, .h5, idx(.gz)", quote_whole(path)));
}

}  // namespace

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::unique_ptr<Dataset> open_dataset(const std::string& path, const DatasetOptions& o) {
  auto set = open_by_name(path, o);
  if (o.targets == Targets::kValues && set->value_count() == 0) throw InvalidData(fmt::format("{} holds no numbers as targets", quote_whole(path)));
  const auto known = static_cast<std::int64_t>(o.labels.size());
  if (known == 0 || !set->class_names().empty()) return set;
  for (std::int64_t i = 0; i < set->size(); ++i) {
    if (set->label(i) >= known)
      throw InvalidData(fmt::format("{} has label {}, the model has {} labels", quote_whole(set->name(i)), set->label(i), known));
  }
  return set;
}

std::int64_t class_of_shares(const Dataset& data, std::int64_t i) {
  std::vector<float> row(static_cast<std::size_t>(data.value_count()));
  data.values(i, row);
  return std::max_element(row.begin(), row.end()) - row.begin();
}

bool has_validation_part(const std::string& path) { return has_class_folders(path + "/train") && has_class_folders(path + "/val"); }

}  // namespace tandem::io
