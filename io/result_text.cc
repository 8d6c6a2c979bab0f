#include "io/result_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "io/results.h"

namespace tandem::io {
namespace {

// Bytes of the UTF-8 character at the start of `s`; 0 where there is none (overlong forms and surrogates included).
std::size_t utf8_length(std::string_view s) {
  const auto at = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const unsigned a = at(0), b = at(1);
  const auto tail = [&](std::size_t i) { return (at(i) & 0xc0) == 0x80; };
  if (a < 0x80) return 1;
  if (a >= 0xc2 && a <= 0xdf) return tail(1) ? 2 : 0;
  if (a >= 0xe0 && a <= 0xef) {
    const bool range = (a != 0xe0 || b >= 0xa0) && (a != 0xed || b <= 0x9f);
    return range && tail(1) && tail(2) ? 3 : 0;
  }
  if (a >= 0xf0 && a <= 0xf4) {
    const bool range = (a != 0xf0 || b >= 0x90) && (a != 0xf4 || b <= 0x8f);
    return range && tail(1) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string percent_encoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = utf8_length(std::string_view(text).substr(i));
    if (n == 0) {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(text[i++]));
    } else {
      out.append(text, i, n);
      i += n;
    }
  }
  return out;
}

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : percent_encoded(text)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::optional<std::size_t> csv_length(std::string_view text) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == '\n' && !quoted) return i + 1;
  }
  return std::nullopt;
}

std::vector<std::string> csv_fields(std::string_view record) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < record.size(); ++i) {
    const char c = record[i];
    if (c == '"') {
      if (quoted && i + 1 < record.size() && record[i + 1] == '"') {
        fields.back() += c;
        ++i;
      } else {
        quoted = !quoted;
      }
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\n' || quoted) {
      fields.back() += c;
    }
  }
  return fields;
}

std::string result_number(float v) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), v);
  return {text.data(), end.ptr};
}

std::string error_row(const std::string& path, const std::string& error) { return csv_field(path) + "," + csv_field(error) + "\n"; }

ResultText::ResultText(bool json, const ResultOptions& options) : json_(json), top_k_(options.top_k), value_(options.value) {
  if (json_) return;
  header_ = "path";
  for (int i = 1; i <= options.top_k; ++i) header_ += fmt::format(",top{0},{1}{0}", i, value_);
  for (std::int64_t i = 1; options.top_k == 0 && i <= options.values; ++i) header_ += fmt::format(",{}{}", value_, i);
  header_ += "\n";
}

std::string ResultText::beginning(const std::string& path) const { return json_ ? "{\"path\":" + json_text(path) + "," : csv_field(path) + ","; }

std::string ResultText::row(const std::string& path, std::span<const std::string> labels, std::span<const float> values) const {
  std::string out = beginning(path);
  if (json_) {
    const auto number = [](float v) { return std::isfinite(v) ? result_number(v) : "null"; };
    if (top_k_ > 0) {
      out += "\"top\":[";
      for (std::size_t i = 0; i < labels.size(); ++i) out += (i ? "," : "") + json_text(labels[i]);
      out += "],";
    }
    out += json_text(value_) + ":[";
    for (std::size_t i = 0; i < values.size(); ++i) out += (i ? "," : "") + number(values[i]);
    return out + "]}\n";
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i) out += ",";
    if (top_k_ > 0) out += csv_field(labels[i]) + ",";
    out += result_number(values[i]);
  }
  return out + "\n";
}

void ResultText::with_best(std::string_view row, const std::function<void(const std::string&, float)>& take) const {
  if (json_) {
    const auto parsed = nlohmann::json::parse(row, nullptr, false);
    if (!parsed.is_object() || !parsed.contains(value_) || parsed[value_].empty()) return;
    const auto& value = parsed[value_][0];
    return take(top_k_ > 0 ? parsed.value("top", std::vector<std::string>{""}).at(0) : "", value.is_number() ? value.get<float>() : std::nanf(""));
  }
  const auto fields = csv_fields(row);
  const std::size_t at = top_k_ > 0 ? 2 : 1;
  float value = 0;
  if (fields.size() <= at || std::from_chars(fields[at].data(), fields[at].data() + fields[at].size(), value).ec != std::errc()) return;
  take(top_k_ > 0 ? fields[1] : "", value);
}

std::optional<std::size_t> ResultText::length(std::string_view text) const {
  if (!json_) return csv_length(text);
  const std::size_t end = text.find('\n');
  return end == std::string_view::npos ? std::nullopt : std::optional(end + 1);
}

}  // namespace tandem::io
