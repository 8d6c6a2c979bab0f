#include "tools/option_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"

namespace tandem::cli {
namespace {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string toml_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ",") + toml_text(text);
  return list.empty() ? "" : "[" + list + "]";
}

std::string limits_text(double min, double max) {
  const bool low = min > std::numeric_limits<double>::lowest(), high = max < std::numeric_limits<double>::max();
  if (low && high) return fmt::format(" from {} to {}", min, max);
  if (low) return fmt::format(" of at least {}", min);
  return high ? fmt::format(" of at most {}", max) : "";
}

}  // namespace

std::string OptionSpec::key() const {
  for (const std::string& name : names) {
    if (name.starts_with("--")) return name.substr(2);
  }
  return names.front().substr(names.front().find_first_not_of('-'));
}

std::string OptionSpec::variable() const {
  std::string name = "TANDEM_" + key();
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

OptionSpec& OptionSet::add(OptionSpec spec) {
  spec.group = group_;
  specs_.push_back(std::move(spec));
  return specs_.back();
}

OptionSpec& OptionSet::positional(std::string name, std::string& value, std::string help) {
  OptionSpec spec{.names = {std::move(name)}, .metavar = "", .help = std::move(help)};
  spec.positional = spec.required = true;
  spec.assign = [&value](const std::vector<std::string>& given) { value = given.back(); };
  spec.value = [&value] { return toml_text(value); };
  return add(std::move(spec));
}

OptionSpec& OptionSet::positionals(std::string name, std::vector<std::string>& values, std::string help) {
  OptionSpec spec{.names = {std::move(name)}, .metavar = "", .help = std::move(help)};
  spec.positional = spec.required = spec.repeatable = true;
  spec.assign = [&values](const std::vector<std::string>& given) { values = given; };
  spec.value = [&values] { return toml_list(values); };
  return add(std::move(spec));
}

OptionSpec& OptionSet::flag(const std::string& names, bool& value, std::string help) {
  OptionSpec spec{.names = split(names), .metavar = "", .help = std::move(help)};
  spec.flag = true;
  spec.assign = [&value](const std::vector<std::string>& given) { value = to_bool(given.back()); };
  spec.value = [&value] { return value ? "true" : "false"; };
  return add(std::move(spec));
}

OptionSpec& OptionSet::text(const std::string& names, std::string metavar, std::string& value, std::string help) {
  OptionSpec& spec = custom(
      names, std::move(metavar), value, [&value](const std::string& given) { value = given; }, std::move(help));
  spec.value = [&value] { return toml_text(value); };
  return spec;
}

OptionSpec& OptionSet::texts(const std::string& names, std::string metavar, std::vector<std::string>& values, std::string help) {
  OptionSpec spec{.names = split(names), .metavar = std::move(metavar), .help = std::move(help)};
  spec.repeatable = true;
  spec.assign = [&values](const std::vector<std::string>& given) { values = given; };
  spec.value = [&values] { return toml_list(values); };
  return add(std::move(spec));
}

OptionSpec& OptionSet::integer(const std::string& names, std::string metavar, std::int64_t& value, std::int64_t min, std::int64_t max,
                               std::string help) {
  OptionSpec& spec = custom(
      names, std::move(metavar), std::to_string(value), [&value, min, max](const std::string& given) { value = to_integer(given, min, max); },
      std::move(help));
  spec.value = [&value, min, max] { return value < min || value > max ? "" : std::to_string(value); };
  return spec;
}

OptionSpec& OptionSet::number(const std::string& names, std::string metavar, double& value, double min, double max, std::string help) {
  OptionSpec& spec = custom(
      names, std::move(metavar), fmt::format("{}", value), [&value, min, max](const std::string& given) { value = to_number(given, min, max); },
      std::move(help));
  spec.value = [&value, min, max] { return value < min || value > max ? "" : fmt::format("{}", value); };
  return spec;
}

OptionSpec& OptionSet::choice(const std::string& names, std::vector<std::string> choices, std::string& value, std::string help) {
  const auto parse = [&value, choices](const std::string& given) {
    if (std::find(choices.begin(), choices.end(), given) == choices.end()) {
      throw UsageError(fmt::format("expected one of {}, found \"{}\"", fmt::join(choices, ", "), given));
    }
    value = given;
  };
  OptionSpec& spec = custom(names, fmt::format("{}", fmt::join(choices, "|")), value, parse, std::move(help));
  spec.choices = std::move(choices);
  spec.value = [&value] { return toml_text(value); };
  return spec;
}

OptionSpec& OptionSet::custom(const std::string& names, std::string metavar, std::string default_text, std::function<void(const std::string&)> parse,
                              std::string help) {
  OptionSpec spec{.names = split(names), .metavar = std::move(metavar), .help = std::move(help)};
  spec.default_text = std::move(default_text);
  spec.assign = [parse = std::move(parse)](const std::vector<std::string>& given) { parse(given.back()); };
  return add(std::move(spec));
}

std::string toml_text(const std::string& text) {
  using nlohmann::json;
  return text.empty() ? "" : json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<std::string> split(const std::string& text, const char* separators) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (from <= text.size()) {
    const std::size_t to = std::min(text.find_first_of(separators, from), text.size());
    parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

std::int64_t to_integer(const std::string& text, std::int64_t min, std::int64_t max) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max) {
    const bool open = max == std::numeric_limits<std::int64_t>::max();
    throw UsageError(open ? fmt::format("expected an integer of at least {}, found \"{}\"", min, text)
                          : fmt::format("expected an integer from {} to {}, found \"{}\"", min, max, text));
  }
  return value;
}

double to_number(const std::string& text, double min, double max) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < min || value > max) {
    throw UsageError(fmt::format("expected a number{}, found \"{}\"", limits_text(min, max), text));
  }
  return value;
}

bool to_bool(const std::string& text) {
  for (const char* yes : {"1", "true", "on", "yes"}) {
    if (text == yes) return true;
  }
  for (const char* no : {"0", "false", "off", "no"}) {
    if (text == no) return false;
  }
  throw UsageError(fmt::format("expected true or false, found \"{}\"", text));
}

std::optional<std::string> nearest(const std::string& text, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(text.size() / 3, 1) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(text.substr(0, 100), candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace tandem::cli
