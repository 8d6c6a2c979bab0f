#include "io/list_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "io/read_file.h"
#include "runtime/base/error.h"

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

void add_entry(Listing& list, const std::string& path, const std::string& label) {
  if (path.empty()) return;
  list.paths.push_back(path);
  list.labels.push_back(label);
}

Listing read_csv(const std::string& text, std::string root) {
  Listing list{std::move(root), {}, {}};
  for (std::size_t at = 0; at < text.size();) {
    const bool first = at == 0;
    const auto fields = csv_fields(text, at);
    const std::string head = lower(fields[0]);
    const bool named = head == "path" || head == "file" || head == "filename" || head == "image";
    if (first && (named || (fields.size() > 1 && lower(fields[1]) == "label"))) continue;
    add_entry(list, fields[0], fields.size() > 1 ? fields[1] : "");
  }
  return list;
}

// Caffe's lists: `path label`, the label behind the last blank: a number, or a word behind an image's name. Any other line is a path, blanks and
// all.
void add_line(Listing& list, const std::string& line) {
  constexpr const char* kBlanks = " \t";
  const std::string text = line.substr(0, line.find_last_not_of(kBlanks) + 1);
  const std::size_t blank = text.find_last_of(kBlanks);
  if (blank != std::string::npos) {
    const std::string path = text.substr(0, text.find_last_not_of(kBlanks, blank) + 1), label = text.substr(blank + 1);
    const bool number = label.find_first_not_of("0123456789") == std::string::npos;
    if (!path.empty() && (number || (has_image_suffix(path) && !has_image_suffix(text)))) return add_entry(list, path, label);
  }
  if (!text.empty()) add_entry(list, line, "");
}

Listing read_lines(const std::string& text, std::string root) {
  Listing list{std::move(root), {}, {}};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    add_line(list, line);
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
  Listing list = with_context([&] { return quoted(file); }, [&] { return csv ? read_csv(text, root) : read_lines(text, root); });
  if (list.paths.empty()) throw InvalidData(fmt::format("the list {} names no file", quoted(file)));
  if (std::all_of(list.labels.begin(), list.labels.end(), [](const std::string& l) { return l.empty(); })) list.labels.clear();
  return list;
}

}  // namespace tandem::io
