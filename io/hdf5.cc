// Opening, walking and reading.
#include "io/hdf5.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "io/file_handle.h"
#include "io/hdf5_handle.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

constexpr int kMostLinks = 16;
constexpr std::int64_t kSmall = std::int64_t{16} << 20;  // bytes that may always be taken
constexpr std::int64_t kInflation = 1032;                // what deflate can reach at most
constexpr hsize_t kMostStrings = 1 << 20;

extern "C" herr_t keep_innermost(unsigned n, const H5E_error2_t* error, void* out) {
  if (n == 0 && error->desc) *static_cast<std::string*>(out) = error->desc;
  return 0;
}

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0 && path.substr(0, end) != ".") parts.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

// Text of one stored string without its padding.
std::string trimmed(const char* p, std::size_t bytes, H5T_str_t padding) {
  std::string s(p, padding == H5T_STR_SPACEPAD ? bytes : strnlen(p, bytes));
  if (padding == H5T_STR_SPACEPAD) s.erase(s.find_last_not_of(' ') + 1);
  return s;
}

}  // namespace

H5Open::~H5Open() {
  if (id >= 0) H5Fclose(id);
}

void h5_prepare() {
  H5open();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);
}

std::string h5_reason() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &reason);
  H5Eclear2(H5E_DEFAULT);
  return reason;
}

void h5_fail(const H5Open& file, const std::string& path, const std::string& what) {
  const std::string reason = h5_reason();
  throw InvalidData(fmt::format("{}: {}: {}{}", file.name, path.empty() ? "/" : path, what, reason.empty() ? "" : " (" + reason + ")"));
}

H5Node::H5Node(std::shared_ptr<H5Open> file, std::shared_ptr<const void> object, std::int64_t id, std::string path)
    : file_(std::move(file)), object_(std::move(object)), id_(id), path_(std::move(path)) {}

bool H5Node::is_group() const { return H5Iget_type(id_) == H5I_GROUP; }
bool H5Node::is_dataset() const { return H5Iget_type(id_) == H5I_DATASET; }

// Component by component, so that no link is followed that was not looked at.
std::optional<H5Node> H5Node::find(std::string_view path) const {
  h5_prepare();
  std::vector<std::string> todo = parts_of(path);
  std::reverse(todo.begin(), todo.end());
  H5Node at = *this;
  int links = 0;
  while (!todo.empty()) {
    const std::string part = std::move(todo.back());
    todo.pop_back();
    const std::string here = at.path_ + "/" + part;
    if (!at.is_group()) h5_fail(*file_, at.path_, "is no group");
    const htri_t there = H5Lexists(at.id_, part.c_str(), H5P_DEFAULT);
    if (there < 0) h5_fail(*file_, here, "cannot be looked up");
    if (there == 0) {
      if (links > 0) h5_fail(*file_, here, "is named by a link and missing");
      return std::nullopt;
    }
    H5L_info_t info;
    if (H5Lget_info(at.id_, part.c_str(), &info, H5P_DEFAULT) < 0) h5_fail(*file_, here, "cannot be looked up");
    if (info.type == H5L_TYPE_SOFT) {
      if (++links > kMostLinks) h5_fail(*file_, here, "links run in circles");
      std::vector<char> target(info.u.val_size + 1, '\0');
      if (H5Lget_val(at.id_, part.c_str(), target.data(), info.u.val_size, H5P_DEFAULT) < 0) h5_fail(*file_, here, "link cannot be read");
      const std::string text = target.data();
      std::vector<std::string> parts = parts_of(text);
      todo.insert(todo.end(), parts.rbegin(), parts.rend());
      if (text.starts_with('/')) {
        const hid_t root = H5Gopen2(file_->id, "/", H5P_DEFAULT);
        if (root < 0) h5_fail(*file_, "/", "cannot be opened");
        at = H5Node(file_, std::make_shared<H5Id>(root, H5Gclose), root, "");
      }
      continue;
    }
    if (info.type != H5L_TYPE_HARD) h5_fail(*file_, here, "is a link to another file, which is not followed");
    const hid_t id = H5Oopen(at.id_, part.c_str(), H5P_DEFAULT);
    if (id < 0) h5_fail(*file_, here, "cannot be opened");
    at = H5Node(file_, std::make_shared<H5Id>(id, H5Oclose), id, here);
  }
  return at;
}

H5Node H5Node::need(std::string_view path) const {
  auto node = find(path);
  if (!node) h5_fail(*file_, path_ + "/" + std::string(path), "is missing");
  return *node;
}

bool H5Node::has_attribute(const std::string& name) const { return H5Aexists(id_, name.c_str()) > 0; }

std::vector<std::string> H5Node::strings(const std::string& name) const {
  h5_prepare();
  const std::string where = path_ + " attribute " + name;
  const H5Id attribute(H5Aopen(id_, name.c_str(), H5P_DEFAULT), H5Aclose);
  if (!attribute.valid()) h5_fail(*file_, where, "is missing");
  const H5Id type(H5Aget_type(attribute.get()), H5Tclose), space(H5Aget_space(attribute.get()), H5Sclose);
  if (!type.valid() || !space.valid()) h5_fail(*file_, where, "cannot be read");
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) return {};
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  if (count == 0) return {};
  if (H5Tget_class(type.get()) != H5T_STRING) h5_fail(*file_, where, "must hold strings");
  const bool variable = H5Tis_variable_str(type.get()) > 0;
  const std::size_t width = H5Tget_size(type.get());
  if (count < 0 || static_cast<hsize_t>(count) > kMostStrings || static_cast<std::int64_t>(width) > file_->bytes || width == 0 ||
      count * static_cast<std::int64_t>(width) > file_->bytes) {
    h5_fail(*file_, where, fmt::format("declares {} strings of {} bytes, more than the file holds", count, width));
  }
  std::vector<std::string> out;
  if (!variable) {
    std::vector<char> raw(static_cast<std::size_t>(count) * width);
    if (H5Aread(attribute.get(), type.get(), raw.data()) < 0) h5_fail(*file_, where, "cannot be read");
    for (hssize_t i = 0; i < count; ++i) out.push_back(trimmed(raw.data() + static_cast<std::size_t>(i) * width, width, H5Tget_strpad(type.get())));
    return out;
  }
  const H5Id memory(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(memory.get(), H5T_VARIABLE);
  H5Tset_cset(memory.get(), H5Tget_cset(type.get()));
  std::vector<char*> raw(static_cast<std::size_t>(count), nullptr);
  if (H5Aread(attribute.get(), memory.get(), raw.data()) < 0) h5_fail(*file_, where, "cannot be read");
  for (const char* p : raw) out.emplace_back(p ? p : "");
  H5Dvlen_reclaim(memory.get(), space.get(), H5P_DEFAULT, raw.data());
  return out;
}

std::optional<std::string> H5Node::text(const std::string& name) const {
  if (!has_attribute(name)) return std::nullopt;
  auto all = strings(name);
  if (all.size() != 1) h5_fail(*file_, path_ + " attribute " + name, fmt::format("must be one string, has {}", all.size()));
  return std::move(all[0]);
}

DType H5Node::dtype() const {
  if (!is_dataset()) h5_fail(*file_, path_, "is no data set");
  const H5Id type(H5Dget_type(id_), H5Tclose);
  if (!type.valid()) h5_fail(*file_, path_, "type cannot be read");
  const DType t = h5_dtype(type.get());
  if (t == DType::kNone) h5_fail(*file_, path_, "must hold numbers of a common type");
  return t;
}

Shape H5Node::shape() const {
  if (!is_dataset()) h5_fail(*file_, path_, "is no data set");
  const H5Id space(H5Dget_space(id_), H5Sclose);
  const int rank = space.valid() ? H5Sget_simple_extent_ndims(space.get()) : -1;
  if (rank < 0 || H5Sget_simple_extent_type(space.get()) == H5S_NULL) h5_fail(*file_, path_, "has no shape");
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank) + 1);
  H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    const hsize_t n = dims[static_cast<std::size_t>(i)];
    if (n > hsize_t{1} << 62) h5_fail(*file_, path_, "declares an absurd shape");
    shape.push_back(static_cast<std::int64_t>(n));
  }
  try {
    elements(shape);
  } catch (const InvalidModel&) {
    h5_fail(*file_, path_, "declares an absurd shape");
  }
  return shape;
}

namespace {

// Everything of the creation properties that could reach outside the file or run foreign code is refused.
void check_storage(const H5Open& file, const std::string& path, hid_t dataset, double declared) {
  const H5Id plist(H5Dget_create_plist(dataset), H5Pclose);
  if (!plist.valid()) h5_fail(file, path, "properties cannot be read");
  const H5D_layout_t layout = H5Pget_layout(plist.get());
  if (layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED && layout != H5D_COMPACT) h5_fail(file, path, "is a virtual data set, which is not read");
  if (H5Pget_external_count(plist.get()) != 0) h5_fail(file, path, "keeps its data in another file, which is not read");
  const int filters = H5Pget_nfilters(plist.get());
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    const H5Z_filter_t id = H5Pget_filter2(plist.get(), static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &config);
    if (id != H5Z_FILTER_DEFLATE && id != H5Z_FILTER_SHUFFLE && id != H5Z_FILTER_FLETCHER32) {
      h5_fail(file, path, fmt::format("is compressed with filter {}; only deflate, shuffle and fletcher32 are read", static_cast<int>(id)));
    }
  }
  const auto stored = static_cast<double>(std::min<hsize_t>(H5Dget_storage_size(dataset), static_cast<hsize_t>(file.bytes)));
  const double most = static_cast<double>(kSmall) + stored * static_cast<double>(layout == H5D_CHUNKED ? kInflation : 1);
  if (declared > most) h5_fail(file, path, fmt::format("declares {:.0f} bytes, the file holds {:.0f} of them", declared, stored));
}

}  // namespace

Tensor H5Node::read() const { return read_block(std::nullopt); }

Tensor H5Node::read_rows(std::int64_t first, std::int64_t count) const { return read_block(std::pair{first, count}); }

Tensor H5Node::read_block(std::optional<std::pair<std::int64_t, std::int64_t>> rows) const {
  h5_prepare();
  const DType type = dtype();
  Shape dims = shape();
  const double unit = static_cast<double>(size_of(type));
  check_storage(*file_, path_, id_, static_cast<double>(elements(dims)) * unit);
  const H5Id memory_type(h5_type(type), H5Tclose), space(H5Dget_space(id_), H5Sclose);
  if (rows) {
    if (dims.empty() || rows->first < 0 || rows->second < 0 || rows->first + rows->second > dims[0]) {
      h5_fail(*file_, path_, fmt::format("has shape {}, not rows {} to {}", to_string(dims), rows->first, rows->first + rows->second));
    }
    std::vector<hsize_t> start(dims.size(), 0), size(dims.begin(), dims.end());
    start[0] = static_cast<hsize_t>(rows->first);
    size[0] = static_cast<hsize_t>(rows->second);
    dims[0] = rows->second;
    if (H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr) < 0)
      h5_fail(*file_, path_, "rows cannot be chosen");
  }
  Tensor t(type, dims);
  if (t.size() == 0) return t;
  std::vector<hsize_t> memory_dims(dims.begin(), dims.end());
  const H5Id memory_space(dims.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(dims.size()), memory_dims.data(), nullptr),
                          H5Sclose);
  if (H5Dread(id_, memory_type.get(), memory_space.get(), space.get(), H5P_DEFAULT, t.mutable_data()) < 0) h5_fail(*file_, path_, "cannot be read");
  return t;
}

namespace {

std::shared_ptr<H5Open> open_file(const std::string& path) {
  h5_prepare();
  auto file = std::make_shared<H5Open>();
  file->name = quote_whole(path);
  file->bytes = FileHandle(path).size();
  const H5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  H5Pset_file_locking(access.get(), 0, 1);
  file->id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get());
  if (file->id < 0) throw InvalidData(fmt::format("{} is no readable HDF5 file ({})", file->name, h5_reason()));
  return file;
}

}  // namespace

H5File::H5File(const std::string& path) : root_(nullptr, nullptr, -1, "") {
  auto file = open_file(path);
  const hid_t id = H5Gopen2(file->id, "/", H5P_DEFAULT);
  if (id < 0) h5_fail(*file, "/", "cannot be opened");
  root_ = H5Node(file, std::make_shared<H5Id>(id, H5Gclose), id, "");
}

bool is_hdf5(const std::string& path) {
  const FileHandle file(path);
  constexpr unsigned char kSignature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  unsigned char at[8];
  for (std::int64_t offset = 0; offset + 8 <= file.size(); offset = offset == 0 ? 512 : 2 * offset) {
    file.read_at(offset, at, sizeof at);
    if (std::memcmp(at, kSignature, sizeof at) == 0) return true;
  }
  return false;
}

}  // namespace tandem::io
