#include "models/keras_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/cpu/strided_copy.h"

namespace tandem::models {
namespace {

struct Word {
  std::string_view name;
  int order;
};
constexpr Word kWords[] = {
    {"depthwise_kernel", 0}, {"kernel", 1},         {"pointwise_kernel", 2}, {"embeddings", 3}, {"alpha", 4}, {"bias", 5}, {"gamma", 6}, {"beta", 7},
    {"moving_mean", 8},      {"moving_variance", 9}};

Shape permuted_shape(const Shape& shape, const std::vector<std::size_t>& perm) {
  Shape out;
  for (const std::size_t p : perm) out.push_back(shape[p]);
  return out;
}

void expect(const Tensor& t, const Shape& shape) {
  if (t.dtype() != DType::kF32 || t.shape() != shape) {
    throw InvalidModel(fmt::format("expected float32 {}, found {} {}", to_string(shape), name_of(t.dtype()), to_string(t.shape())));
  }
}

}  // namespace

std::optional<ParameterName> parse_parameter_name(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return std::nullopt;
  std::string_view word = name.substr(slash + 1);
  if (const std::size_t colon = word.find(':'); colon != std::string_view::npos) word = word.substr(0, colon);
  if (word_order(word) < 0) return std::nullopt;
  return ParameterName{std::string(name.substr(0, slash)), std::string(word)};
}

int word_order(std::string_view word) {
  for (const Word& w : kWords) {
    if (w.name == word) return w.order;
  }
  return -1;
}

ArrayForm ArrayForm::same(Shape graph, Shape keras) {
  ArrayForm f{std::move(graph), keras, {}, keras};
  for (std::size_t i = 0; i < f.keras.size(); ++i) f.perm.push_back(i);
  return f;
}

ArrayForm ArrayForm::permuted(const Shape& graph, Shape split, std::vector<std::size_t> perm) {
  Shape keras = permuted_shape(split, perm);
  return {graph, std::move(split), std::move(perm), std::move(keras)};
}

bool is_depthwise(const ArrayForm& f) { return f.perm.size() >= 3 && f.perm.back() == 1 && f.perm[f.perm.size() - 2] == 0; }

Tensor to_keras(const ArrayForm& f, const Tensor& t) {
  expect(t, f.graph);
  const Shape shape = permuted_shape(f.split, f.perm);
  const auto strides = row_major_strides(f.split);
  std::vector<std::int64_t> steps;
  for (const std::size_t p : f.perm) steps.push_back(strides[p]);
  Tensor out(DType::kF32, f.keras);
  StridedCopy(shape, {DType::kF32, steps}, {DType::kF32, row_major_strides(shape)}).run(t.data(), out.mutable_data());
  return out;
}

Tensor to_graph(const ArrayForm& f, const Tensor& t) {
  expect(t, f.keras);
  const auto strides = row_major_strides(permuted_shape(f.split, f.perm));
  std::vector<std::int64_t> steps(f.perm.size());
  for (std::size_t i = 0; i < f.perm.size(); ++i) steps[f.perm[i]] = strides[i];
  Tensor out(DType::kF32, f.graph);
  StridedCopy(f.split, {DType::kF32, steps}, {DType::kF32, row_major_strides(f.split)}).run(t.data(), out.mutable_data());
  return out;
}

}  // namespace tandem::models
