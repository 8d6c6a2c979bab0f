// Data sets as training takes them: parts, targets that are numbers, weights, images before the record.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "io/batch_source.h"
#include "io/class_weights.h"
#include "io/dataset.h"
#include "io/hdf5.h"
#include "io/npy.h"
#include "io/write_png.h"
#include "runtime/base/error.h"
#include "runtime/base/safe_file.h"
#include "tests/io/message_of.h"
#include "tests/support/files.h"

namespace tandem::io {
namespace {

using test::message_of;
using Names = std::vector<std::string>;
using Floats = std::vector<float>;

std::string sets(const std::string& name) { return TANDEM_SOURCE_DIR "/tests/data/sets/" + name; }

Preprocess gray(int height, int width) {
  Preprocess p;
  p.height = height;
  p.width = width;
  p.channels = Channels::kGray;
  p.mean = {0};
  p.std = {1};
  return p;
}

template <class T>
Tensor of(Shape shape, const std::vector<T>& values) {
  return Tensor::of<T>(std::move(shape), std::span<const T>(values));
}

class DatasetTraining : public testing::Test {
 protected:
  void image(const std::string& name, std::uint8_t value) {
    folder_.write(name);
    write_png(folder_ / name, {2, 2, 1, {value, value, value, value}});
  }
  std::unique_ptr<Dataset> open(const std::string& path, Part part = Part::kTraining, Targets targets = Targets::kClasses) {
    return open_dataset(path, {.preprocess = gray(2, 2), .part = part, .targets = targets});
  }
  test::TemporaryFolder folder_;
};

float first_value(const Dataset& set, std::int64_t i) {
  Floats out(static_cast<std::size_t>(set.sample_size()));
  set.load(i, out);
  return out[0];
}

TEST_F(DatasetTraining, FoldersHaveTwoParts) {
  image("train/cat/a.png", 1);
  image("train/dog/b.png", 2);
  image("val/dog/c.png", 3);
  EXPECT_TRUE(has_validation_part(folder_.path()));
  EXPECT_FALSE(has_validation_part(folder_ / "train"));
  const auto train = open(folder_.path()), val = open(folder_.path(), Part::kMeasuring);
  EXPECT_EQ(train->class_names(), (Names{"cat", "dog"}));
  EXPECT_EQ(train->size(), 2);
  EXPECT_EQ(first_value(*train, 1), 2);
  EXPECT_EQ(val->class_names(), Names{"dog"});
  EXPECT_EQ(first_value(*val, 0), 3);
  EXPECT_TRUE(train->has_images());
  EXPECT_EQ(train->image(1).rgb, std::vector<std::uint8_t>(12, 2));
}

TEST_F(DatasetTraining, AValidationFolderBesideTheClassesIsNoClass) {
  image("cat/a.png", 1);
  image("dog/b.png", 2);
  image("val/dog/c.png", 3);
  EXPECT_EQ(open(folder_.path())->class_names(), (Names{"cat", "dog"}));
  image("train/d.png", 4);  // a class of that name
  EXPECT_EQ(open(folder_.path())->class_names(), (Names{"cat", "dog", "train"}));
}

TEST_F(DatasetTraining, ArchivesHaveTwoPartsAndWeightsOfTheTrainingPart) {
  const auto train = open(sets("parts.npz")), test = open(sets("parts.npz"), Part::kMeasuring);
  EXPECT_EQ(train->size(), 3);
  EXPECT_EQ(train->label(0), 2);
  EXPECT_EQ(train->weight(0), 0.5);
  EXPECT_EQ(train->weight(2), 2);
  EXPECT_TRUE(train->has_images());
  EXPECT_EQ(train->image(1).width, 5);
  EXPECT_EQ(train->image(1).rgb[3 * 19], 139);
  EXPECT_EQ(test->size(), 2);
  EXPECT_EQ(test->label(0), 1);
  EXPECT_EQ(test->weight(0), 1);
}

TEST_F(DatasetTraining, HdfHasPartsValuesAndWeights) {
  const H5Image file;
  file.root().write("x_train", of<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  file.root().write("y_train", of<float>({2, 2}, {0.5f, -1, 2, 8}));
  file.root().write("x_test", of<float>({1, 2, 2}, {7, 8, 9, 10}));
  file.root().write("y_test", of<float>({1, 2}, {3, 4}));
  save_file(folder_ / "two.h5", file.bytes());
  const auto train = open(folder_ / "two.h5", Part::kTraining, Targets::kValues);
  EXPECT_EQ(train->size(), 2);
  EXPECT_FALSE(train->has_images());
  EXPECT_EQ(train->value_count(), 2);
  Floats y(2);
  train->values(1, y);
  EXPECT_EQ(y, (Floats{2, 8}));
  EXPECT_EQ(train->label(0), -1);
  EXPECT_EQ(open(folder_ / "two.h5", Part::kMeasuring, Targets::kValues)->size(), 1);

  const H5Image weighted;
  weighted.root().write("x", of<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  weighted.root().write("y", of<std::int64_t>({2}, {0, 3}));
  weighted.root().write("sample_weight", of<float>({2}, {0.25f, 4}));
  save_file(folder_ / "w.h5", weighted.bytes());
  EXPECT_EQ(open(folder_ / "w.h5")->weight(1), 4);
  EXPECT_EQ(open(folder_ / "w.h5")->label(1), 3);

  const H5Image negative;
  negative.root().write("x", of<float>({1, 2, 2}, {1, 2, 3, 4}));
  negative.root().write("y", of<std::int64_t>({1}, {0}));
  negative.root().write("sample_weight", of<float>({1}, {-1}));
  save_file(folder_ / "n.h5", negative.bytes());
  EXPECT_NE(message_of<InvalidData>([&] { open(folder_ / "n.h5"); }).find("sample weight is -1"), std::string::npos);
}

TEST_F(DatasetTraining, ListsAndArraysGiveValues) {
  image("a.png", 5);
  image("b.png", 6);
  folder_.write("list.csv", "path,label\na.png,0.5\nb.png,-3\n");
  const auto list = open(folder_ / "list.csv", Part::kTraining, Targets::kValues);
  EXPECT_EQ(list->value_count(), 1);
  Floats y(1);
  list->values(1, y);
  EXPECT_EQ(y, Floats{-3});
  folder_.write("words.csv", "a.png,0.5\nb.png,dog\n");
  EXPECT_NE(message_of<InvalidData>([&] { open(folder_ / "words.csv", Part::kTraining, Targets::kValues); }).find("\"dog\""), std::string::npos);
  image("classes/cat/a.png", 1);
  EXPECT_THROW(open(folder_ / "classes", Part::kTraining, Targets::kValues), InvalidData);
  write_npy(folder_ / "x.npy", of<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_THROW(open(folder_ / "x.npy", Part::kTraining, Targets::kValues), InvalidData);  // no targets
  write_npy(folder_ / "x_y.npy", of<float>({2, 3}, {0, 1, 1, 1, 0, 1}));
  const auto several = open(folder_ / "x.npy", Part::kTraining, Targets::kValues);
  EXPECT_EQ(several->value_count(), 3);
  EXPECT_EQ(several->weight(0), 1);
}

TEST_F(DatasetTraining, TargetsAreClassesWhereEachIsOne) {
  image("a.png", 5);
  image("b.png", 6);
  const auto list = [&](const std::string& text) { return open(folder_.write("list.csv", text), Part::kTraining, Targets::kEither); };
  EXPECT_EQ(list("a.png,3\nb.png,0\n")->label(0), 3);
  EXPECT_EQ(list("a.png,cat\nb.png,dog\n")->class_names(), (Names{"cat", "dog"}));
  const auto one_hot = list("path,x,y,z\na.png,0,0,1\nb.png,1,0,0\n");
  EXPECT_EQ(one_hot->value_count(), 0);
  EXPECT_EQ(one_hot->label(0), 2);
  EXPECT_EQ(one_hot->class_names(), (Names{"x", "y", "z"}));
  const auto several = list("path,x,y,z\na.png,0,1,1\nb.png,1,0,0\n");
  EXPECT_EQ(several->value_count(), 3);
  EXPECT_EQ(several->value_names(), (Names{"x", "y", "z"}));
  EXPECT_TRUE(several->class_names().empty());
  EXPECT_EQ(several->label(0), -1);
  Floats y(3);
  several->values(0, y);
  EXPECT_EQ(y, (Floats{0, 1, 1}));
  EXPECT_EQ(list("a.png,0.5\nb.png,1\n")->value_count(), 1);
  EXPECT_EQ(list("a.png,-1\nb.png,1\n")->value_count(), 1);
  EXPECT_EQ(list("a.png,0,note\nb.png,1,other\n")->label(1), 1);  // what follows is about something else
  const std::string uneven = message_of<InvalidData>([&] { list("a.png,0,1\nb.png,1\n"); });
  for (const char* said : {"list.csv\"", "line 2: \"b.png\" has 1 target, expected 2"}) EXPECT_NE(uneven.find(said), std::string::npos) << uneven;
  // Asked for classes, rows with a single 1 are classes; other columns are not looked at.
  EXPECT_EQ(open(folder_.write("c.csv", "a.png,0,1\nb.png,1,0\n"))->label(0), 1);
  EXPECT_EQ(open(folder_.write("c.csv", "a.png,3,640\nb.png,1,480\n"))->label(0), 3);

  const auto arrays = [&](const Tensor& targets) {
    write_npy(folder_ / "x.npy", of<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
    write_npy(folder_ / "x_y.npy", targets);
    return open(folder_ / "x.npy", Part::kTraining, Targets::kEither);
  };
  EXPECT_EQ(arrays(of<float>({2, 3}, {0, 0, 1, 1, 0, 0}))->label(0), 2);
  EXPECT_EQ(arrays(of<float>({2, 3}, {0, 1, 1, 1, 0, 0}))->value_count(), 3);
  EXPECT_EQ(arrays(of<float>({2, 3}, {0, 0, 2, 1, 0, 0}))->value_count(), 3);
  EXPECT_EQ(arrays(of<float>({2, 1}, {4, 1}))->label(0), 4);
  EXPECT_EQ(arrays(of<float>({2}, {4, 1.5f}))->value_count(), 1);
  EXPECT_EQ(arrays(of<std::int64_t>({2}, {4, -1}))->value_count(), 1);
  EXPECT_NE(message_of<InvalidData>([&] { arrays(of<float>({2, 2}, {0, 0, 0.5f, NAN})); }).find("target 1 holds nan"), std::string::npos);
}

TEST_F(DatasetTraining, SharesAndNumbersOfClasses) {
  const auto arrays = [&](const Tensor& targets, Targets wanted) {
    write_npy(folder_ / "x.npy", of<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
    write_npy(folder_ / "x_y.npy", targets);
    return open(folder_ / "x.npy", Part::kTraining, wanted);
  };
  const auto refused = [&](const Tensor& targets, Targets wanted) { return message_of<InvalidData>([&] { arrays(targets, wanted); }); };
  const auto shares = arrays(of<float>({2, 3}, {0.2f, 0.1f, 0.7f, 1, 0, 0}), Targets::kShares);
  EXPECT_EQ(shares->value_count(), 3);
  EXPECT_EQ(class_of_shares(*shares, 0), 2);
  EXPECT_EQ(class_of_shares(*shares, 1), 0);
  EXPECT_EQ(arrays(of<float>({2, 3}, {0, 0, 1, 1, 0, 0}), Targets::kShares)->label(0), 2);
  EXPECT_EQ(arrays(of<std::int32_t>({2}, {4, 1}), Targets::kShares)->label(0), 4);
  EXPECT_NE(refused(of<float>({2, 2}, {0.5f, 0.5f, 0.5f, 0.6f}), Targets::kShares).find("label 1"), std::string::npos);
  EXPECT_NE(refused(of<float>({2}, {1, 0.5f}), Targets::kShares).find("label 1 is 0.5"), std::string::npos);
  EXPECT_NE(refused(of<float>({2, 2}, {0.25f, 0.75f, 1, 0}), Targets::kClasses).find("label 0 is no one-hot row"), std::string::npos);
  EXPECT_NE(refused(of<float>({2, 2}, {0, 1, 1, 0}), Targets::kNumbers).find("[2, 2]"), std::string::npos);
  EXPECT_EQ(arrays(of<std::int32_t>({2, 1}, {4, 1}), Targets::kNumbers)->label(0), 4);
  EXPECT_TRUE(arrays(of<std::int32_t>({2}, {4, -1}), Targets::kEither)->has_integer_values());
  EXPECT_FALSE(arrays(of<float>({2}, {4, -1}), Targets::kEither)->has_integer_values());

  image("a.png", 5);
  image("b.png", 6);
  const auto list = [&](const std::string& text, Targets wanted) { return open(folder_.write("list.csv", text), Part::kTraining, wanted); };
  EXPECT_EQ(list("path,x,y\na.png,0.5,0.5\nb.png,1,0\n", Targets::kShares)->value_names(), (Names{"x", "y"}));
  EXPECT_EQ(list("a.png,0,1\nb.png,1,0\n", Targets::kShares)->label(0), 1);
  EXPECT_EQ(list("a.png,3,640\nb.png,1,480\n", Targets::kShares)->label(0), 3);  // a label and something else
  EXPECT_EQ(list("a.png,3,640\nb.png,1,480\n", Targets::kNumbers)->label(0), 3);
  EXPECT_EQ(list("a.png,cat\nb.png,dog\n", Targets::kNumbers)->class_names(), (Names{"cat", "dog"}));
  EXPECT_THROW(list("a.png,0,1\nb.png,1,0\n", Targets::kNumbers), InvalidData);
  EXPECT_TRUE(list("a.png,-1\nb.png,0\n", Targets::kEither)->has_integer_values());
  EXPECT_FALSE(list("a.png,-1.0\nb.png,0\n", Targets::kEither)->has_integer_values());
}

DecodeQueue::Submit at_once() {
  return [](const std::function<void()>& task) { task(); };
}

// Images of 4 x 5 bytes: the crop that is drawn, squashed to the size and normalised; what is erased is 0.
TEST_F(DatasetTraining, ImagesAreCroppedBeforeTheRecordAndErasedToTheMean) {
  Preprocess p = gray(3, 3);
  p.resize = ResizeKind::kTfBilinear;
  p.mean = {50};
  p.std = {4};
  const std::shared_ptr<const Dataset> data = open_dataset(sets("parts.npz"), {.preprocess = p, .part = Part::kTraining});
  BatchOptions o;
  o.batch_size = 3;
  o.seed = 9;
  o.shuffle = false;
  o.sample_shape = {1, 3, 3};
  o.outputs = 3;
  o.preprocess = p;
  o.augment = parse_augmentation("resized-crop=0.3:0.6,flip=1");
  BatchSource source(data, o, at_once());
  source.start({4, 0});
  const auto b = source.next();
  const auto x = b->x.as<float>();
  for (std::int64_t i = 0; i < 3; ++i) {
    const Window w = draw_resized_crop(o.augment, {9, 4, i}, 4, 5);
    std::vector<std::uint8_t> part;
    for (int y = w.y; y < w.y + w.height; ++y) {
      for (int column = w.x; column < w.x + w.width; ++column) part.push_back(static_cast<std::uint8_t>(100 + 20 * i + 5 * y + column));
    }
    Floats resized(9);
    resize_tf_bilinear({part.data(), w.height, w.width, 1}, 3, 3, resized);
    for (int y = 0; y < 3; ++y) {
      for (int column = 0; column < 3; ++column)
        EXPECT_EQ(x[static_cast<std::size_t>(9 * i + 3 * y + column)], (resized[static_cast<std::size_t>(3 * y + 2 - column)] - 50) / 4);
    }
  }
  o.augment = parse_augmentation("erase=1");
  BatchSource erased(data, o, at_once());
  const auto values = erased.next()->x;
  EXPECT_GT(std::count(values.as<float>().begin(), values.as<float>().end(), 0.0f), 0);
  EXPECT_LT(std::count(values.as<float>().begin(), values.as<float>().end(), 0.0f), 27);
}

TEST_F(DatasetTraining, ColoursOfBgrAreThoseOfThePicture) {
  folder_.write("red/a.png");
  write_png(folder_ / "red/a.png", {1, 1, 3, {200, 100, 50}});
  Preprocess p;
  p.height = p.width = 1;
  p.channels = Channels::kBgr;
  p.mean = {10, 20, 30};
  p.layout = InputLayout::kNhwc;
  BatchOptions o;
  o.sample_shape = {1, 1, 3};
  o.outputs = 2;
  o.preprocess = p;
  o.augment = parse_augmentation("saturation=1");
  BatchSource source(open_dataset(folder_.path(), {.preprocess = p}), o, at_once());
  const auto x = source.next()->x;
  // gray = 0.299 * 200 + 0.587 * 100 + 0.114 * 50 = 124.2; v = gray + f (v - gray), one f for all three, from blue to red
  const auto v = x.as<float>();
  const float f = (v[0] + 10 - 124.2f) / (50 - 124.2f);
  EXPECT_NEAR(v[1] + 20, 124.2f + f * (100 - 124.2f), 1e-3f);
  EXPECT_NEAR(v[2] + 30, std::min(255.0f, 124.2f + f * (200 - 124.2f)), 1e-3f);
}

TEST_F(DatasetTraining, ClassWeights) {
  image("cat/a.png", 1);
  image("cat/b.png", 1);
  image("cat/c.png", 1);
  image("dog/a.png", 1);
  const auto data = open(folder_.path());
  BatchOptions o;
  o.outputs = 3;
  o.class_map = {2, 0};
  EXPECT_EQ(balanced_class_weights(*data, o), (Floats{2, 0, 4.0f / 6}));  // 4 / (2 * 1), none, 4 / (2 * 3)
  o.subset = {0, 3};
  EXPECT_EQ(balanced_class_weights(*data, o), (Floats{1, 0, 1}));
  o.class_map = {5, 0};
  EXPECT_THROW(balanced_class_weights(*data, o), InvalidData);

  const Names labels = {"cat", "big dog", "7"};
  EXPECT_EQ(read_class_weights(folder_.write("a.json", R"({"cat": 2.5, "7": 0, "1": 3})"), labels, 3), (Floats{2.5f, 3, 0}));
  EXPECT_EQ(read_class_weights(folder_.write("a.txt", "cat 2.5\n\nbig dog,\t4\r\n"), labels, 3), (Floats{2.5f, 4, 1}));
  EXPECT_EQ(read_class_weights(folder_.write("b.json", " [1, 0.5, 2]"), labels, 3), (Floats{1, 0.5f, 2}));
  for (const char* bad :
       {"[1, 2]", "[1, 2, -1]", "[1, 2, \"a\"]", "[1, 2", "cow 1", "cat", "3 1", "cat -1", "cat x", "{\"cat\": \"a\"}", "{\"cat\"", "1"}) {
    const std::string file = folder_.write("bad.txt", bad);
    EXPECT_NE(message_of<InvalidData>([&] { read_class_weights(file, labels, 3); }).find("bad.txt"), std::string::npos) << bad;
  }
}

}  // namespace
}  // namespace tandem::io
