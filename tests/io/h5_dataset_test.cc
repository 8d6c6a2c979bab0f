#include "io/h5_dataset.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "runtime/base/error.h"
#include "runtime/base/safe_file.h"

namespace tandem::io {
namespace {

template <class T>
Tensor of(Shape shape, std::vector<T> values) {
  return Tensor::of<T>(std::move(shape), std::span<const T>(values));
}

class H5DatasetTest : public testing::Test {
 protected:
  ~H5DatasetTest() override { std::remove(path_.c_str()); }
  void write(const std::vector<std::pair<std::string, Tensor>>& sets) const {
    const H5Image image;
    for (const auto& [name, tensor] : sets) image.root().write(name, tensor);
    save_file(path_, image.bytes());
  }
  std::string path_ = testing::TempDir() + "tandem_h5_dataset.h5";
};

const Tensor kImages = of<std::uint8_t>({3, 1, 2}, {1, 2, 3, 4, 5, 6});

TEST_F(H5DatasetTest, ReadsRowsAndLabels) {
  write({{"x", kImages}, {"y", of<std::int32_t>({3}, {2, 0, 1})}, {"sample_weight", of<float>({3}, {1, 2, 0.5f})}});
  const H5Dataset set(path_);
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(set.dtype(), DType::kU8);
  EXPECT_EQ(set.sample_shape(), (Shape{1, 2}));
  EXPECT_EQ(set.samples(1, 2).to_ints(), (std::vector<std::int64_t>{3, 4, 5, 6}));
  EXPECT_EQ(set.labels(0, 3), (std::vector<std::int64_t>{2, 0, 1}));
  EXPECT_EQ(set.weights(1, 2), (std::vector<double>{2, 0.5}));
  EXPECT_FALSE(set.classes());
  EXPECT_THROW(set.samples(2, 2), InvalidData);
  EXPECT_THROW(set.samples(-1, 1), InvalidData);
}

TEST_F(H5DatasetTest, KnowsTheNamesInUse) {
  const Tensor y = of<float>({3, 1}, {1, 0, 1});
  for (const auto& [a, b] :
       {std::pair{"images", "labels"}, {"data", "label"}, {"X_train", "y_train"}, {"train_set_x", "train_set_y"}, {"x_test", "y_test"}}) {
    write({{a, kImages}, {b, y}});
    EXPECT_EQ(H5Dataset(path_).labels(0, 3), (std::vector<std::int64_t>{1, 0, 1})) << a;
  }
  write({{"x_train", kImages}, {"y_train", y}, {"x_test", of<std::uint8_t>({1, 1, 2}, {7, 8})}, {"y_test", of<float>({1}, {0})}});
  EXPECT_EQ(H5Dataset(path_, H5Dataset::Part::kTest).size(), 1);
  EXPECT_EQ(H5Dataset(path_, H5Dataset::Part::kTrain).size(), 3);
}

TEST_F(H5DatasetTest, OneHotLabels) {
  write({{"x", kImages}, {"y", of<float>({3, 2}, {0, 1, 1, 0, 0, 1})}});
  EXPECT_EQ(H5Dataset(path_).labels(1, 2), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(H5Dataset(path_).classes(), 2);
}

TEST_F(H5DatasetTest, RefusesWhatDoesNotFit) {
  write({{"pictures", kImages}});
  EXPECT_THROW(H5Dataset{path_}, InvalidData);
  write({{"x", kImages}, {"y", of<std::int32_t>({2}, {0, 1})}});
  EXPECT_THROW(H5Dataset{path_}, InvalidData);
  write({{"x", of<float>({}, {1})}});
  EXPECT_THROW(H5Dataset{path_}, InvalidData);
  write({{"x", kImages}});
  EXPECT_FALSE(H5Dataset(path_).has_labels());
  EXPECT_THROW(H5Dataset(path_).labels(0, 1), InvalidData);
  write({{"x", kImages}, {"y", of<float>({3}, {0, 0.5f, -1})}});
  EXPECT_THROW(H5Dataset(path_).labels(1, 1), InvalidData);
  EXPECT_THROW(H5Dataset(path_).labels(2, 1), InvalidData);
  EXPECT_THROW(H5Dataset(path_ + ".none"), InvalidData);
}

}  // namespace
}  // namespace tandem::io
