#include "tools/predict_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/html.h"
#include "runtime/base/error.h"

namespace tandem::cli {
namespace {

namespace html = io::html;

constexpr std::size_t kShownImages = 24, kShownClasses = 50, kShownErrors = 200;
constexpr int kSide = 128;

// By value, then by input: the same page whatever the order of the heap. NaN counts as the least certain.
bool more_uncertain(float a, std::size_t i, float b, std::size_t j) {
  if (std::isnan(a) != std::isnan(b)) return std::isnan(a);
  return a != b && !std::isnan(a) ? a < b : i < j;
}

std::string left_out(std::size_t all, std::size_t shown, const char* what) {
  return all > shown ? fmt::format("<p>and {} more {}</p>\n", all - shown, what) : "";
}

}  // namespace

void PredictReport::row(std::size_t input, const std::string& label, float value) {
  ++rows_;
  if (label.empty()) return;
  ++by_class_[label];
  if (value >= 0 && value <= 1) ++by_certainty_[std::min<std::size_t>(9, static_cast<std::size_t>(value * 10))];
  const auto before = [](const Row& a, const Row& b) { return more_uncertain(a.value, a.input, b.value, b.input); };
  uncertain_.push_back({input, label, value});
  std::push_heap(uncertain_.begin(), uncertain_.end(), before);
  if (uncertain_.size() <= kShownImages) return;
  std::pop_heap(uncertain_.begin(), uncertain_.end(), before);
  uncertain_.pop_back();
}

void PredictReport::failure(std::size_t input, const std::string& error) {
  ++failed_;
  if (errors_.size() < kShownErrors) errors_.emplace_back(input, error);
}

std::string PredictReport::classes() const {
  std::vector<std::pair<std::string, double>> bars;
  for (const auto& [label, count] : by_class_) bars.emplace_back(label, static_cast<double>(count));
  std::stable_sort(bars.begin(), bars.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  const std::size_t all = bars.size();
  bars.resize(std::min(all, kShownClasses));
  return html::section("Predicted classes", html::bars(bars) + left_out(all, bars.size(), "classes"));
}

std::string PredictReport::certainty(const std::string& value) const {
  if (value != "prob") return "";
  std::vector<std::pair<std::string, double>> bars;
  for (std::size_t i = 0; i < by_certainty_.size(); ++i)
    bars.emplace_back(fmt::format("{:.1f} to {:.1f}", static_cast<double>(i) / 10, static_cast<double>(i + 1) / 10),
                      static_cast<double>(by_certainty_[i]));
  return html::section("Images by the probability of their first class", html::bars(bars));
}

std::string PredictReport::least_certain(const io::Listing& inputs, const std::string& value, const io::DecodeOptions& decode) const {
  auto rows = uncertain_;
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return more_uncertain(a.value, a.input, b.value, b.input); });
  std::string tiles = "<div class=\"tiles\">\n";
  for (const Row& row : rows) {
    const std::string& path = inputs.paths[row.input];
    std::string picture = "(no picture)";
    try {
      const io::Image image = io::load_image(inputs.full(row.input), decode);
      picture = html::image(html::thumbnail({image.rgb.data(), image.height, image.width, 3}, kSide), path);
    } catch (const Error&) {  // it was there a moment ago
    }
    tiles += fmt::format("<figure>{}<figcaption>{}<br>{} {:.4g}<br>{}</figcaption></figure>\n", picture, html::escape(row.label), html::escape(value),
                         row.value, html::escape(path));
  }
  return html::section("Least certain predictions", tiles + "</div>\n");
}

std::string PredictReport::errors(const io::Listing& inputs) const {
  if (failed_ == 0) return html::section("Files that could not be read", "<p>none</p>\n");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [input, error] : errors_) rows.push_back({html::escape(inputs.paths[input]), html::escape(error)});
  const std::vector<std::string> header = {"file", "error"};
  return html::section("Files that could not be read", html::table(header, rows) + left_out(failed_, rows.size(), "files"));
}

std::string PredictReport::html(const io::Listing& inputs, const About& about, const io::DecodeOptions& decode) const {
  std::vector<std::vector<std::string>> facts = {
      {"model", html::escape(about.model)},
      {"input", html::escape(about.input)},
      {"result", html::escape(about.result)},
      {"files", std::to_string(inputs_)},
      {"predicted", std::to_string(rows_)},
      {"could not be read", std::to_string(failed_)},
      {"time", fmt::format("{:.2f} s", about.seconds)},
      {"images/s", fmt::format("{:.1f}", static_cast<double>(about.predicted_now) / std::max(about.seconds, 1e-9))}};
  if (about.predicted_now < inputs_) facts.push_back({"kept of an earlier run", std::to_string(inputs_ - about.predicted_now)});
  for (const auto& [name, value] : about.settings) facts.push_back({html::escape(name), html::escape(value)});
  const std::vector<std::string> header = {"", ""};
  std::string body = html::table(header, facts);
  if (!by_class_.empty()) body += classes() + certainty(about.value) + least_certain(inputs, about.value, decode);
  return html::page("tandem predict: " + about.result, body + errors(inputs));
}

}  // namespace tandem::cli
