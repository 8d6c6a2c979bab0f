#include "io/listing.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>

#include "io/read_file.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kMaxListBytes = std::int64_t{1} << 30;
constexpr int kMaxDepth = 64;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool has_image_suffix(const std::string& name) {
  const std::string suffix = lower(fs::path(name).extension().string());
  for (const char* known : {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff"}) {
    if (suffix == known) return true;
  }
  return false;
}

// Paths of images below `folder`, relative to it, not sorted.
void walk(const fs::path& folder, const std::string& prefix, bool recursive, int depth, std::vector<std::string>& found) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (it->is_directory(ignored)) {
      if (recursive && depth < kMaxDepth) walk(it->path(), prefix + name + "/", recursive, depth + 1, found);
    } else if (has_image_suffix(name)) {
      found.push_back(prefix + name);
    }
  }
  if (error) throw InvalidData(fmt::format("cannot read the folder {}: {}", quoted(folder.string()), error.message()));
}

std::vector<std::string> images_below(const std::string& folder, bool recursive) {
  std::vector<std::string> found;
  walk(folder, "", recursive, 0, found);
  std::sort(found.begin(), found.end());
  return found;
}

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
    if (first && (head == "path" || head == "file" || head == "filename" || head == "image")) continue;
    add_entry(list, fields[0], fields.size() > 1 ? fields[1] : "");
  }
  return list;
}

// Caffe's lists: `path label`, the label an integer behind the last space; a line without one is a path.
Listing read_lines(const std::string& text, std::string root) {
  Listing list{std::move(root), {}, {}};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const std::size_t space = line.find_last_of(" \t");
    const bool labelled = space != std::string::npos && space + 1 < line.size() &&
                          line.find_first_not_of("0123456789", space + 1) == std::string::npos && !has_image_suffix(line);
    add_entry(list, labelled ? line.substr(0, space) : line, labelled ? line.substr(space + 1) : "");
  }
  return list;
}

Listing read_list(const std::string& file) {
  const auto bytes = read_file(file, kMaxListBytes);
  const std::string text(bytes.begin(), bytes.end());
  const std::string root = fs::path(file).parent_path().string();
  Listing list = lower(fs::path(file).extension().string()) == ".csv" ? read_csv(text, root) : read_lines(text, root);
  if (list.paths.empty()) throw InvalidData(fmt::format("the list {} names no file", quoted(file)));
  if (std::all_of(list.labels.begin(), list.labels.end(), [](const std::string& l) { return l.empty(); })) list.labels.clear();
  return list;
}

Listing expand_glob(const std::string& pattern) {
  glob_t result{};
  const std::unique_ptr<glob_t, void (*)(glob_t*)> guard(&result, globfree);
  const int code = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &result);
  if (code != 0 && code != GLOB_NOMATCH) throw InvalidData(fmt::format("cannot read the folders of the pattern {}", quoted(pattern)));
  Listing list;
  for (std::size_t i = 0; code == 0 && i < result.gl_pathc; ++i) {
    if (fs::is_regular_file(result.gl_pathv[i])) list.paths.emplace_back(result.gl_pathv[i]);
  }
  if (list.paths.empty()) throw InvalidData(fmt::format("no file matches {}", quoted(pattern)));
  std::sort(list.paths.begin(), list.paths.end());
  return list;
}

// "class2" before "class10": runs of digits compare as numbers, then everything by bytes.
bool natural_less(const std::string& a, const std::string& b) {
  std::size_t i = 0, j = 0;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i;
      ++j;
      continue;
    }
    const auto number = [&](const std::string& s, std::size_t& at) {
      while (at + 1 < s.size() && s[at] == '0' && digit(s[at + 1])) ++at;
      const std::size_t from = at;
      while (at < s.size() && digit(s[at])) ++at;
      return s.substr(from, at - from);
    };
    const std::string x = number(a, i), y = number(b, j);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
}

std::vector<std::string> sorted_folders(const std::string& root) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored)) names.push_back(it->path().filename().string());
  }
  if (error) throw InvalidData(fmt::format("cannot read the folder {}: {}", quoted(root), error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Listing list_inputs(const std::string& input, bool recursive) {
  if (fs::is_directory(input)) {
    Listing list{input, images_below(input, recursive), {}};
    if (list.paths.empty())
      throw InvalidData(fmt::format("the folder {} holds no image{}", quoted(input), recursive ? "" : " (--recursive looks below it)"));
    return list;
  }
  if (fs::exists(input)) {
    const std::string suffix = lower(fs::path(input).extension().string());
    return suffix == ".txt" || suffix == ".csv" ? read_list(input) : Listing{"", {input}, {}};
  }
  if (input.find_first_of("*?[") != std::string::npos) return expand_glob(input);
  throw InvalidData(fmt::format("there is no file or folder {}", quoted(input)));
}

ClassFolders list_class_folders(const std::string& given, bool natural_order) {
  const std::string val = given + "/val";
  const std::string root = fs::is_directory(val) && has_class_folders(val) ? val : given;
  ClassFolders all;
  auto names = sorted_folders(root);
  if (natural_order) std::stable_sort(names.begin(), names.end(), natural_less);
  for (const std::string& name : names) {
    const auto files = images_below(root + "/" + name, true);
    if (files.empty()) continue;
    for (const std::string& file : files) {
      all.paths.push_back(root + "/" + name + "/" + file);
      all.class_index.push_back(static_cast<std::int64_t>(all.classes.size()));
    }
    all.classes.push_back(name);
  }
  if (all.paths.empty()) throw InvalidData(fmt::format("the folder {} holds no class folders with images", quoted(given)));
  return all;
}

bool has_class_folders(const std::string& path) {
  if (!fs::is_directory(path)) return false;
  for (const std::string& name : sorted_folders(path)) {
    if (!images_below(path + "/" + name, true).empty()) return true;
  }
  return false;
}

}  // namespace tandem::io
