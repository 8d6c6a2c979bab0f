#include "tools/data_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::cli {
namespace {

constexpr std::size_t kNamed = 5;
constexpr std::int64_t kLookedAt = 64;  // samples
constexpr float kNoPixel = 16;          // records end far below it, pixels seldom do

std::string some_names(const std::vector<std::string>& all) {
  std::string names;
  for (std::size_t i = 0; i < std::min(kNamed, all.size()); ++i) names += (i == 0 ? "" : ", ") + quote_whole(all[i]);
  if (all.size() > kNamed) names += fmt::format(" and {} more", all.size() - kNamed);
  return names;
}

bool normalises(const io::Preprocess& p) {
  return std::any_of(p.mean.begin(), p.mean.end(), [](float v) { return v != 0; }) ||
         std::any_of(p.std.begin(), p.std.end(), [](float v) { return v != 1; });
}

// The largest of the first samples' numbers, where all of them lie from 0 to 255 and some beyond what a record leaves.
std::optional<float> brightest_pixel(const io::Dataset& data) {
  std::vector<float> sample(static_cast<std::size_t>(data.sample_size()));
  float most = 0;
  for (std::int64_t i = 0; i < std::min(kLookedAt, data.size()); ++i) {
    try {
      data.load(i, sample);
    } catch (const InvalidData&) {
      continue;  // told where it is read to be used
    }
    for (const float v : sample) {
      if (v < 0 || v > 255) return {};
      most = std::max(most, v);
    }
  }
  return most > kNoPixel ? std::optional(most) : std::nullopt;
}

void say_numbers(const io::Dataset& data, const std::string& path, const io::Preprocess& record, const Console& console) {
  if (data.has_images()) return;
  const char* turned =
      record.layout == io::InputLayout::kNhwc ? "turned from channels first to channels last" : "turned from channels last to channels first";
  if (normalises(record))
    console.info(
        fmt::format("{}: the samples are numbers, taken as preprocessed already{}{}; mean and std of the preprocessing are for images and bytes",
                    quote_whole(path), data.is_turned() ? ", and " : "", data.is_turned() ? turned : ""));
  else if (data.is_turned())
    console.info(fmt::format("{}: the samples are {}", quote_whole(path), turned));
  const auto most = normalises(record) ? brightest_pixel(data) : std::nullopt;
  if (most)
    console.warn(
        fmt::format("{}: the samples hold numbers from 0 to {}, which look like pixels that were not normalised: stored as uint8 they go "
                    "through the preprocessing",
                    quote_whole(path), *most));
}

}  // namespace

void say_notes(const io::Dataset& data, const std::string& path, const io::Preprocess& record, const Console& console) {
  if (const auto empty = data.empty_classes(); !empty.empty()) console.warn(fmt::format("{}: no image in {}", quote_whole(path), some_names(empty)));
  if (const auto hidden = data.hidden_folders(); !hidden.empty())
    console.warn(fmt::format("{}: hidden folders are no classes, the images in {} are left out", quote_whole(path), some_names(hidden)));
  say_numbers(data, path, record, console);
}

}  // namespace tandem::cli
