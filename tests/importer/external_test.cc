// External data: only regular files beneath the model's folder are opened.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "importer/sha1.h"
#include "runtime/base/error.h"
#include "tests/support/files.h"
#include "tests/support/import.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using Entries = std::vector<std::pair<std::string, std::string>>;

const std::string kTwo("\x00\x00\x80\x3f\x00\x00\x00\x40", 8);  // 1, 2

std::string model_with(const Entries& entries) {
  OnnxModel model = one_node("Add", 17, {{2}}, {});
  model.graph.nodes[0].inputs.push_back("w");
  model.graph.initializers = {external_tensor("w", 1, {2}, entries)};
  return model_bytes(model);
}

void put(const fs::path& file, const std::string& bytes) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

class ExternalTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ = fs::path(folder_.path()) / "m" / "model.onnx";
    put(model_.parent_path() / "w.bin", "________" + kTwo);
    put(fs::path(folder_.path()) / "secret.bin", kTwo);
  }
  std::vector<double> weights(const Entries& entries, const fs::path& model, const ImportOptions& options = {}) {
    put(model, model_with(entries));
    const Graph graph = import_file(model, options);
    for (const Value& v : graph.values) {
      if (v.name == "w") return v.constant.to_doubles();
    }
    return {};
  }
  std::string refused(const Entries& entries) {
    try {
      weights(entries, model_);
    } catch (const InvalidModel& e) {
      EXPECT_NE(std::string(e.what()).find("tensor \"w\""), std::string::npos) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "not refused";
    return {};
  }
  const fs::path here() const { return model_.parent_path(); }

  TemporaryFolder folder_;
  fs::path model_;
};

TEST_F(ExternalTest, ReadsBesideTheModelFromAnyWorkingFolder) {
  const std::vector<double> want{1, 2};
  EXPECT_EQ(weights({{"location", "w.bin"}, {"offset", "8"}, {"length", "8"}}, model_), want);
  EXPECT_EQ(weights({{"location", "./w.bin"}, {"offset", "8"}}, model_), want);
  put(here() / "sub" / "v.bin", kTwo);
  EXPECT_EQ(weights({{"location", "sub/v.bin"}}, model_), want);
  EXPECT_EQ(weights({{"location", "sub/v.bin"}, {"checksum", sha1_hex(bytes_of(kTwo))}}, model_), want);
}

TEST_F(ExternalTest, RefusesLocationsBeforeTheFileSystemIsTouched) {
  for (const std::string& location : {std::string("../secret.bin"), std::string("a/../../secret.bin"), std::string("sub/../../secret.bin"),
                                      (fs::path(folder_.path()) / "secret.bin").string(), std::string("a\\..\\s"), std::string(),
                                      std::string("w.bin\0x", 7), std::string(5000, 'a'), std::string("."), std::string("sub/"), std::string("..")}) {
    EXPECT_NE(refused({{"location", location}}).find("external data location"), std::string::npos) << location;
  }
}

TEST_F(ExternalTest, RefusesBadNumbersAndKeys) {
  for (const Entries& entries : std::vector<Entries>{{{"location", "w.bin"}, {"offset", "-8"}},
                                                     {{"location", "w.bin"}, {"offset", "9"}},
                                                     {{"location", "w.bin"}, {"offset", "9223372036854775807"}},
                                                     {{"location", "w.bin"}, {"offset", "18446744073709551615"}},
                                                     {{"location", "w.bin"}, {"offset", "8x"}},
                                                     {{"location", "w.bin"}, {"offset", ""}},
                                                     {{"location", "w.bin"}, {"length", "0"}},
                                                     {{"location", "w.bin"}, {"length", "7"}},
                                                     {{"location", "w.bin"}, {"length", "9223372036854775807"}},
                                                     {{"location", "w.bin"}, {"length", "-1"}},
                                                     {{"location", "w.bin"}, {"__class__", "x"}},
                                                     {{"location", "w.bin"}, {"location", "w.bin"}},
                                                     {{"location", "w.bin"}, {"checksum", "0000"}},
                                                     {{"offset", "0"}}}) {
    refused(entries);
  }
}

TEST_F(ExternalTest, RefusesLinksPipesDevicesAndFolders) {
  fs::create_symlink("w.bin", here() / "link.bin");
  fs::create_directory_symlink("..", here() / "up");
  ASSERT_EQ(::mkfifo((here() / "pipe.bin").c_str(), 0600), 0);
  fs::create_directory(here() / "folder.bin");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_NE(refused({{"location", "link.bin"}}).find("symlink"), std::string::npos);
  EXPECT_NE(refused({{"location", "up/secret.bin"}}).find("symlink"), std::string::npos);
  EXPECT_NE(refused({{"location", "pipe.bin"}}).find("not a regular file"), std::string::npos);
  EXPECT_NE(refused({{"location", "folder.bin"}}).find("not a regular file"), std::string::npos);
  EXPECT_NE(refused({{"location", "nope.bin"}}).find("missing"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(ExternalTest, HardLinksOnlyWhenAllowed) {
  fs::create_hard_link(fs::path(folder_.path()) / "secret.bin", here() / "hard.bin");
  EXPECT_NE(refused({{"location", "hard.bin"}}).find("hard links"), std::string::npos);
  ImportOptions options;
  options.allow_hard_links = true;
  EXPECT_EQ(weights({{"location", "hard.bin"}}, model_, options), (std::vector<double>{1, 2}));
}

// Download caches keep the model and its data as symlinks into one folder.
TEST_F(ExternalTest, FollowsACacheAndNothingElse) {
  const fs::path blobs = fs::path(folder_.path()) / "blobs", snapshot = fs::path(folder_.path()) / "snapshot";
  put(blobs / "aaa", model_with({{"location", "model.onnx.data"}}));
  put(blobs / "bbb", kTwo);
  fs::create_directory(snapshot);
  fs::create_symlink("../blobs/aaa", snapshot / "model.onnx");
  fs::create_symlink("../blobs/bbb", snapshot / "model.onnx.data");
  EXPECT_NO_THROW(import_file(snapshot / "model.onnx"));
  fs::remove(snapshot / "model.onnx.data");
  fs::create_symlink("../secret.bin", snapshot / "model.onnx.data");
  EXPECT_THROW(import_file(snapshot / "model.onnx"), InvalidModel);
}

TEST_F(ExternalTest, BytesWithoutAFolderHaveNoExternalData) {
  EXPECT_NE(refusal(model_with({{"location", "w.bin"}})).find("no folder"), std::string::npos);
  EXPECT_NO_THROW(import_text(model_with({{"location", "w.bin"}, {"offset", "8"}}), here()));
}

TEST_F(ExternalTest, ModelFilesMustBeRegularAndBelowTwoGiB) {
  EXPECT_THROW(import_file(here() / "none.onnx"), InvalidData);
  EXPECT_THROW(import_file(here()), Error);
  const fs::path big = here() / "big.onnx";
  put(big, "x");
  fs::resize_file(big, (std::uint64_t{1} << 31) + 1);
  try {
    import_file(big);
    ADD_FAILURE();
  } catch (const InvalidModel& e) {
    EXPECT_NE(std::string(e.what()).find("external data"), std::string::npos);
  }
}

TEST_F(ExternalTest, SmallTensorsDoNotNeedTheFileAnyMore) {
  OnnxModel m = one_node("Add", 17, {{4}}, {});
  m.graph.nodes[0].inputs.push_back("w");
  m.graph.initializers = {external_tensor("w", 1, {4}, {{"location", "w.bin"}})};
  put(model_, model_bytes(m));
  const fs::path data = model_.parent_path() / "w.bin";
  put(data, std::string(12, '\0') + std::string("\0\0\x80\x3f", 4));
  const Graph graph = import_file(model_);
  fs::resize_file(data, 0);
  const auto w = std::find_if(graph.values.begin(), graph.values.end(), [](const Value& v) { return v.name == "w"; });
  ASSERT_NE(w, graph.values.end());
  EXPECT_EQ(w->constant.to_doubles(), (std::vector<double>{0, 0, 0, 1}));
}

TEST_F(ExternalTest, AFileThatBecomesShorterIsNoticedBeforeItIsRead) {
  constexpr std::int64_t kMany = 64 << 10;  // large enough to stay in the file
  OnnxModel m = one_node("Add", 17, {{kMany}}, {});
  m.graph.nodes[0].inputs.push_back("w");
  m.graph.initializers = {external_tensor("w", 1, {kMany}, {{"location", "w.bin"}})};
  put(model_, model_bytes(m));
  const fs::path data = model_.parent_path() / "w.bin";
  put(data, std::string(4 * kMany, 'a'));
  const Graph graph = import_file(model_);
  const auto w = std::find_if(graph.values.begin(), graph.values.end(), [](const Value& v) { return v.name == "w"; });
  ASSERT_NE(w, graph.values.end());
  EXPECT_EQ(w->constant.made().size(), kMany);
  fs::resize_file(data, 100);
  try {
    w->constant.made();
    FAIL() << "not noticed";
  } catch (const InvalidModel& e) {
    EXPECT_NE(e.message().find("\"w.bin\" was made shorter while it was in use: 100 bytes"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace tandem::test
