// The kinds of data sets that open_dataset() chooses from. Internal to io.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "io/dataset.h"
#include "runtime/base/tensor.h"

namespace tandem::io {

// Throws InvalidData when images come without a preprocessing record.
void need_preprocess(const DatasetOptions&, const std::string& path);

std::unique_ptr<Dataset> open_class_folders(const std::string& path, const DatasetOptions&);
std::unique_ptr<Dataset> open_list(const std::string& path, const DatasetOptions&);
// Samples in memory, first dimension the samples; labels one for each (empty: none).
std::unique_ptr<Dataset> open_arrays(const std::string& path, Tensor samples, std::vector<std::int64_t> labels, const DatasetOptions&);
std::unique_ptr<Dataset> open_h5(const std::string& path, const DatasetOptions&);

// One stored sample to the network's input: byte images (H x W, H x W x 1, H x W x 3) through the record, numbers of the right count as they are.
void convert_sample(const Tensor& sample, const DatasetOptions&, std::span<float> out);
// Floats that convert_sample() writes for samples of this type and shape.
std::int64_t converted_size(DType, std::span<const std::int64_t> shape, const DatasetOptions&);
// Whole numbers, or the largest of each one-hot row.
std::vector<std::int64_t> class_indices(const Tensor& labels);

}  // namespace tandem::io
