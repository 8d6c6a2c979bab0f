#include "io/class_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "io/read_file.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

using Named = std::vector<std::pair<std::string, double>>;
constexpr std::int64_t kMostBytes = 16 << 20;

Named of_json(const std::string& text) {
  const auto j = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!j.is_object()) throw InvalidData("expected a JSON object of classes and weights");
  Named named;
  for (const auto& [name, weight] : j.items()) {
    if (!weight.is_number()) throw InvalidData(fmt::format("the weight of class {} is no number", quote_whole(name)));
    named.emplace_back(name, weight.get<double>());
  }
  return named;
}

float checked(const std::string& name, double weight) {
  if (!(weight >= 0) || std::isinf(static_cast<float>(weight)))
    throw InvalidData(fmt::format("the weight of class {} is {}, expected a number of 0 or more", quote_whole(name), weight));
  return static_cast<float>(weight);
}

Named of_lines(const std::string& text) {
  Named named;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) continue;
    const std::size_t between = line.find_last_of(", \t");
    double weight = 0;
    const char *first = line.data() + (between == std::string::npos ? 0 : between + 1), *last = line.data() + line.size();
    const auto parsed = std::from_chars(first, last, weight);
    const std::string name = between == std::string::npos ? "" : line.substr(0, line.find_last_not_of(", \t", between) + 1);
    if (name.empty() || parsed.ec != std::errc() || parsed.ptr != last)
      throw InvalidData(fmt::format("line {} is no class with its weight", quote_whole(line)));
    named.emplace_back(name, weight);
  }
  return named;
}

std::vector<float> of_list(const std::string& text, std::int64_t classes) {
  const auto j = nlohmann::json::parse(text, nullptr, false);
  if (!j.is_array() || std::ssize(j) != classes) throw InvalidData(fmt::format("expected a JSON list of {} weights", classes));
  std::vector<float> weights;
  for (const auto& weight : j) {
    if (!weight.is_number()) throw InvalidData(fmt::format("the weight of class {} is no number", weights.size()));
    weights.push_back(checked(fmt::format("{}", weights.size()), weight.get<double>()));
  }
  return weights;
}

std::size_t class_of(const std::string& name, std::span<const std::string> labels, std::int64_t classes) {
  const auto at = std::find(labels.begin(), labels.end(), name);
  if (at != labels.end() && at - labels.begin() < classes) return static_cast<std::size_t>(at - labels.begin());
  std::int64_t number = -1;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size() && number >= 0 && number < classes) return static_cast<std::size_t>(number);
  throw InvalidData(fmt::format("class {} is neither a label nor a number from 0 to {}", quote_whole(name), classes - 1));
}

}  // namespace

std::vector<float> balanced_class_weights(const Dataset& data, const BatchOptions& o) {
  if ((data.value_count() > 0 && !o.shares) || o.outputs < 1) throw UsageError("balanced class weights need class numbers as targets");
  std::vector<std::int64_t> counts(static_cast<std::size_t>(o.outputs == 1 ? 2 : o.outputs));
  const std::int64_t samples = o.subset.empty() ? data.size() : std::ssize(o.subset);
  for (std::int64_t k = 0; k < samples; ++k) {
    const std::int64_t index = o.subset.empty() ? k : o.subset[static_cast<std::size_t>(k)];
    std::int64_t label = o.shares && data.value_count() > 0 ? class_of_shares(data, index) : data.label(index);
    if (!o.class_map.empty()) label = label >= 0 && label < std::ssize(o.class_map) ? o.class_map[static_cast<std::size_t>(label)] : -1;
    if (label < 0 || label >= std::ssize(counts))
      throw InvalidData(
          fmt::format("{} has label {}, the network tells {} classes apart", quote_whole(data.name(index)), data.label(index), counts.size()));
    ++counts[static_cast<std::size_t>(label)];
  }
  const auto present = static_cast<double>(counts.size()) - static_cast<double>(std::count(counts.begin(), counts.end(), 0));
  std::vector<float> weights;
  for (const std::int64_t n : counts)
    weights.push_back(n == 0 ? 0.0f : static_cast<float>(static_cast<double>(samples) / (present * static_cast<double>(n))));
  return weights;
}

std::vector<float> read_class_weights(const std::string& file, std::span<const std::string> labels, std::int64_t classes) {
  const auto bytes = read_file(file, kMostBytes);
  const std::string text(bytes.begin(), bytes.end());
  std::vector<float> weights(static_cast<std::size_t>(classes), 1.0f);
  with_context([&] { return quote_whole(file); },
               [&] {
                 const std::size_t first = text.find_first_not_of(" \t\r\n");
                 const char kind = first == std::string::npos ? ' ' : text[first];
                 if (kind == '[') {
                   weights = of_list(text, classes);
                   return;
                 }
                 for (const auto& [name, weight] : kind == '{' ? of_json(text) : of_lines(text))
                   weights[class_of(name, labels, classes)] = checked(name, weight);
               });
  return weights;
}

}  // namespace tandem::io
