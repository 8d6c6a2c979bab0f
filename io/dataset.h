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
  // Class folders that hold no image: to be told.
  virtual std::vector<std::string> empty_classes() const { return {}; }
  // Hidden folders that hold images and are passed over: to be told.
  virtual std::vector<std::string> hidden_folders() const { return {}; }

  // For training. Where samples are images that go through the record: the decoded image of sample i, to be changed before. image() may be called
  // from several threads at once and throws as load().
  virtual bool has_images() const { return false; }
  virtual Image image(std::int64_t) const { return {}; }
  // Samples that are numbers, which do not go through the record, lie in the other layout than the network's: load() turns them.
  virtual bool is_turned() const { return false; }
  virtual double weight(std::int64_t) const { return 1; }  // sample_weight
  // Where targets are numbers: how many for a sample (0: they are classes), those of sample i, and what they are called (empty: not).
  virtual std::int64_t value_count() const { return 0; }
  virtual void values(std::int64_t, std::span<float>) const {}
  virtual std::vector<std::string> value_names() const { return {}; }
  // They are stored as integers, as class numbers are.
  virtual bool has_integer_values() const { return false; }
};

enum class Part { kMeasuring, kTraining };  // of a set that has both
// kClasses: each target is a class: a name, a whole number of 0 or more, a row with a single 1 among zeros. kNumbers: likewise, without rows.
// kValues: numbers as they are stored (regression, several classes at once). kShares: classes where each target is one, else rows that are shares of
// classes, as values. kEither: classes where each target is one, else values.
enum class Targets { kClasses, kNumbers, kValues, kShares, kEither };

// None is below 0, and they add up to 1 (within 1e-3).
bool are_shares(std::span<const float> row);

// The class of a sample whose values are shares: the first of the largest (as Keras).
std::int64_t class_of_shares(const Dataset&, std::int64_t i);

struct DatasetOptions {
  std::optional<Preprocess> preprocess;  // how images become samples; without it tensors are taken as they are (size must fit)
  bool natural_order = false;            // of class folders
  bool exif_orientation = false;
  Part part = Part::kMeasuring;
  Targets targets = Targets::kClasses;
  std::span<const std::string> labels = {};  // the model's labels: label words of lists are looked up here when they are no numbers
};

// DATA of `evaluate` and `train`. A folder of class folders (of root/train and root/val the one that `part` says); a .csv/.txt list with labels; an
// idx image file (name-images-idx3-ubyte[.gz], its labels beside it as name-labels-idx1-ubyte[.gz]); .npz with x/y (x_test, y_test, ... as
// io/h5_dataset.h), of a file with both parts the test part or the training part; .npy with FILE_y.npy or y.npy beside it; .h5/.hdf5. .npz and .h5
// may hold sample_weight. Byte images (uint8, H x W, H x W x C or C x H x W, C 1 or 3) go through `preprocess`. Other numbers are the network's input
// already: of its shape, or of that with the channels on the other side. Throws InvalidData, naming the sample where a label is no class (with
// options.labels: none of them). Targets of lists that are numbers stand behind the path, the same number of them on each line (`path 0 1 1`, CSV
// `path,0,1,1`); a line with others is refused by its number. Names of such columns come from CSV's header. Class folders have no numbers; of a set
// that measures their names may be some of options.labels.
std::unique_ptr<Dataset> open_dataset(const std::string& path, const DatasetOptions& options);

// True when `path` is a folder with class folders in root/train and root/val: the latter is for validation.
bool has_validation_part(const std::string& path);

}  // namespace tandem::io
