// predict, evaluate, convert and weights as their users run them: a trained network (models/xception_mini) on small made-up images.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "io/npy.h"
#include "io/write_png.h"
#include "tests/support/files.h"
#include "tests/support/node_test.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

std::size_t lines(const std::string& text) { return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')); }

io::Pixels picture(std::uint64_t seed) {
  io::Pixels p{40 + static_cast<int>(seed % 30), 64, 3, {}};
  std::mt19937_64 engine(seed);
  p.data.resize(static_cast<std::size_t>(p.height) * static_cast<std::size_t>(p.width) * 3);
  for (std::size_t i = 0; i < p.data.size(); ++i) p.data[i] = static_cast<std::uint8_t>((i * (seed + 3) / 17 + (engine() >> 60)) & 255);
  return p;
}

constexpr int kFiles = 20, kDamaged = 2;

// PNG files, some with names that hurt, two of them cut in the middle.
void make_images(const TemporaryFolder& folder) {
  fs::create_directories(folder / "images");
  for (int i = 0; i < kFiles; ++i) {
    std::string name = folder / "images/" + (i == 3   ? std::string("a b\n\xff,\"q\".png")
                                             : i == 5 ? std::string("-dash.png")
                                                      : std::to_string(i) + ".png");
    io::write_png(name, picture(static_cast<std::uint64_t>(i)));
    if (i % 10 == 7) fs::resize_file(name, fs::file_size(name) / 2);
  }
}

std::vector<std::string> predict_words(const std::string& model, const TemporaryFolder& folder, const std::string& out) {
  return {"predict", model, folder / "images", "--out", folder / out, "--topk", "3", "--preprocess", "tf", "--resize", "pil-bilinear"};
}

std::vector<std::string> with(std::vector<std::string> words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
  return words;
}

TEST(Predict, RowsInOrderAndDamagedFilesApart) {
  const TemporaryFolder folder;
  make_images(folder);
  const Finished r = run_tandem(predict_words(trained_network(), folder, "rows.csv"));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("18 images, 2 failed, "), std::string::npos) << r.err;
  const std::string rows = read_text(folder / "rows.csv"), errors = read_text(folder / "rows.csv.errors.csv");
  EXPECT_TRUE(rows.starts_with("path,top1,prob1,top2,prob2,top3,prob3\n-dash.png,")) << rows.substr(0, 80);
  EXPECT_EQ(lines(rows), 1u + kFiles - kDamaged + 1);  // one path holds a newline
  EXPECT_EQ(lines(errors), 1u + kDamaged) << errors;
  EXPECT_NE(rows.find("\"a b\n\xff,\"\"q\"\".png\","), std::string::npos);
  EXPECT_EQ(run_tandem(with(predict_words(trained_network(), folder, "strict.csv"), {"--strict"})).code, 4);
}

TEST(Predict, TheBytesDependOnNeitherDevicesNorBatchNorThreads) {
  const TemporaryFolder folder;
  make_images(folder);
  // Each value of devices, batch and threads meets each value of the others.
  struct Setting {
    const char *devices, *batch, *threads;
  };
  constexpr Setting kSettings[] = {{"cpu", "1", "1"},    {"cpu", "7", "2"},    {"cpu", "32", "1"},  {"cpu:2", "1", "2"},
                                   {"cpu:2", "7", "1"},  {"cpu:2", "32", "2"}, {"cpu:3", "1", "1"}, {"cpu:3", "7", "2"},
                                   {"cpu:3", "32", "1"}, {"cpu:8", "1", "2"},  {"cpu:8", "7", "1"}, {"cpu:8", "32", "2"}};
  for (const char* precision : {"f32", "bf16"}) {
    std::string want;
    for (const Setting& c : kSettings) {
      const Finished r =
          run_tandem(with(predict_words(trained_network(), folder, "rows.csv"),
                          {"--precision", precision, "--devices", c.devices, "--batch", c.batch, "--threads", c.threads, "--workers", c.batch}));
      ASSERT_EQ(r.code, 0) << r.err;
      const std::string got = read_text(folder / "rows.csv") + read_text(folder / "rows.csv.errors.csv");
      if (want.empty()) want = got;
      EXPECT_EQ(got, want) << precision << " " << c.devices << " batch " << c.batch << " threads " << c.threads;
    }
  }
}

// Starts the program and kills it after `delay`.
void run_and_kill(std::vector<std::string> words, std::chrono::milliseconds delay) {
  words.insert(words.begin(), TANDEM_BINARY_DIR "/bin/tandem");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    if (!freopen("/dev/null", "w", stderr)) _exit(126);
    execv(argv[0], argv.data());
    _exit(127);
  }
  std::this_thread::sleep_for(delay);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
}

TEST(Predict, AKilledRunIsContinuedToTheSameBytes) {
  const TemporaryFolder folder;
  make_images(folder);
  ASSERT_EQ(run_tandem(predict_words(trained_network(), folder, "whole.csv")).code, 0);
  std::mt19937 random(5);
  for (int round = 0; round < 5; ++round) {
    for (const char* name : {"rows.csv", "rows.csv.state", "rows.csv.errors.csv"}) fs::remove(folder / name);
    auto words = with(predict_words(trained_network(), folder, "rows.csv"), {"--batch", "2", "--devices", "cpu:2"});
    for (int kills = 0; kills < 3; ++kills) {
      run_and_kill(words, std::chrono::milliseconds(random() % 150));
      if (kills == 0 && fs::exists(folder / "rows.csv.state")) words.emplace_back("--continue");
    }
    auto last = with(predict_words(trained_network(), folder, "rows.csv"), {"--devices", "cpu:3"});
    if (fs::exists(folder / "rows.csv.state")) last.emplace_back("--continue");
    const Finished r = run_tandem(last);
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(read_text(folder / "rows.csv"), read_text(folder / "whole.csv"));
    EXPECT_EQ(read_text(folder / "rows.csv.errors.csv"), read_text(folder / "whole.csv.errors.csv"));
  }
  const Finished other = run_tandem(with(predict_words(trained_network(), folder, "rows.csv"), {"--continue", "--topk", "2"}));
  EXPECT_EQ(other.code, 2) << other.err;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(Predict, AReportIsOnePageAboutEverything) {
  const TemporaryFolder folder;
  make_images(folder);
  for (const char* result : {"rows.csv", "rows.jsonl", "rows.h5"}) {
    const Finished r = run_tandem(with(predict_words(trained_network(), folder, result), {"--report", folder / "r.html"}));
    ASSERT_EQ(r.code, 0) << r.err;
    const std::string page = read_text(folder / "r.html");
    EXPECT_EQ(count(page, "<img"), 18u);
    EXPECT_EQ(count(page, "data:image/png;base64,"), 18u);
    EXPECT_EQ(count(page, "<tr><td>could not be read</td><td>2</td></tr>"), 1u) << page.substr(0, 4000);
    EXPECT_EQ(count(page, "<td>17.png</td>"), 1u) << "the error list";
    EXPECT_NE(page.find("a b\\x0a%FF,&quot;q&quot;.png"), std::string::npos);
    for (const char* never : {"<script", "http:", "https:", "src=\"/", "\xff"}) EXPECT_EQ(page.find(never), std::string::npos) << never;
  }
  // A continued run reports on the rows of the earlier one too.
  auto words = with(predict_words(trained_network(), folder, "rows.csv"), {"--report", folder / "again.html", "--continue"});
  ASSERT_EQ(run_tandem(words).code, 0);
  const std::string again = read_text(folder / "again.html");
  EXPECT_EQ(count(again, "<img"), 18u);
  EXPECT_EQ(count(again, "<td>17.png</td>"), 1u);
  EXPECT_NE(again.find("<td>kept of an earlier run</td><td>20</td>"), std::string::npos);
  words.back() = "--report=" + (folder / "no/r.html");
  EXPECT_EQ(run_tandem(words).code, 4);
  words.back() = "--report=" + (folder / "r.txt");
  EXPECT_EQ(run_tandem(words).code, 2);
}

TEST(Predict, WithoutAWordOnPixelsItNamesTheChoices) {
  const TemporaryFolder folder;
  make_images(folder);
  // The tested file carries no record of this program.
  const Finished r = run_tandem({"predict", trained_network(), folder / "images", "--out", folder / "rows.csv"});
  EXPECT_EQ(r.code, 2);
  for (const char* choice : {"tf", "torch", "caffe", "none", "--mean"}) EXPECT_NE(r.err.find(choice), std::string::npos) << r.err;
  EXPECT_FALSE(fs::exists(folder / "rows.csv"));
}

TEST(Convert, TheRecordTravelsAndFoldingKeepsTheFunction) {
  const TemporaryFolder folder;
  folder.write("labels.txt", "a\nb\nc\nd\ne\n");
  ASSERT_EQ(
      run_tandem({"convert", trained_network(), "-o", folder / "m.onnx", "--inference", "--preprocess", "tf", "--labels", folder / "labels.txt"})
          .code,
      0);
  const auto shown = nlohmann::json::parse(run_tandem({"inspect", folder / "m.onnx", "--json"}).out);
  EXPECT_NE(shown.dump().find("127.5"), std::string::npos);
  io::write_npy(folder / "x.npy", random_f32({3, 3, 64, 64}, 9));
  const std::string input = nlohmann::json::parse(run_tandem({"inspect", trained_network(), "--json"}).out).at("inputs")[0];
  std::vector<Tensor> results;
  for (const std::string& model : {trained_network(), folder / "m.onnx"}) {
    const Finished r = run_tandem({"run", model, "--input", input + "=" + (folder / "x.npy"), "--output", folder / "out"});
    ASSERT_EQ(r.code, 0) << r.err;
    std::string name = read_text(folder / "out/outputs.txt");
    name.pop_back();
    results.push_back(io::read_npy(folder / ("out/" + name + ".npy")));
  }
  expect_close(results[1], results[0], 1e-4, 1e-5);
}

TEST(Weights, SavedAndLoadedTheNetworkIsTheSameToTheBit) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_tandem({"weights", "save", trained_network(), "-o", folder / "w.h5"}).code, 0);
  const Finished loaded = run_tandem({"weights", "load", trained_network(), folder / "w.h5", "-o", folder / "l.onnx"});
  ASSERT_EQ(loaded.code, 0) << loaded.err;
  EXPECT_EQ(loaded.out.find("unused"), std::string::npos);
  EXPECT_EQ(loaded.out.find("missing"), std::string::npos);
  EXPECT_TRUE(run_tandem({"weights", "diff", trained_network(), folder / "l.onnx"}).out.ends_with("\nequal\n"));
  EXPECT_TRUE(run_tandem({"weights", "diff", folder / "w.h5", folder / "l.onnx"}).out.ends_with("\nequal\n"));
  EXPECT_EQ(run_tandem({"weights", "save", trained_network(), "-o", folder / "k.h5", "--layout", "keras3"}).code, 2);
}

// A constant that is no weight of a layer makes another network too.
TEST(Weights, NetworksWithoutKerasNamesAreComparedWhole) {
  const TemporaryFolder folder;
  const auto network = [&](const std::string& file, float scale) {
    OnnxModel m;
    m.graph.inputs = {value_bytes("x", 1, {-1, 2, 4, 4})};
    m.graph.nodes = {{"Mul", {"x", "scale"}, {"scaled"}}, {"Conv", {"scaled", "features.0.weight"}, {"y"}}};
    m.graph.initializers = {float_tensor("scale", {1}, {scale}), float_tensor("features.0.weight", {1, 2, 1, 1}, {3, 4})};
    m.graph.outputs = {value_bytes("y", 1, {-1, 1, 4, 4})};
    return folder.write(file, model_bytes(m));
  };
  const std::string one = network("1.onnx", 1), two = network("2.onnx", 2);
  const Finished shown = run_tandem({"weights", "show", one});
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(shown.out.find("features.0.weight"), std::string::npos) << shown.out;
  EXPECT_NE(shown.err.find("not Keras'"), std::string::npos) << shown.err;
  EXPECT_TRUE(run_tandem({"weights", "diff", one, one}).out.ends_with("\nequal\n"));
  EXPECT_TRUE(run_tandem({"weights", "diff", one, two}).out.ends_with("\ndifferent\n"));
  EXPECT_EQ(run_tandem({"weights", "save", one, "-o", folder / "w.h5"}).code, 3);
}

TEST(Evaluate, CountsWhatPredictFinds) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "set/a");
  fs::create_directories(folder / "set/b");
  folder.write("labels.txt", "a\nb\nc\nd\ne\n");
  for (int i = 0; i < 12; ++i)
    io::write_png(folder / ("set/" + std::string(i % 2 ? "a/" : "b/") + std::to_string(i) + ".png"), picture(static_cast<std::uint64_t>(100 + i)));
  const std::vector<std::string> options = {"--preprocess", "tf", "--labels", folder / "labels.txt"};
  auto words = std::vector<std::string>{"evaluate", trained_network(), folder / "set", "--json"};
  words.insert(words.end(), options.begin(), options.end());
  const Finished r = run_tandem(words);
  ASSERT_EQ(r.code, 0) << r.err;
  const auto found = nlohmann::json::parse(r.out);
  EXPECT_EQ(found.at("samples"), 12);
  EXPECT_EQ(found.at("top5"), 1.0);
  int right = 0;
  for (const std::string label : {"a", "b"}) {
    auto predict = std::vector<std::string>{"predict", trained_network(), folder / ("set/" + label), "--out", folder / "rows.csv"};
    predict.insert(predict.end(), options.begin(), options.end());
    ASSERT_EQ(run_tandem(predict).code, 0);
    std::istringstream rows(read_text(folder / "rows.csv"));
    for (std::string row; std::getline(rows, row);) right += row.find(".png," + label + ",") != std::string::npos;
  }
  EXPECT_DOUBLE_EQ(found.at("top1").get<double>(), right / 12.0);
  // One folder among the labels, one not: neither by name nor by order.
  fs::rename(folder / "set/b", folder / "set/unknown");
  EXPECT_EQ(run_tandem(words).code, 4);
}

}  // namespace
}  // namespace tandem::test
