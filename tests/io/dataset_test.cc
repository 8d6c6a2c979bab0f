#include "io/dataset.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "io/expansion.h"
#include "io/hdf5.h"
#include "io/idx.h"
#include "io/npy.h"
#include "io/write_png.h"
#include "runtime/base/error.h"
#include "runtime/base/safe_file.h"
#include "tests/io/image_files.h"
#include "tests/io/message_of.h"
#include "tests/support/files.h"

namespace tandem::io {
namespace {

using test::message_of;
using Names = std::vector<std::string>;
using Indices = std::vector<std::int64_t>;

std::string sets(const std::string& name) { return TANDEM_SOURCE_DIR "/tests/data/sets/" + name; }

// 0..255 of the pixels as they are.
DatasetOptions plain(int height, int width, Channels channels = Channels::kGray) {
  Preprocess p;
  p.height = height;
  p.width = width;
  p.channels = channels;
  if (channels == Channels::kGray) p.mean = {0}, p.std = {1};
  return {.preprocess = p};
}

std::vector<float> load(const Dataset& set, std::int64_t i) {
  std::vector<float> out(static_cast<std::size_t>(set.sample_size()), -1);
  set.load(i, out);
  return out;
}

Indices labels_of(const Dataset& set) {
  Indices all;
  for (std::int64_t i = 0; i < set.size(); ++i) all.push_back(set.label(i));
  return all;
}

template <class T>
Tensor of(Shape shape, const std::vector<T>& values) {
  return Tensor::of<T>(std::move(shape), std::span<const T>(values));
}

// Sample i of the sets in tests/data/sets: 3 images of 4 x 5, pixel k of all is 3 k.
std::vector<float> expected(int i) {
  std::vector<float> v;
  for (int k = 20 * i; k < 20 * (i + 1); ++k) v.push_back(static_cast<float>(3 * k % 256));
  return v;
}

class DatasetTest : public testing::Test {
 protected:
  std::string image(const std::string& name, std::uint8_t value) {
    folder_.write(name);
    write_png(folder_ / name, {2, 2, 1, {value, value, value, value}});
    return folder_ / name;
  }
  std::string error(const std::string& path, const DatasetOptions& o = plain(2, 2)) {
    return message_of<InvalidData>([&] { open_dataset(path, o); });
  }
  std::string list(const std::string& name, const std::string& text) { return folder_.write(name, text); }
  test::TemporaryFolder folder_;
};

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(DatasetTest, IdxAndNpzHoldTheSameDigits) {
  for (const char* name : {"t10k-images-idx3-ubyte.gz", "digits.npz"}) {
    const auto set = open_dataset(sets(name), plain(4, 5));
    ASSERT_EQ(set->size(), 3);  // the test part
    EXPECT_EQ(labels_of(*set), (Indices{2, 0, 1}));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(load(*set, i), expected(i)) << name;
    EXPECT_TRUE(set->class_names().empty());
    EXPECT_SAYS(set->name(1), "[1]");
  }
  EXPECT_EQ(load(*open_dataset(sets("digits.npz"), plain(4, 5, Channels::kRgb)), 0).size(), 60u);  // gray into three channels
  EXPECT_EQ(load(*open_dataset(sets("digits.npz"), {}), 1), expected(1));                          // no record: as they are
}

TEST_F(DatasetTest, PlainIdxUnderBothNames) {
  const std::string images = std::string("\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\2", 16) + "\1\2\3\4",
                    labels = std::string("\0\0\x08\x01\0\0\0\2\7\5", 10);
  for (const auto& [x, y] : {std::pair{"a-images-idx3-ubyte", "a-labels-idx1-ubyte"}, {"b-images.idx3-ubyte", "b-labels.idx1-ubyte"}}) {
    folder_.write(y, labels);
    const auto set = open_dataset(folder_.write(x, images), plain(1, 2));
    EXPECT_EQ(labels_of(*set), (Indices{7, 5}));
    EXPECT_EQ(load(*set, 1), (std::vector<float>{3, 4}));
  }
  EXPECT_EQ(open_dataset(folder_.write("c-images-idx3-ubyte", images), plain(1, 2))->label(0), -1);
  folder_.write("d-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\1\7", 9));
  EXPECT_SAYS(error(folder_.write("d-images-idx3-ubyte", images)), "2 samples and 1 labels");
}

TEST_F(DatasetTest, DamagedIdx) {
  const std::string whole = std::string("\0\0\x08\x02\0\0\0\2\0\0\0\2", 12) + "abcd";
  const auto read = [&](const std::string& text) { read_idx(folder_.write("x-ubyte", text)); };
  EXPECT_NO_THROW(read(whole));
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_THROW(read(whole.substr(0, n)), InvalidData) << n;
  EXPECT_THROW(read(whole + "x"), InvalidData);
  for (const auto& [at, byte] : {std::pair{0, 1}, {2, 0x0d}, {3, 0}, {3, 5}, {4, 0x7f}, {7, 3}}) {
    std::string damaged = whole;
    damaged[static_cast<std::size_t>(at)] = static_cast<char>(byte);
    EXPECT_SAYS(message_of<InvalidData>([&] { read(damaged); }), "x-ubyte");
  }
  const auto packed = test::bytes_of(sets("t10k-images-idx3-ubyte.gz"));
  const std::string zipped(packed.begin(), packed.end());
  EXPECT_NO_THROW(read(zipped));
  for (std::size_t n = 0; n < zipped.size(); ++n) EXPECT_THROW(read(zipped.substr(0, n)), InvalidData) << n;
  std::string wrong = zipped;
  wrong[wrong.size() - 6] = static_cast<char>(wrong[wrong.size() - 6] ^ 1);  // in the checksum
  EXPECT_THROW(read(wrong), InvalidData);
  EXPECT_SAYS(message_of<InvalidData>([&] { read_idx(sets("bomb-images-idx3-ubyte.gz")); }), "3000");
}

TEST(Expansion, IsBounded) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  EXPECT_EQ(expansion_limit(0), 4096);
  EXPECT_EQ(expansion_limit(1000), 1032 * 1000 + 4096);
  EXPECT_EQ(expansion_limit(2'000'000), kGiB / 4);
  EXPECT_EQ(expansion_limit(kGiB), 32 * kGiB);
}

TEST_F(DatasetTest, ClassFolders) {
  image("set/class10/a.png", 10);
  image("set/class2/b.png", 20);
  DatasetOptions o = plain(2, 2);
  auto set = open_dataset(folder_ / "set", o);
  EXPECT_EQ(set->class_names(), (Names{"class10", "class2"}));
  EXPECT_EQ(set->label(1), 1);
  EXPECT_EQ(set->name(1), folder_ / "set/class2/b.png");
  EXPECT_EQ(load(*set, 1), std::vector<float>(4, 20));
  o.natural_order = true;
  EXPECT_EQ(open_dataset(folder_ / "set", o)->class_names(), (Names{"class2", "class10"}));
  EXPECT_SAYS(error(folder_ / "set", {}), "preprocessing record");
}

// A set that measures may lack a class; one that trains says what the classes are.
TEST_F(DatasetTest, ClassFoldersAmongKnownClasses) {
  image("set/b/1.png", 10);
  image("set/d/2.png", 20);
  const Names known = {"a", "b", "c", "d"};
  DatasetOptions o = plain(2, 2);
  o.labels = known;
  auto set = open_dataset(folder_ / "set", o);
  EXPECT_EQ(set->class_names(), known);
  EXPECT_EQ(labels_of(*set), (Indices{1, 3}));
  o.part = Part::kTraining;
  EXPECT_EQ(open_dataset(folder_ / "set", o)->class_names(), (Names{"b", "d"}));
  image("set/e/3.png", 30);
  o.part = Part::kMeasuring;
  EXPECT_EQ(open_dataset(folder_ / "set", o)->class_names(), (Names{"b", "d", "e"}));
}

TEST_F(DatasetTest, ADamagedImageIsFoundByLoad) {
  image("set/a/good.png", 1);
  folder_.write("set/a/bad.png", "\x89PNG\r\n\x1a\n and no more");
  const auto set = open_dataset(folder_ / "set", plain(2, 2));
  EXPECT_SAYS(message_of<InvalidData>([&] { load(*set, 0); }), "bad.png");
  EXPECT_EQ(load(*set, 1), std::vector<float>(4, 1));
}

TEST_F(DatasetTest, Lists) {
  image("a.png", 1);
  image("b c.png", 2);
  auto set = open_dataset(list("n.txt", "b c.png 1\na.png 0\n"), plain(2, 2));
  EXPECT_EQ(labels_of(*set), (Indices{1, 0}));
  EXPECT_TRUE(set->class_names().empty());
  EXPECT_EQ(load(*set, 0), std::vector<float>(4, 2));
  set = open_dataset(list("w.csv", "path,label\na.png,dog\nb c.png,cat\n"), plain(2, 2));
  EXPECT_EQ(labels_of(*set), (Indices{1, 0}));
  EXPECT_EQ(set->class_names(), (Names{"cat", "dog"}));
  const Names model{"bird", "dog", "cat"};
  DatasetOptions o = plain(2, 2);
  o.labels = model;
  set = open_dataset(folder_ / "w.csv", o);
  EXPECT_EQ(labels_of(*set), (Indices{1, 2}));
  EXPECT_EQ(set->class_names(), model);
}

TEST_F(DatasetTest, LabelsThatAreNoClassAreRefusedByName) {
  const Names model{"0", "1"};
  DatasetOptions o = plain(2, 2);
  o.labels = model;
  EXPECT_SAYS(error(list("r.csv", "a.png,1\nb.png,2\n"), o), "b.png");
  EXPECT_SAYS(error(list("s.csv", "a.png,1\nb.png,-1\n"), o), "b.png");
  EXPECT_SAYS(error(folder_ / "s.csv"), "b.png");  // never a class called "-1"
  EXPECT_SAYS(error(list("t.csv", "a.png,1.0\nb.png,cat\n")), "a.png");
  EXPECT_SAYS(error(list("u.csv", "a.png,cat\nb.png,\n")), "b.png");
  EXPECT_SAYS(error(list("y.csv", "a.png,cat\nb.png,1\n")), "b.png");
  EXPECT_SAYS(error(list("v.txt", "a.png\nb.png\n")), "has no labels");
  EXPECT_SAYS(error(sets("digits.npz"), o), "x_test[0]");  // label 2 of two
  const Names animals{"cat", "dog"};
  o.labels = animals;
  EXPECT_SAYS(error(list("x.csv", "a.png,cat\nb.png,wolf\n"), o), "b.png");
}

TEST_F(DatasetTest, NpyWithLabelsBesideIt) {
  write_npy(folder_ / "x.npy", of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(labels_of(*open_dataset(folder_ / "x.npy", {})), (Indices{-1, -1}));
  write_npy(folder_ / "y.npy", of<std::int64_t>({2, 1}, {4, 3}));
  EXPECT_EQ(labels_of(*open_dataset(folder_ / "x.npy", {})), (Indices{4, 3}));
  write_npy(folder_ / "x_y.npy", of<float>({2, 3}, {0, 0, 1, 1, 0, 0}));
  const auto set = open_dataset(folder_ / "x.npy", {});
  EXPECT_EQ(labels_of(*set), (Indices{2, 0}));
  EXPECT_EQ(load(*set, 1), (std::vector<float>{4, 5, 6}));
  std::vector<float> wrong(4);
  EXPECT_SAYS(message_of<InvalidData>([&] { set->load(1, wrong); }), "x.npy[1]");
}

// Two samples of 3 x 4 pixels with three channels: -1 everywhere, and 100 c + 10 y + x + 1.
std::vector<float> two_samples(bool channels_last) {
  std::vector<float> values(36, -1);
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < (channels_last ? 4 : 3); ++b) {
      for (int c = 0; c < (channels_last ? 3 : 4); ++c)
        values.push_back(static_cast<float>(channels_last ? 100 * c + 10 * a + b + 1 : 100 * a + 10 * b + c + 1));
    }
  }
  return values;
}

Preprocess network_of(int height, int width, InputLayout layout) {
  Preprocess p;
  p.height = height;
  p.width = width;
  p.std = {2, 2, 2};  // for bytes alone
  p.layout = layout;
  return p;
}

TEST_F(DatasetTest, NumbersAreTurnedToTheNetworksLayout) {
  const H5Image file;
  file.root().write("x", of<float>({2, 3, 4, 3}, two_samples(true)));
  save_file(folder_ / "rows.h5", file.bytes());
  write_npy(folder_ / "rows.npy", of<float>({2, 3, 4, 3}, two_samples(true)));
  write_npy(folder_ / "planes.npy", of<double>({2, 3, 3, 4}, [] {
              const auto values = two_samples(false);
              return std::vector<double>(values.begin(), values.end());
            }()));
  for (const InputLayout layout : {InputLayout::kNchw, InputLayout::kNhwc}) {
    const bool last = layout == InputLayout::kNhwc;
    const std::vector<float> all = two_samples(last), wanted(all.begin() + 36, all.end());
    for (const char* name : {"rows.npy", "planes.npy", "rows.h5"}) {
      const auto set = open_dataset(folder_ / name, {.preprocess = network_of(3, 4, layout)});
      EXPECT_FALSE(set->has_images());
      EXPECT_EQ(set->is_turned(), last == (std::string(name) == "planes.npy")) << name;
      EXPECT_EQ(load(*set, 1), wanted) << name;
    }
  }
}

TEST_F(DatasetTest, NumbersOfAnotherShapeAreRefused) {
  const auto refused = [&](const Shape& shape, int height, int width) {
    write_npy(folder_ / "x.npy", Tensor(DType::kF32, shape));
    return error(folder_ / "x.npy", {.preprocess = network_of(height, width, InputLayout::kNchw)});
  };
  for (const Shape& shape : {Shape{2, 48}, {2, 4, 12}, {2, 4, 3, 4}, {2, 1, 4, 4, 3}, {2, 4, 4, 4}}) {
    const std::string said = refused(shape, 4, 4);
    EXPECT_SAYS(said, "x.npy");
    EXPECT_SAYS(said, "samples have shape " + to_string(std::span(shape).subspan(1)) + ", the network takes [3, 4, 4]");
  }
  EXPECT_SAYS(refused({2, 3, 3, 3}, 3, 3), "channels first or last");
  EXPECT_EQ(refused({2, 4, 4, 3}, 4, 4), "(nothing was thrown)");
  // One channel lies the same in both.
  for (const Shape& shape : {Shape{2, 4, 5}, {2, 1, 4, 5}, {2, 4, 5, 1}}) {
    write_npy(folder_ / "gray.npy", Tensor(DType::kF32, shape));
    EXPECT_FALSE(open_dataset(folder_ / "gray.npy", plain(4, 5))->is_turned());
  }
}

TEST_F(DatasetTest, BytesWithChannelsFirstAreImages) {
  std::vector<std::uint8_t> planes;
  for (int k = 0; k < 36; ++k) planes.push_back(static_cast<std::uint8_t>(k));
  write_npy(folder_ / "x.npy", of<std::uint8_t>({1, 3, 3, 4}, planes));
  const auto set = open_dataset(folder_ / "x.npy", {.preprocess = network_of(3, 4, InputLayout::kNhwc)});
  ASSERT_TRUE(set->has_images());
  EXPECT_EQ(set->image(0).rgb[3 * 5 + 2], 24 + 5);
  EXPECT_EQ(load(*set, 0)[3 * 11 + 1], (12 + 11) / 2.0f);
}

TEST_F(DatasetTest, ArraysThatDoNotFit) {
  write_npy(folder_ / "x.npy", of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  const auto with_labels = [&](const Tensor& y) {
    write_npy(folder_ / "x_y.npy", y);
    return error(folder_ / "x.npy");
  };
  EXPECT_SAYS(with_labels(of<float>({2}, {0, 0.5f})), "label 1 is 0.5");
  EXPECT_SAYS(with_labels(of<float>({2}, {NAN, 0})), "label 0");
  EXPECT_SAYS(with_labels(of<std::int32_t>({2}, {0, -1})), "label 1 is -1");
  EXPECT_SAYS(with_labels(of<float>({2, 2}, {0, 1, 1, 1})), "label 1 is no one-hot row");
  EXPECT_SAYS(with_labels(of<float>({3}, {0, 1, 1})), "2 samples and 3 labels");
  EXPECT_SAYS(with_labels(Tensor::scalar<float>(1)), "one number");
  write_npy(folder_ / "flat.npy", of<float>({2}, {1, 2}));
  EXPECT_SAYS(error(folder_ / "flat.npy"), "flat.npy");
  write_npy(folder_ / "thin.npy", Tensor(DType::kU8, {2, 0, 5}));
  EXPECT_SAYS(error(folder_ / "thin.npy"), "thin.npy");
}

TEST_F(DatasetTest, Hdf5FromSeveralThreads) {
  constexpr std::int64_t kSamples = 40;
  std::vector<std::uint8_t> pixels(kSamples * 6);
  std::vector<std::int32_t> labels(kSamples);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 7);
  const H5Image file;
  file.root().write("x_train", of<std::uint8_t>({1, 2, 3}, {9, 9, 9, 9, 9, 9}));
  file.root().write("y_train", of<std::int32_t>({1}, {0}));
  file.root().write("x_test", of<std::uint8_t>({kSamples, 2, 3}, pixels));
  file.root().write("y_test", of<std::int32_t>({kSamples}, labels));
  save_file(folder_ / "set.h5", file.bytes());
  const auto set = open_dataset(folder_ / "set.h5", plain(2, 3));
  ASSERT_EQ(set->size(), kSamples);
  std::vector<std::vector<float>> read(kSamples);
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = t; i < kSamples; i += 4) read[static_cast<std::size_t>(i)] = load(*set, i);
    });
  }
  for (auto& t : threads) t.join();
  for (std::int64_t i = 0; i < kSamples; ++i) {
    EXPECT_EQ(set->label(i), i % 7);
    for (std::size_t k = 0; k < 6; ++k) EXPECT_EQ(read[static_cast<std::size_t>(i)][k], static_cast<float>(6 * i + static_cast<std::int64_t>(k)));
  }
  folder_.write("bad.h5", "no HDF5");
  EXPECT_SAYS(error(folder_ / "bad.h5"), "bad.h5");
}

TEST_F(DatasetTest, UnknownThings) {
  EXPECT_SAYS(error(folder_ / "none.npy"), "none.npy");
  EXPECT_SAYS(error(folder_.write("set.tar", "x")), "set.tar");
  EXPECT_SAYS(error(sets("types.npz")), "known name");
  EXPECT_THROW(open_dataset(std::string(5000, 'x'), {}), InvalidData);
}

}  // namespace
}  // namespace tandem::io
