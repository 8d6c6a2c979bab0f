// Tensors from and to files, by suffix: .npy, .pb.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/tensor.h"
#include "runtime/graph/graph.h"

namespace tandem::cli {

// Throws InvalidData naming the file; UsageError for another suffix.
Tensor read_tensor(const std::string& file);

// Where two lists of outputs differ, or "" when |got - want| <= atol + rtol * |want| everywhere (NaN equals NaN), with equal types and shapes.
std::string difference(const Tensor& got, const Tensor& want, double rtol, double atol);

// Names of the graph's outputs as file names: '/' and ':' become '_', a name already taken gets _2, _3.
std::vector<std::string> output_file_names(const Graph& graph);

}  // namespace tandem::cli
