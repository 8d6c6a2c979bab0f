// The kinds of data sets that open_dataset() chooses from. Internal to io.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/dataset.h"
#include "runtime/base/tensor.h"

namespace tandem::io {

std::unique_ptr<Dataset> open_class_folders(const std::string& path, const DatasetOptions&);
std::unique_ptr<Dataset> open_list(const std::string& path, const DatasetOptions&);
std::unique_ptr<Dataset> open_idx(const std::string& path, const DatasetOptions&);
std::unique_ptr<Dataset> open_npy(const std::string& path, const DatasetOptions&);
std::unique_ptr<Dataset> open_npz(const std::string& path, const DatasetOptions&);
std::unique_ptr<Dataset> open_h5(const std::string& path, const DatasetOptions&);

// Samples in memory, the first dimension counts them; labels one for each, empty where there are none. Errors name `path`.
std::unique_ptr<Dataset> open_arrays(const std::string& path, Tensor samples, Tensor labels, const DatasetOptions&);

// True when there is something of that name; never throws.
bool exists(const std::string& path);

// Floats that convert_sample() writes for samples of this type and shape. Throws InvalidData for images without pixels or too large ones.
std::int64_t converted_size(DType, std::span<const std::int64_t> shape, const DatasetOptions&);
// One stored sample to the network's input: byte images (H x W, H x W x 1, H x W x 3) through the record, numbers of the right count as they are.
void convert_sample(const Tensor& sample, const DatasetOptions&, std::span<float> out);
// Whole numbers of 0 or more, or the place of the largest of each one-hot row. Throws InvalidData naming the row.
std::vector<std::int64_t> class_indices(const Tensor& labels);

}  // namespace tandem::io
