#include "io/h5_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

struct Names {
  H5Dataset::Part part;
  const char *x, *y;
};
using Part = H5Dataset::Part;
constexpr Names kNames[] = {
    {Part::kAny, "x", "y"},
    {Part::kAny, "X", "Y"},
    {Part::kAny, "images", "labels"},
    {Part::kAny, "image", "label"},
    {Part::kAny, "data", "label"},
    {Part::kTrain, "x_train", "y_train"},
    {Part::kTrain, "X_train", "y_train"},
    {Part::kTrain, "X_train", "Y_train"},
    {Part::kTrain, "train_set_x", "train_set_y"},
    {Part::kTest, "x_test", "y_test"},
    {Part::kTest, "X_test", "y_test"},
    {Part::kTest, "X_test", "Y_test"},
    {Part::kTest, "test_set_x", "test_set_y"},
};

// The best of the known pairs: the wanted part's own names before the plain ones, a pair with labels before one without.
const Names* find_names(const H5Node& root, Part part) {
  const auto there = [&](const char* name) {
    const auto node = root.find(name);
    return node && node->is_dataset();
  };
  const Names* best = nullptr;
  int best_rank = 0;
  for (const Names& n : kNames) {
    if ((n.part != part && n.part != Part::kAny && part != Part::kAny) || !there(n.x)) continue;
    const int rank = (n.part == part ? 4 : 2) + (there(n.y) ? 1 : 0);
    if (rank > best_rank) {
      best = &n;
      best_rank = rank;
    }
  }
  return best;
}

std::string all_names() {
  std::string text;
  for (const Names& n : kNames) text += fmt::format("{}{}/{}", text.empty() ? "" : ", ", n.x, n.y);
  return text;
}

}  // namespace

H5Dataset::H5Dataset(const std::string& path, Part part) : file_(path), x_(file_.root()), title_(quote_whole(path)) {
  const Names* names = find_names(file_.root(), part);
  if (!names) throw InvalidData(fmt::format("{} holds no image set under a known name ({})", title_, all_names()));
  x_ = file_.root().need(names->x);
  if (auto y = file_.root().find(names->y); y && y->is_dataset()) y_ = std::move(y);
  if (auto w = file_.root().find("sample_weight"); w && w->is_dataset()) weight_ = std::move(w);
  const Shape shape = x_.shape();
  if (shape.empty()) throw InvalidData(fmt::format("{}: {} must hold samples along its first dimension, is a scalar", title_, names->x));
  x_.dtype();
  size_ = shape[0];
  sample_shape_.assign(shape.begin() + 1, shape.end());
  for (const auto& other : {y_, weight_}) {
    if (!other) continue;
    const Shape s = other->shape();
    if (s.empty() || s[0] != size_) {
      throw InvalidData(fmt::format("{}: {} has shape {}, {} has {}: they must agree in the number of samples", title_, names->x, to_string(shape),
                                    other->path(), to_string(s)));
    }
  }
}

std::optional<std::int64_t> H5Dataset::classes() const {
  if (!y_) return std::nullopt;
  const Shape s = y_->shape();
  return s.size() == 2 && s[1] > 1 ? std::optional(s[1]) : std::nullopt;
}

Tensor H5Dataset::raw_labels(std::int64_t first, std::int64_t count) const {
  if (!y_) throw InvalidData(fmt::format("{} holds no labels beside {}", title_, x_.path()));
  return y_->read_rows(first, count);
}

std::vector<std::int64_t> H5Dataset::labels(std::int64_t first, std::int64_t count) const {
  const Tensor t = raw_labels(first, count);
  const auto values = t.to_doubles();
  const std::int64_t width = t.size() / std::max<std::int64_t>(1, count);
  if (t.rank() > 2)
    throw InvalidData(fmt::format("{}: labels must be class numbers or one-hot rows, {} has shape {}", title_, y_->path(), to_string(y_->shape())));
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto row = values.begin() + i * width;
    if (width > 1) {
      out.push_back(std::max_element(row, row + width) - row);
      continue;
    }
    if (!(*row >= 0) || *row != std::floor(*row) || *row > 1e15) {
      throw InvalidData(fmt::format("{}: label {} of {} is {}, expected a class number", title_, first + i, y_->path(), *row));
    }
    out.push_back(static_cast<std::int64_t>(*row));
  }
  return out;
}

std::vector<double> H5Dataset::weights(std::int64_t first, std::int64_t count) const {
  if (!weight_) return std::vector<double>(static_cast<std::size_t>(count), 1.0);
  const Tensor t = weight_->read_rows(first, count);
  if (t.size() != count)
    throw InvalidData(fmt::format("{}: sample_weight must hold one number for each sample, has shape {}", title_, to_string(weight_->shape())));
  return t.to_doubles();
}

}  // namespace tandem::io
