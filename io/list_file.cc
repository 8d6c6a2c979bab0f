#include "io/list_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "io/read_file.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kMaxListBytes = std::int64_t{1} << 30;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string suffix_of(const std::string& name) { return lower(fs::path(name).extension().string()); }

// Fields of one line of CSV (RFC 4180, quotes doubled inside quotes). `at` moves behind the line.
std::vector<std::string> csv_fields(const std::string& text, std::size_t& at) {
  std::vector<std::string> fields(1);
  bool inside = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (inside) {
      if (c != '"')
        fields.back() += c;
      else if (at + 1 < text.size() && text[at + 1] == '"')
        fields.back() += text[++at];
      else
        inside = false;
    } else if (c == '"' && fields.back().empty()) {
      inside = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      ++at;
      break;
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  if (inside) throw InvalidData("a quoted field of the list has no closing quote");
  return fields;
}

// Empty fields at the end, as a last comma makes them, go.
void add_entry(Listing& list, std::int64_t line, const std::string& path, std::vector<std::string> fields) {
  if (path.empty()) return;
  while (fields.size() > 1 && fields.back().empty()) fields.pop_back();
  if (fields.empty()) fields.emplace_back();
  list.paths.push_back(path);
  list.labels.push_back(fields[0]);
  list.lines.push_back(line);
  list.fields.push_back(std::move(fields));
}

bool is_number(const std::string& text) {
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

// A first line that names columns instead of a file.
bool is_header(const std::vector<std::string>& fields) {
  const std::string head = lower(fields[0]);
  if (head == "path" || head == "file" || head == "filename" || head == "image" || (fields.size() > 1 && lower(fields[1]) == "label")) return true;
  return fields.size() > 2 && !has_image_suffix(fields[0]) && std::none_of(fields.begin() + 1, fields.end(), is_number);
}

Listing read_csv(const std::string& text, std::string root) {
  Listing list{std::move(root), {}, {}};
  std::int64_t line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    auto fields = csv_fields(text, at);
    const std::string path = fields[0];
    if (from == 0 && is_header(fields))
      list.header.assign(fields.begin() + 1, fields.end());
    else
      add_entry(list, line, path, {fields.begin() + 1, fields.end()});
    line += std::count(text.begin() + static_cast<std::ptrdiff_t>(from), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  }
  return list;
}

constexpr const char* kBlanks = " \t";

// `path 0 1 1`: takes the numbers behind an image's name off the text; none where something else stands there.
std::vector<std::string> take_numbers(std::string& text) {
  std::vector<std::string> numbers;
  std::string path = text;
  while (!has_image_suffix(path)) {
    const std::size_t blank = path.find_last_of(kBlanks);
    if (blank == std::string::npos || !is_number(path.substr(blank + 1))) return {};
    numbers.push_back(path.substr(blank + 1));
    path = path.substr(0, path.find_last_not_of(kBlanks, blank) + 1);
  }
  std::reverse(numbers.begin(), numbers.end());
  if (!numbers.empty()) text = path;
  return numbers;
}

// Caffe's lists: `path label`, the label behind the last blank: a number, or a word behind an image's name; there several numbers too. Any other line
// is a path, blanks and all.
void add_line(Listing& list, std::int64_t number_of_line, const std::string& line) {
  std::string text = line.substr(0, line.find_last_not_of(kBlanks) + 1);
  if (auto numbers = take_numbers(text); !numbers.empty()) return add_entry(list, number_of_line, text, std::move(numbers));
  const std::size_t blank = text.find_last_of(kBlanks);
  if (blank != std::string::npos) {
    const std::string path = text.substr(0, text.find_last_not_of(kBlanks, blank) + 1), label = text.substr(blank + 1);
    const bool number = label.find_first_not_of("0123456789") == std::string::npos;
    if (!path.empty() && (number || (has_image_suffix(path) && !has_image_suffix(text)))) return add_entry(list, number_of_line, path, {label});
  }
  if (!text.empty()) add_entry(list, number_of_line, line, {});
}

Listing read_lines(const std::string& text, std::string root) {
  Listing list{std::move(root), {}, {}};
  std::int64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    add_line(list, ++number, line);
  }
  return list;
}

}  // namespace

bool has_image_suffix(const std::string& name) {
  const std::string suffix = suffix_of(name);
  for (const char* known : {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff"}) {
    if (suffix == known) return true;
  }
  return false;
}

bool is_list(const std::string& file) {
  const std::string suffix = suffix_of(file);
  return suffix == ".txt" || suffix == ".csv";
}

Listing read_list(const std::string& file) {
  const auto bytes = read_file(file, kMaxListBytes);
  std::string text(bytes.begin(), bytes.end());
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);  // what spreadsheets put before UTF-8
  const std::string root = fs::path(file).parent_path().string();
  const bool csv = suffix_of(file) == ".csv";
  Listing list = with_context([&] { return quote_whole(file); }, [&] { return csv ? read_csv(text, root) : read_lines(text, root); });
  if (list.paths.empty()) throw InvalidData(fmt::format("the list {} names no file", quote_whole(file)));
  if (std::all_of(list.labels.begin(), list.labels.end(), [](const std::string& l) { return l.empty(); })) {
    list.labels.clear();
    list.fields.clear();
  }
  return list;
}

}  // namespace tandem::io
