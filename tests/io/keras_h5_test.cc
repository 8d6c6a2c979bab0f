#include "io/keras_h5.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "io/hdf5.h"
#include "runtime/base/error.h"
#include "runtime/base/safe_file.h"
#include "runtime/base/sha256.h"
#include "tests/support/files.h"

namespace tandem::io {
namespace {

namespace fs = std::filesystem;

std::string data(const std::string& name) { return std::string(TANDEM_SOURCE_DIR) + "/tests/data/keras_h5/" + name; }

// One line for each weight, as tests/data/keras_h5/good/*.txt (made with h5py).
std::string listing(const KerasWeights& weights) {
  std::ostringstream out;
  for (const Layer& layer : weights.layers) {
    if (layer.weights.empty()) out << layer.name << "\t-\n";
    for (const LayerWeight& w : layer.weights) {
      const Tensor t = w.read();
      EXPECT_EQ(t.shape(), w.shape);
      EXPECT_EQ(t.dtype(), w.dtype);
      Sha256 sum;
      sum.update(t.data(), t.bytes());
      out << layer.name << '\t' << w.name << '\t' << name_of(t.dtype()) << '\t';
      for (std::size_t i = 0; i < t.shape().size(); ++i) out << (i ? "," : "") << t.shape()[i];
      out << '\t' << sum.hex() << '\n';
    }
  }
  return out.str();
}

TEST(KerasH5, ReadsWhatKerasAndItsUsersWrite) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(data("good"))) {
    if (entry.path().extension() != ".h5") continue;
    SCOPED_TRACE(entry.path().filename().string());
    fs::path truth = entry.path();
    truth.replace_extension(".txt");
    EXPECT_EQ(listing(read_keras_h5(entry.path().string())), test::read_text(truth.string()));
    ++files;
  }
  EXPECT_EQ(files, 15);
}

// Lists everything and reads every value.
std::string fault(const std::string& path) {
  try {
    listing(read_keras_h5(path));
  } catch (const InvalidModel& e) {
    return e.what();
  } catch (const Unsupported& e) {
    return e.what();
  }
  return "";
}

TEST(KerasH5, RefusesBadFilesWithTheReason) {
  const std::pair<const char*, const char*> files[] = {
      {"dangling_soft_link", "named by a link and missing"},
      {"external_link", "link to another file"},
      {"flipped_bytes", "HDF5"},
      {"huge_declared", "declares"},
      {"missing_dataset", "kernel:0"},
      {"missing_layer", ""},  // eight layers are a whole file, but not for the network of nine
      {"no_layer_names", "layer_names"},
      {"lzf", "filter 32000"},
      {"keras3.weights", "Keras 3"},
      {"loop_link", ""},        // the looping link is not named by any list
      {"integer_dataset", ""},  // refused by whoever wants floats
  };
  for (const auto& [name, reason] : files) {
    const std::string text = fault(data(std::string("bad/") + name + ".h5"));
    if (*reason == '\0') {
      EXPECT_EQ(text, "") << name;
    } else {
      EXPECT_NE(text.find(reason), std::string::npos) << name << ": " << text;
      EXPECT_NE(text.find(name), std::string::npos) << text;
    }
  }
}

// What to do instead stands in the message.
TEST(KerasH5, RefusesKeras3LayoutsWithAWayOut) {
  const test::TemporaryFolder folder;
  EXPECT_NE(fault(data("bad/keras3.weights.h5")).find("model.save(\"x.h5\")"), std::string::npos) << fault(data("bad/keras3.weights.h5"));
  save_file(folder / "m.keras", std::string_view("PK\x03\x04 and so on", 13));
  EXPECT_NE(fault(folder / "m.keras").find("load_model(...).save(\"x.h5\")"), std::string::npos) << fault(folder / "m.keras");
}

TEST(KerasH5, RefusesDamagedFiles) {
  const test::TemporaryFolder folder;
  const std::string good = test::read_text(data("good/net_a.h5"));
  for (const std::size_t bytes : {0u, 7u, 96u, 600u, 22040u, 40000u}) {
    save_file(folder / "cut.h5", std::string_view(good).substr(0, bytes));
    EXPECT_NE(fault(folder / "cut.h5"), "") << bytes;
  }
  save_file(folder / "text.h5", std::string_view("layer_names"));
  EXPECT_NE(fault(folder / "text.h5"), "");
  EXPECT_NE(fault(folder / "none.h5"), "");
  EXPECT_NE(fault(folder / "."), "");
}

// The file has a link that leads back to the root; no list names it.
TEST(KerasH5, LinksInCirclesEnd) {
  const KerasWeights w = read_keras_h5(data("bad/loop_link.h5"));
  EXPECT_EQ(w.layers.size(), read_keras_h5(data("good/net_a.h5")).layers.size());
}

LayerWeight weight(const std::string& name, Shape shape, float first) {
  Tensor t(DType::kF32, shape);
  for (float& v : t.as_mutable<float>()) v = first++;
  return {name, DType::kF32, shape, [t] { return t; }};
}

TEST(KerasH5, WhatIsWrittenIsReadBack) {
  const test::TemporaryFolder folder;
  // "a/b" nests in "a"; order is kept, though groups are made alphabetically.
  const std::vector<Layer> layers = {{"zeta", {weight("zeta/kernel:0", {2, 3}, 1), weight("zeta/bias:0", {3}, 7)}},
                                     {"act", {}},
                                     {"a/b", {weight("a/b/kernel:0", {1, 1, 2, 2}, 0)}},
                                     {"a", {weight("a/gamma:0", {4}, 3)}}};
  write_keras_h5(folder / "w.h5", layers, {{"tandem.labels", std::string(70000, 'x')}, {"tandem.preprocess", "{}"}});
  EXPECT_EQ(folder.files(), 1u);
  const KerasWeights back = read_keras_h5(folder / "w.h5");
  KerasWeights expected;
  expected.layers = layers;
  EXPECT_EQ(listing(back), listing(expected));
  EXPECT_EQ(back.keras_version, "2.15.0");
  EXPECT_EQ(back.backend, "tensorflow");
  EXPECT_EQ(back.texts.at("tandem.labels").size(), 70000u);
  ASSERT_TRUE(back.sha256.has_value());
  verify_digest(back, "w.h5");
  // The same bytes each time.
  EXPECT_EQ(keras_h5_bytes(layers, {}), keras_h5_bytes(layers, {}));
}

// The order of the digest's parts is a format: name NUL dtype NUL dims NUL bytes.
TEST(KerasH5, DigestCoversNamesTypesShapesAndBytes) {
  Sha256 sum;
  const float values[] = {1, 2};
  sum.update(
      std::string_view("d/kernel:0\0float32\0"
                       "2,1\0",
                       23));
  sum.update(values, sizeof values);
  const std::vector<Layer> layers = {{"d", {weight("d/kernel:0", {2, 1}, 1)}}};
  EXPECT_EQ(weights_digest(layers), sum.hex());
  const test::TemporaryFolder folder;
  std::string bytes(reinterpret_cast<const char*>(keras_h5_bytes(layers, {}).data()), keras_h5_bytes(layers, {}).size());
  const std::string two("\0\0\x80\x3f\0\0\0\x40", 8);
  const std::size_t at = bytes.find(two);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 7] = '\x41';
  save_file(folder / "flipped.h5", bytes);
  EXPECT_THROW(verify_digest(read_keras_h5(folder / "flipped.h5"), "flipped.h5"), InvalidModel);
}

TEST(KerasH5, LongListsAreSplitAsKerasDoes) {
  const std::vector<std::string> names(3277, std::string(20, 'n'));  // 65,540 bytes
  const auto two = split_names(names);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].size(), 1639u);
  EXPECT_EQ(two[1].size(), 1638u);
  EXPECT_EQ(split_names(std::vector<std::string>(3225, std::string(20, 'n'))).size(), 1u);
  EXPECT_EQ(split_names({}).size(), 1u);
  EXPECT_THROW(split_names({std::string(64513, 'n')}), InvalidData);
  std::vector<Layer> layers;
  for (int i = 0; i < 2000; ++i) layers.push_back({"a_rather_long_name_of_a_layer_that_does_nothing_" + std::to_string(i), {}});
  const test::TemporaryFolder folder;
  write_keras_h5(folder / "many.h5", layers, {});
  const H5File file(folder / "many.h5");
  EXPECT_FALSE(file.root().has_attribute("layer_names"));
  EXPECT_TRUE(file.root().has_attribute("layer_names0"));
  EXPECT_TRUE(file.root().has_attribute("layer_names1"));
  EXPECT_FALSE(file.root().has_attribute("layer_names2"));
  const KerasWeights back = read_keras_h5(folder / "many.h5");
  ASSERT_EQ(back.layers.size(), 2000u);
  EXPECT_EQ(back.layers[1999].name, layers[1999].name);
}

TEST(KerasH5, LayerNamesMustDiffer) { EXPECT_THROW(keras_h5_bytes({{"a", {}}, {"a", {}}}, {}), InvalidData); }

TEST(SaveFile, ReplacesLinksAndCleansUpAfterTheDead) {
  const test::TemporaryFolder folder;
  save_file(folder / "victim", std::string_view("old"));
  fs::create_symlink(folder / "victim", folder / "link");
  fs::create_hard_link(folder / "victim", folder / "hard");
  std::ofstream(folder / ".link.tandem-2147483000-0") << "left over";
  save_file(folder / "link", std::string_view("new"));
  save_file(folder / "hard", std::string_view("new"));
  EXPECT_EQ(test::read_text(folder / "victim"), "old");
  EXPECT_EQ(test::read_text(folder / "link"), "new");
  EXPECT_EQ(test::read_text(folder / "hard"), "new");
  EXPECT_EQ(folder.files(), 3u);
  EXPECT_THROW(save_file(folder / "no/file", std::string_view("x")), InvalidData);
  EXPECT_THROW(save_file(folder / "", std::string_view("x")), InvalidData);
}

}  // namespace
}  // namespace tandem::io
