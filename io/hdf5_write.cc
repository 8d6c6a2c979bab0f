// Building a file in memory.
#include <fmt/format.h>

#include <algorithm>

#include "io/hdf5_handle.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

// Missing groups on the way are made; no times are stored.
struct Creation {
  H5Id links{H5Pcreate(H5P_LINK_CREATE), H5Pclose}, group{H5Pcreate(H5P_GROUP_CREATE), H5Pclose}, dataset{H5Pcreate(H5P_DATASET_CREATE), H5Pclose};
  Creation() {
    H5Pset_create_intermediate_group(links.get(), 1);
    H5Pset_char_encoding(links.get(), H5T_CSET_UTF8);
    H5Pset_obj_track_times(group.get(), 0);
    H5Pset_obj_track_times(dataset.get(), 0);
    H5Pset_layout(dataset.get(), H5D_CONTIGUOUS);
  }
};

// A string type: `width` bytes, or of variable length where it is 0.
hid_t string_type(std::size_t width, H5T_cset_t characters) {
  const hid_t t = H5Tcopy(H5T_C_S1);
  H5Tset_size(t, width == 0 ? H5T_VARIABLE : width);
  H5Tset_strpad(t, width == 0 ? H5T_STR_NULLTERM : H5T_STR_NULLPAD);
  H5Tset_cset(t, characters);
  return t;
}

hid_t space_of(std::span<const std::int64_t> shape) {
  if (shape.empty()) return H5Screate(H5S_SCALAR);
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  return H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
}

std::string padded(const std::vector<std::string>& texts, std::size_t width) {
  std::string raw;
  for (const std::string& s : texts) {
    raw += s;
    raw.append(width - s.size(), '\0');
  }
  return raw;
}

void write_attribute(const H5Open& file, hid_t object, const std::string& path, const std::string& name, hid_t type, hid_t space, const void* data) {
  const H5Id attribute(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute.valid() || (data && H5Awrite(attribute.get(), type, data) < 0)) h5_fail(file, path, "attribute " + name + " cannot be written");
}

}  // namespace

H5Node H5Node::make_group(const std::string& path) const {
  h5_prepare();
  if (auto there = find(path)) return *there;
  const Creation how;
  const hid_t id = H5Gcreate2(id_, path.c_str(), how.links.get(), how.group.get(), H5P_DEFAULT);
  if (id < 0) h5_fail(*file_, path_ + "/" + path, "cannot be made");
  return H5Node(file_, std::make_shared<H5Id>(id, H5Gclose), id, path_ + "/" + path);
}

void H5Node::write(const std::string& path, const Tensor& t) const {
  h5_prepare();
  const Creation how;
  const H5Id type(h5_type(t.dtype()), H5Tclose), space(space_of(t.shape()), H5Sclose);
  if (!type.valid()) throw Unsupported(fmt::format("{}/{}: {} is not written to HDF5", path_, path, name_of(t.dtype())));
  const H5Id dataset(H5Dcreate2(id_, path.c_str(), type.get(), space.get(), how.links.get(), how.dataset.get(), H5P_DEFAULT), H5Dclose);
  if (!dataset.valid()) h5_fail(*file_, path_ + "/" + path, "cannot be made");
  if (t.size() > 0 && H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, t.data()) < 0)
    h5_fail(*file_, path_ + "/" + path, "cannot be written");
}

void H5Node::write_list(const std::string& name, const std::vector<std::string>& texts) const {
  h5_prepare();
  const std::int64_t count[] = {std::ssize(texts)};
  const H5Id space(space_of(count), H5Sclose);
  if (texts.empty()) return write_attribute(*file_, id_, path_, name, H5T_IEEE_F64LE, space.get(), nullptr);
  std::size_t width = 1;
  for (const std::string& s : texts) width = std::max(width, s.size());
  const H5Id type(string_type(width, H5T_CSET_ASCII), H5Tclose);
  write_attribute(*file_, id_, path_, name, type.get(), space.get(), padded(texts, width).data());
}

void H5Node::write_text(const std::string& name, const std::string& text) const {
  h5_prepare();
  const std::size_t width = std::max<std::size_t>(1, text.size());
  const H5Id type(string_type(width, H5T_CSET_ASCII), H5Tclose), space(H5Screate(H5S_SCALAR), H5Sclose);
  write_attribute(*file_, id_, path_, name, type.get(), space.get(), padded({text}, width).data());
}

void H5Node::write_long_text(const std::string& name, const std::string& text) const {
  h5_prepare();
  const H5Id type(string_type(0, H5T_CSET_UTF8), H5Tclose), space(H5Screate(H5S_SCALAR), H5Sclose);
  const char* p = text.c_str();
  write_attribute(*file_, id_, path_, name, type.get(), space.get(), &p);
}

void H5Node::write_strings(const std::string& path, const std::vector<std::string>& texts) const {
  h5_prepare();
  const Creation how;
  const std::int64_t count[] = {std::ssize(texts)};
  const H5Id type(string_type(0, H5T_CSET_UTF8), H5Tclose), space(space_of(count), H5Sclose);
  const H5Id dataset(H5Dcreate2(id_, path.c_str(), type.get(), space.get(), how.links.get(), how.dataset.get(), H5P_DEFAULT), H5Dclose);
  if (!dataset.valid()) h5_fail(*file_, path_ + "/" + path, "cannot be made");
  std::vector<const char*> pointers;
  for (const std::string& s : texts) pointers.push_back(s.c_str());
  if (!texts.empty() && H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()) < 0) {
    h5_fail(*file_, path_ + "/" + path, "cannot be written");
  }
}

namespace {

constexpr std::size_t kGrowth = 1 << 20;

}  // namespace

H5Image::H5Image() : root_(nullptr, nullptr, -1, "") {
  h5_prepare();
  auto file = std::make_shared<H5Open>();
  file->name = "memory";
  const H5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose), creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  H5Pset_fapl_core(access.get(), kGrowth, 0);
  H5Pset_obj_track_times(creation.get(), 0);
  const std::string name = fmt::format("tandem-in-memory-{}.h5", fmt::ptr(file.get()));  // the library refuses a second file of one name
  file->id = H5Fcreate(name.c_str(), H5F_ACC_TRUNC, creation.get(), access.get());
  if (file->id < 0) h5_fail(*file, "/", "cannot be made");
  const hid_t id = H5Gopen2(file->id, "/", H5P_DEFAULT);
  if (id < 0) h5_fail(*file, "/", "cannot be opened");
  root_ = H5Node(file, std::make_shared<H5Id>(id, H5Gclose), id, "");
}

std::vector<std::byte> H5Image::bytes() const {
  H5Open& file = *root_.file_;
  if (H5Fflush(file.id, H5F_SCOPE_GLOBAL) < 0) h5_fail(file, "/", "cannot be finished");
  const ssize_t size = H5Fget_file_image(file.id, nullptr, 0);
  if (size < 0) h5_fail(file, "/", "cannot be finished");
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  if (H5Fget_file_image(file.id, bytes.data(), bytes.size()) < 0) h5_fail(file, "/", "cannot be finished");
  return bytes;
}

}  // namespace tandem::io
