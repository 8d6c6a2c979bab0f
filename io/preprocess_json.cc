#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "io/preprocess.h"
#include "io/read_file.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::int64_t kMaxLabelsBytes = std::int64_t{64} << 20;

template <class T>
struct Word {
  const char* word;
  T value;
};
constexpr Word<Fit> kFits[] = {{"squash", Fit::kSquash}, {"crop", Fit::kCrop}, {"pad", Fit::kPad}};
constexpr Word<Channels> kChannels[] = {{"rgb", Channels::kRgb}, {"bgr", Channels::kBgr}, {"gray", Channels::kGray}};
constexpr Word<InputLayout> kLayouts[] = {{"nchw", InputLayout::kNchw}, {"nhwc", InputLayout::kNhwc}};

template <class T, std::size_t kCount>
T by_word(const Word<T> (&table)[kCount], const char* what, const std::string& word) {
  std::string words;
  for (const auto& entry : table) {
    if (word == entry.word) return entry.value;
    words += (words.empty() ? "" : ", ") + std::string(entry.word);
  }
  throw UsageError(fmt::format("{} must be one of {}, is '{}'", what, words, word));
}

template <class T, std::size_t kCount>
const char* word_of(const Word<T> (&table)[kCount], T value) {
  for (const auto& entry : table) {
    if (value == entry.value) return entry.word;
  }
  return "";
}

Json parsed(const std::string& text, const char* what) {
  Json j = Json::parse(text, nullptr, false);
  if (j.is_discarded()) throw InvalidData(fmt::format("{} is not valid JSON", what));
  return j;
}

template <class T>
T field(const Json& j, const std::string& name) {
  try {
    return j.get<T>();
  } catch (const Json::exception&) {
    throw InvalidData(fmt::format("the preprocessing record's field \"{}\" has the wrong type", name));
  }
}

}  // namespace

Fit fit_of(const std::string& word) { return by_word(kFits, "fit", word); }
Channels channels_of(const std::string& word) { return by_word(kChannels, "channels", word); }
InputLayout input_layout_of(const std::string& word) { return by_word(kLayouts, "layout", word); }

Preprocess parse_preprocess(const std::string& json) {
  const Json j = parsed(json, "the preprocessing record");
  if (!j.is_object()) throw InvalidData("the preprocessing record must be a JSON object");
  Preprocess p;
  bool versioned = false;
  try {
    for (const auto& [name, value] : j.items()) {
      if (name == "version") {
        versioned = true;
        if (field<int>(value, name) != 1)
          throw InvalidData(fmt::format("the preprocessing record has version {}, this program knows 1", value.dump()));
      } else if (name == "size") {
        const auto size = field<std::vector<int>>(value, name);
        if (size.size() != 2) throw InvalidData("the preprocessing record's size must be [height, width]");
        p.height = size[0];
        p.width = size[1];
      } else if (name == "resize")
        p.resize = resize_kind(field<std::string>(value, name));
      else if (name == "fit")
        p.fit = fit_of(field<std::string>(value, name));
      else if (name == "crop_pct")
        p.crop_pct = field<double>(value, name);
      else if (name == "pad") {
        const auto pad = field<std::vector<int>>(value, name);
        if (pad.size() != 4) throw InvalidData("the preprocessing record's pad must be [top, left, bottom, right]");
        std::copy(pad.begin(), pad.end(), p.pad.begin());
      } else if (name == "pad_value")
        p.pad_value = field<double>(value, name);
      else if (name == "channels")
        p.channels = channels_of(field<std::string>(value, name));
      else if (name == "mean")
        p.mean = field<std::vector<float>>(value, name);
      else if (name == "std")
        p.std = field<std::vector<float>>(value, name);
      else if (name == "layout")
        p.layout = input_layout_of(field<std::string>(value, name));
      else
        throw InvalidData(fmt::format("the preprocessing record has an unknown field \"{}\"", name.substr(0, 64)));
    }
    if (!versioned) throw InvalidData("the preprocessing record has no version");
    check(p);
  } catch (const UsageError& e) {  // what is a wrong option on the command line is a wrong file here
    throw InvalidData("the preprocessing record: " + e.message());
  }
  return p;
}

std::string to_json(const Preprocess& p) {
  const Json j = {{"version", 1},
                  {"size", {p.height, p.width}},
                  {"resize", std::string(name_of(p.resize))},
                  {"fit", word_of(kFits, p.fit)},
                  {"crop_pct", p.crop_pct},
                  {"pad", p.pad},
                  {"pad_value", p.pad_value},
                  {"channels", word_of(kChannels, p.channels)},
                  {"mean", p.mean},
                  {"std", p.std},
                  {"layout", word_of(kLayouts, p.layout)}};
  return j.dump();
}

std::vector<std::string> parse_labels(const std::string& json) {
  const Json j = parsed(json, "the label list");
  std::vector<std::string> labels;
  if (!j.is_array()) throw InvalidData("the label list must be a JSON array");
  for (const Json& label : j) {
    if (!label.is_string()) throw InvalidData("the label list must hold strings alone");
    labels.push_back(label.get<std::string>());
  }
  return labels;
}

std::string labels_json(std::span<const std::string> labels) {
  return Json(std::vector<std::string>(labels.begin(), labels.end())).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> read_labels(const std::string& file) {
  const auto bytes = read_file(file, kMaxLabelsBytes);
  const std::string all(bytes.begin(), bytes.end()), text = all.substr(all.starts_with("\xef\xbb\xbf") ? 3 : 0);  // Windows' mark of UTF-8
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '[') return with_context([&] { return quote_whole(file); }, [&] { return parse_labels(text); });
  std::vector<std::string> labels;
  if (first != std::string::npos && text[first] == '{') {
    const Json j = parsed(text, "the class index");
    for (std::size_t i = 0; i < j.size(); ++i) {
      const auto entry = j.find(std::to_string(i));
      if (entry == j.end() || !entry->is_array() || entry->empty() || !entry->back().is_string()) {
        throw InvalidData(fmt::format("{}: the class index has no entry \"{}\" with a name", quote_whole(file), i));
      }
      labels.push_back(entry->back().get<std::string>());
    }
    return labels;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    labels.push_back(line);
  }
  while (!labels.empty() && labels.back().empty()) labels.pop_back();
  if (labels.empty()) throw InvalidData(fmt::format("{} holds no labels", quote_whole(file)));
  return labels;
}

}  // namespace tandem::io
