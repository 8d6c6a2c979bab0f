// HDF5 files, read and written, as far as weights and data sets need it. A file is data from a stranger: it is opened read-only and
// without locks, no plug-in is loaded, and nothing outside it is reached (external links and storage, virtual data sets are refused; soft
// links may only name things of the same file). Sizes are compared with the file's own before memory is taken.
//
// Errors are InvalidData naming the file, the object and the cause. Debian's libhdf5 has one lock of its own around every call, so different
// files may be used on different threads; one file and its nodes belong to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/tensor.h"

namespace tandem::io {

struct H5Open;  // the open file; every node keeps it open

// A group or data set. Copies are cheap and name the same object.
class H5Node {
 public:
  const std::string& path() const { return path_; }
  bool is_group() const;
  bool is_dataset() const;

  // The object at a path relative to this group ("a/b/c"), or none where a link of that name is missing. Throws where the path leaves the
  // file, runs in circles or ends at nothing.
  std::optional<H5Node> find(std::string_view path) const;
  H5Node need(std::string_view path) const;  // throws when there is none

  // Attributes. Strings of every kind (fixed or variable length, any padding) as bytes; an empty numeric array is an empty list.
  bool has_attribute(const std::string& name) const;
  std::vector<std::string> strings(const std::string& name) const;
  // One string, or none when the attribute is missing.
  std::optional<std::string> text(const std::string& name) const;

  // Data sets of float16, float32, float64 and integers of either byte order (in the host's order once read), stored contiguous, compact or
  // in chunks with deflate, shuffle and fletcher32 alone.
  DType dtype() const;
  Shape shape() const;
  Tensor read() const;
  // Rows [first, first + count) of the first dimension.
  Tensor read_rows(std::int64_t first, std::int64_t count) const;

  // Only in a file made by H5Image. Groups on the way are made as needed.
  H5Node make_group(const std::string& path) const;
  void write(const std::string& path, const Tensor&) const;                            // contiguous, little-endian
  void write_list(const std::string& name, const std::vector<std::string>&) const;     // fixed-length, null-padded ASCII; empty: float64 (0)
  void write_text(const std::string& name, const std::string&) const;                  // one fixed-length ASCII string
  void write_long_text(const std::string& name, const std::string&) const;             // variable length, for texts of any size
  void write_strings(const std::string& path, const std::vector<std::string>&) const;  // data set of variable-length UTF-8

 private:
  friend class H5File;
  friend class H5Image;
  H5Node(std::shared_ptr<H5Open> file, std::shared_ptr<const void> object, std::int64_t id, std::string path);
  Tensor read_block(std::optional<std::pair<std::int64_t, std::int64_t>> rows) const;

  std::shared_ptr<H5Open> file_;
  std::shared_ptr<const void> object_;  // closes id_
  std::int64_t id_ = -1;
  std::string path_;
};

// A file opened for reading. Only regular files.
class H5File {
 public:
  explicit H5File(const std::string& path);
  const H5Node& root() const { return root_; }

 private:
  H5Node root_;
};

// A file built in memory. The bytes are the same for the same calls: no times are stored.
class H5Image {
 public:
  H5Image();
  const H5Node& root() const { return root_; }
  std::vector<std::byte> bytes() const;  // the whole file

 private:
  H5Node root_;
};

// True when the file begins (at 0, 512, 1024, ...) with HDF5's signature.
bool is_hdf5(const std::string& path);

}  // namespace tandem::io
