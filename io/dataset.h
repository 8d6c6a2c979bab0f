// A labelled set of samples behind one interface: class folders, lists, idx(.gz), .npy/.npz, HDF5.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/preprocess.h"

namespace tandem::io {

// Sample i and its label. load() may be called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  // Writes the network's input for sample i (Preprocess::sample_size() floats, or what sample_shape() says without images).
  // Throws InvalidData (damaged file) with the sample's name.
  virtual void load(std::int64_t i, std::span<float> out) const = 0;
  virtual std::int64_t label(std::int64_t i) const = 0;  // class index in class_names(); -1: none
  virtual std::string name(std::int64_t i) const = 0;    // path, or "x[17]"
  // Names of the classes in index order; empty where the set has numbers alone.
  virtual const std::vector<std::string>& class_names() const = 0;
  virtual std::int64_t sample_size() const = 0;  // floats of one sample
};

struct DatasetOptions {
  std::optional<Preprocess> preprocess;  // how images become samples; without it tensors are taken as they are (size must fit)
  bool natural_order = false;            // of class folders
  bool exif_orientation = false;
  std::span<const std::string> labels = {};  // the model's labels: label words of lists are looked up here when they are no numbers
};

// DATA of `evaluate` and `train`. A folder of class folders (or root/val); a .csv/.txt list with labels; an idx image file
// (name-images-idx3-ubyte[.gz], its labels beside it as name-labels-idx1-ubyte[.gz]); .npz with x/y (x_test, y_test, ... as io/h5_dataset.h), of a
// file with both parts the test part; .npy with FILE_y.npy or y.npy beside it; .h5/.hdf5. Byte images (uint8, H x W, H x W x 1 or H x W x 3) go
// through `preprocess`. Throws InvalidData, naming the sample where a label is no class (with options.labels: none of them).
std::unique_ptr<Dataset> open_dataset(const std::string& path, const DatasetOptions& options);

}  // namespace tandem::io
