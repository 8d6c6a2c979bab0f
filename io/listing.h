// Which files a command works on: a folder, a list, a glob or one file. Names are raw bytes: spaces, newlines, any encoding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::io {

struct Listing {
  std::string root;                 // what relative paths are relative to; "" for paths used as they are
  std::vector<std::string> paths;   // as shown in results; in order
  std::vector<std::string> labels;  // of a list that has them, one for each path (may be ""); empty otherwise
  // Of a list with labels: all that stands behind each path (labels[i] first), and CSV's header behind the path's (empty: none). Of every list: the
  // line of each path, from 1.
  std::vector<std::vector<std::string>> fields = {};
  std::vector<std::string> header = {};
  std::vector<std::int64_t> lines = {};
  std::string full(std::size_t i) const { return root.empty() || paths[i].starts_with('/') ? paths[i] : root + "/" + paths[i]; }
};

// INPUT of `predict`. A folder: files with an image suffix (.jpg .jpeg .png .bmp .webp, any case; .gif and .tif too, so that they are reported
// and not passed over), bytewise order of the path relative to it; below it only with `recursive`. A .txt or .csv file: a list, one path a line
// (`path`, `path label` with a number or, behind an image's name, a word or several numbers as labels; or CSV `path,label` or `path,a,b,...` with or
// without a header), relative to the list's folder. A pattern with * ? or [ that is no existing file: a glob, bytewise order. Else one file. Throws
// InvalidData when nothing is there, or the folder holds no image.
Listing list_inputs(const std::string& input, bool recursive);

// root/class/*: files below each folder (recursively), with labels = names of the class folders. Uses root/PART instead when it holds class folders;
// otherwise, for "train", a root/val with class folders is no class. Class names sorted bytewise, or naturally ("class2" before "class10"). Empty
// folders are no classes, hidden ones (".cache") neither, and no images below a class.
struct ClassFolders {
  std::vector<std::string> classes;
  std::vector<std::string> paths;         // full, sorted by class then bytewise
  std::vector<std::int64_t> class_index;  // of each path
  std::vector<std::string> empty;         // folders without an image: no classes
  std::vector<std::string> hidden;        // hidden folders that hold images, also those below a class
};
ClassFolders list_class_folders(const std::string& root, bool natural_order, const std::string& part = "val");

// True when `path` is a folder that has folders with images in it.
bool has_class_folders(const std::string& path);

}  // namespace tandem::io
