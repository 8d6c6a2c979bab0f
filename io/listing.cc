#include "io/listing.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "io/list_file.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMaxDepth = 64;

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

using FolderId = std::pair<dev_t, ino_t>;

bool is_hidden(const std::string& name) { return name.starts_with('.'); }

// Paths of images below `folder`, relative to it, not sorted. `above`: the folders on the way down; links that lead back up are not followed.
// `hidden`: takes the folders below that are hidden and are not looked into; none: they are like others.
void walk(const fs::path& folder, const std::string& prefix, bool recursive, std::vector<FolderId>& above, std::vector<std::string>& found,
          std::vector<std::string>* hidden) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) == 0) {
    const FolderId id(info.st_dev, info.st_ino);
    if (std::find(above.begin(), above.end(), id) != above.end()) return;
    above.push_back(id);
  } else {
    above.emplace_back();
  }
  if (above.size() > kMaxDepth) throw InvalidData(fmt::format("the folder {} lies more than {} deep", quote_whole(folder.string()), kMaxDepth));
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (it->is_directory(ignored)) {
      if (hidden && is_hidden(name))
        hidden->push_back(prefix + name);
      else if (recursive)
        walk(it->path(), prefix + name + "/", recursive, above, found, hidden);
    } else if (has_image_suffix(name)) {
      found.push_back(prefix + name);
    }
  }
  if (error) throw InvalidData(fmt::format("cannot read the folder {}: {}", quote_whole(folder.string()), error.message()));
  above.pop_back();
}

std::vector<std::string> images_below(const std::string& folder, bool recursive, std::vector<std::string>* hidden = nullptr) {
  std::vector<std::string> found;
  std::vector<FolderId> above;
  walk(folder, "", recursive, above, found, hidden);
  std::sort(found.begin(), found.end());
  return found;
}

Listing expand_glob(const std::string& pattern) {
  glob_t result{};
  const std::unique_ptr<glob_t, void (*)(glob_t*)> guard(&result, globfree);
  const int code = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &result);
  if (code != 0 && code != GLOB_NOMATCH) throw InvalidData(fmt::format("cannot read the folders of the pattern {}", quote_whole(pattern)));
  Listing list;
  for (std::size_t i = 0; code == 0 && i < result.gl_pathc; ++i) {
    std::error_code ignored;
    if (fs::is_regular_file(result.gl_pathv[i], ignored)) list.paths.emplace_back(result.gl_pathv[i]);
  }
  if (list.paths.empty()) throw InvalidData(fmt::format("no file matches {}", quote_whole(pattern)));
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
  if (error) throw InvalidData(fmt::format("cannot read the folder {}: {}", quote_whole(root), error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Listing list_inputs(const std::string& input, bool recursive) {
  if (is_folder(input)) {
    Listing list{input, images_below(input, recursive), {}};
    if (list.paths.empty())
      throw InvalidData(fmt::format("the folder {} holds no image{}", quote_whole(input), recursive ? "" : " (--recursive looks below it)"));
    return list;
  }
  std::error_code ignored;
  if (fs::exists(input, ignored)) return is_list(input) ? read_list(input) : Listing{"", {input}, {}};
  if (input.find_first_of("*?[") != std::string::npos) return expand_glob(input);
  throw InvalidData(fmt::format("there is no file or folder {}", quote_whole(input)));
}

ClassFolders list_class_folders(const std::string& given, bool natural_order, const std::string& part) {
  const std::string inner = given + "/" + part;
  const std::string root = has_class_folders(inner) ? inner : given;
  ClassFolders all;
  auto names = sorted_folders(root);
  if (root == given && part == "train") {  // root/val beside the classes
    std::erase_if(names, [&](const std::string& name) { return name == "val" && has_class_folders(root + "/" + name); });
  }
  if (natural_order) std::stable_sort(names.begin(), names.end(), natural_less);
  // Those with an image are told: what lies there might have been meant.
  const auto tell_hidden = [&](const std::string& name) {
    if (!images_below(root + "/" + name, true).empty()) all.hidden.push_back(name);
  };
  for (const std::string& name : names) {
    if (is_hidden(name)) {
      tell_hidden(name);
      continue;
    }
    std::vector<std::string> inner_hidden;
    const auto files = images_below(root + "/" + name, true, &inner_hidden);
    for (const std::string& folder : inner_hidden) tell_hidden(name + "/" + folder);
    if (files.empty()) {
      all.empty.push_back(name);
      continue;
    }
    for (const std::string& file : files) {
      all.paths.push_back(root + "/" + name + "/" + file);
      all.class_index.push_back(static_cast<std::int64_t>(all.classes.size()));
    }
    all.classes.push_back(name);
  }
  std::sort(all.hidden.begin(), all.hidden.end());
  if (all.paths.empty()) throw InvalidData(fmt::format("the folder {} holds no class folders with images", quote_whole(given)));
  return all;
}

bool has_class_folders(const std::string& path) {
  if (!is_folder(path)) return false;
  for (const std::string& name : sorted_folders(path)) {
    std::vector<std::string> hidden;
    if (!is_hidden(name) && !images_below(path + "/" + name, true, &hidden).empty()) return true;
  }
  return false;
}

}  // namespace tandem::io
