// Weights of classes (--class-weights FILE or balanced).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/batch_source.h"

namespace tandem::io {

// Weights under which every class counts as much: samples / (classes that are there * samples of the class), 0 for classes that are not. As many as
// BatchOptions::class_weights takes; of the options, subset, outputs and class_map matter. Throws UsageError where targets are values.
std::vector<float> balanced_class_weights(const Dataset&, const BatchOptions&);

// Of a file: a JSON object {"cat": 2.5, "3": 1}, lines "cat,2.5" or "cat 2.5", or a JSON list with a weight for each class. Classes are names of
// `labels` or numbers from 0 to `classes` - 1 (names first); those that are not named weigh 1. Throws InvalidData naming the file and the class.
std::vector<float> read_class_weights(const std::string& file, std::span<const std::string> labels, std::int64_t classes);

}  // namespace tandem::io
