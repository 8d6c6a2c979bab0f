// Names of classes in `tandem train`: --labels, and what a run that goes on keeps.
#include <gtest/gtest.h>

#include <filesystem>

#include "importer/importer.h"
#include "io/preprocess.h"
#include "io/write_png.h"
#include "tests/support/files.h"
#include "tests/support/subprocess.h"
#include "tests/support/train_program.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

// Two images in each of these folders, and a list of the same with numbers for classes.
std::string make_folders(const TemporaryFolder& folder, const std::string& set, const Words& names) {
  std::string list;
  for (std::size_t c = 0; c < names.size(); ++c) {
    fs::create_directories(folder / (set + "/" + names[c]));
    for (std::size_t i = 0; i < 2; ++i) {
      io::Pixels p{16, 16, 3, {}};
      for (std::size_t k = 0; k < 16 * 16 * 3; ++k) p.data.push_back(static_cast<std::uint8_t>(k * (2 * c + i + 3) % 251));
      const std::string name = set + "/" + names[c] + "/" + std::to_string(i) + ".png";
      io::write_png(folder / name, p);
      list += name + "," + std::to_string(c) + "\n";
    }
  }
  folder.write(set + ".csv", list);
  return folder / set;
}

Words train_words(const std::string& data, const Words& more) {
  return Words{"train", TANDEM_SOURCE_DIR "/tests/data/training/net_a_softmax.onnx",
               data,    "--preprocess",
               "tf",    "--batch",
               "4",     "--optimizer",
               "sgd",   "--lr",
               "0.01"} +
         more;
}

void expect_says(const Finished& r, int code, const Words& all) {
  EXPECT_EQ(r.code, code) << r.err;
  for (const std::string& said : all) EXPECT_NE(r.err.find(said), std::string::npos) << said << " is not in: " << r.err;
}

std::string labels_in(const std::string& model) { return import_file(model).metadata["tandem.labels"]; }

constexpr const char* kFive = "a\nb\nc\nd\ne\n";

TEST(TrainLabels, AnotherSetOfClassesIsNotResumedOn) {
  const TemporaryFolder folder;
  const std::string set = make_folders(folder, "set", {"a", "b", "c", "d", "e"}), run = folder / "run";
  ASSERT_EQ(run_tandem(train_words(set, {"--output", run})).code, 0);
  struct Case {
    Words names;
    std::string said;
  };
  for (const Case& c : {Case{{"v", "w", "x", "y", "z"}, "class 0 of the run in \"" + run + "\" is \"a\", in the data it is \"v\""},
                        {{"a", "b", "c", "dd", "e"}, "class 3 of the run in \"" + run + "\" is \"d\", in the data it is \"dd\""},
                        {{"a", "b", "c", "d"}, "is \"e\", in the data it is not there"}}) {
    const std::string other = make_folders(folder, "other" + std::to_string(c.names.size()) + c.names[3], c.names);
    expect_says(run_tandem(train_words(other, {"--resume", run, "--epochs", "2"})), 4, {"--resume", c.said});
    EXPECT_EQ(read_text(run + "/labels.txt"), kFive);
  }
  // Another order of the same names.
  const std::string order = folder.write("order.txt", "b\na\nc\nd\ne\n");
  expect_says(run_tandem(train_words(set, {"--resume", run, "--epochs", "2", "--labels", order})), 4, {"class 0", "is \"a\"", "it is \"b\""});
  // Numbers for classes: the names stay, and the bits are those of the folders.
  ASSERT_EQ(run_tandem(train_words(set, {"--epochs", "2", "--output", folder / "whole"})).code, 0);
  expect_says(run_tandem(train_words(folder / "set.csv", {"--resume", run, "--epochs", "2"})), 0, {});
  EXPECT_EQ(read_text(run + "/labels.txt"), kFive);
  EXPECT_EQ(labels_in(run + "/model.onnx"), R"(["a","b","c","d","e"])");
  EXPECT_TRUE(read_text(run + "/weights.h5") == read_text(folder / "whole/weights.h5"));
}

TEST(TrainLabels, LabelsNameNumbersAndTravelWithTheModel) {
  const TemporaryFolder folder;
  make_folders(folder, "set", {"a", "b", "c", "d", "e"});
  const std::string labels = folder.write("labels.txt", "ant\nbee\ncow\ndog\nelk\n");
  expect_says(run_tandem(train_words(folder / "set.csv", {"--labels", labels, "--output", folder / "run"})), 0, {});
  EXPECT_EQ(read_text(folder / "run/labels.txt"), "ant\nbee\ncow\ndog\nelk\n");
  EXPECT_EQ(labels_in(folder / "run/model.onnx"), R"(["ant","bee","cow","dog","elk"])");
  EXPECT_NE(read_text(folder / "run/args.toml").find("labels = \""), std::string::npos);
}

// By name, whatever the order is: training on the folders as they are, with the classes' numbers exchanged.
TEST(TrainLabels, ClassFoldersAreFoundByName) {
  const TemporaryFolder folder;
  const std::string set = make_folders(folder, "set", {"a", "b", "c", "d", "e"});
  const std::string labels = folder.write("labels.txt", "e\nd\nc\nb\na\n");
  std::string list = read_text(folder / "set.csv");
  for (std::size_t at = list.find(','); at != std::string::npos; at = list.find(',', at + 1))
    list[at + 1] = static_cast<char>('4' - list[at + 1] + '0');
  const std::string turned = folder.write("turned.csv", list);
  for (const auto& [data, output] : {std::pair(set, "folders"), {turned, "list"}}) {
    expect_says(run_tandem(train_words(data, {"--labels", labels, "--val-data", data, "--output", folder / output})), 0, {});
    EXPECT_EQ(read_text(folder / (std::string(output) + "/labels.txt")), "e\nd\nc\nb\na\n");
  }
  EXPECT_TRUE(read_text(folder / "folders/weights.h5") == read_text(folder / "list/weights.h5"));
  EXPECT_EQ(read_text(folder / "folders/summary.csv"), read_text(folder / "list/summary.csv"));
  // evaluate finds the folders by the names that the model has now.
  const Finished of_folders = run_tandem({"evaluate", folder / "folders/model.onnx", set}),
                 of_list = run_tandem({"evaluate", folder / "folders/model.onnx", turned});
  ASSERT_EQ(of_folders.code, 0) << of_folders.err;
  EXPECT_EQ(of_folders.out, of_list.out);
}

TEST(TrainLabels, LabelsDecideHowManyClassesThereAre) {
  const TemporaryFolder folder;
  const std::string set = make_folders(folder, "set", {"a", "b", "c"});
  expect_says(run_tandem(train_words(set, {"--labels", folder.write("four.txt", "c\nx\nb\na\n"), "--output", folder / "four"})), 0,
              {"new head", "x 4"});
  EXPECT_EQ(read_text(folder / "four/labels.txt"), "c\nx\nb\na\n");
  // In the order of the folders where no name is known.
  expect_says(run_tandem(train_words(set, {"--labels", folder.write("three.txt", "x\ny\nz\n"), "--output", folder / "three"})), 0, {});
  EXPECT_EQ(read_text(folder / "three/labels.txt"), "x\ny\nz\n");
}

TEST(TrainLabels, LabelsThatDoNotFitAreRefused) {
  const TemporaryFolder folder;
  const std::string set = make_folders(folder, "set", {"a", "b", "c"});
  const auto refused = [&](const std::string& data, const std::string& file, const Words& more, const Words& said) {
    expect_says(run_tandem(train_words(data, more + Words{"--labels", file, "--output", folder / "o"})), 4, said);
    EXPECT_FALSE(fs::exists(folder / "o"));
  };
  refused(set, folder / "none.txt", {}, {"none.txt"});
  refused(set, folder.write("empty.txt", ""), {}, {"empty.txt"});
  refused(set, folder.write("two.txt", "x\ny\n"), {}, {"3 classes"});
  refused(set, folder.write("some.txt", "a\nb\nx\n"), {}, {"2 of 3 class names", "\"c\" is not"});
  refused(set, folder.write("three.txt", "a\nb\nc\n"), {"--classes", "4"}, {"3 labels in", "three.txt", "--classes says 4"});
  refused(folder / "set.csv", folder.write("two.txt", "x\ny\n"), {}, {"set/c/0.png", "label 2"});
  folder.write("values.csv", "set/a/0.png,0.5,2,-1\nset/b/0.png,1,2,3\n");
  refused(folder / "values.csv", folder.write("two.txt", "x\ny\n"), {}, {"2 labels in", "3 targets"});
}

}  // namespace
}  // namespace tandem::test
