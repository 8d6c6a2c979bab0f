// Inside of the HDF5 wrapper: owned identifiers and error texts. Included by io/hdf5*.cc alone.
#pragma once

#include <hdf5.h>

#include <memory>
#include <string>

#include "io/hdf5.h"

namespace tandem::io {

struct H5Open {
  std::string name;  // for messages: the path, or "memory"
  hid_t id = -1;
  std::int64_t bytes = 0;  // of the file
  ~H5Open();
};

// An identifier that is closed by `close` (H5Tclose, H5Sclose, ...).
class H5Id {
 public:
  H5Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~H5Id() {
    if (id_ >= 0) close_(id_);
  }
  H5Id(const H5Id&) = delete;
  H5Id& operator=(const H5Id&) = delete;
  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// Quiet errors on this thread, no plug-ins in this process. Called before anything else.
void h5_prepare();
// The library's own reason for the last error on this thread, "" when it has none.
std::string h5_reason();
// InvalidData: FILE: PATH: what (the library's reason).
[[noreturn]] void h5_fail(const H5Open& file, const std::string& path, const std::string& what);
// Type in memory for elements of `type` as they lie in the file, in the host's byte order; kNone: a kind that is not read.
DType h5_dtype(hid_t type);
// A new type for `dtype`, little-endian.
hid_t h5_type(DType dtype);

}  // namespace tandem::io
