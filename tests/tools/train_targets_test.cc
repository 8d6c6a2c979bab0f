// `tandem train` and `evaluate` where targets are several classes at once or numbers: steps, metrics and files beside PyTorch 2.15's in float64 (SGD
// on x W + b with binary_cross_entropy_with_logits, mse_loss and l1_loss), what --loss auto takes, what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "importer/importer.h"
#include "io/npy.h"
#include "io/write_png.h"
#include "models/trainable.h"
#include "tests/support/files.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/subprocess.h"
#include "tests/support/train_program.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<double>;

template <class T = float>
void write(const std::string& path, const Shape& shape, const std::vector<T>& values) {
  io::write_npy(path, Tensor::of<T>(shape, std::span<const T>(values)));
}

// Four samples of four numbers, as images of 2 x 2.
void write_samples(const TemporaryFolder& folder) {
  std::vector<float> x;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) x.push_back(static_cast<float>((i * 7 + j * 3) % 5 - 2) / 4);
  }
  write(folder / "x.npy", {4, 2, 2, 1}, x);
}

// x W + b, and an activation where it is named.
std::string network(const TemporaryFolder& folder, int outputs, const std::string& end = "") {
  std::vector<float> kernel, bias = {0.125f, -0.25f, 0.5f};
  for (int j = 0; j < 4; ++j) {
    for (int c = 0; c < outputs; ++c) kernel.push_back(static_cast<float>((j * 5 + c * 3) % 7 - 3) / 8);
  }
  bias.resize(static_cast<std::size_t>(outputs));
  OnnxModel m;
  m.graph.inputs = {value_bytes("image", 1, {-1, 2, 2, 1})};
  m.graph.initializers = {int64_tensor("flat", {2}, {-1, 4}), float_tensor("head/kernel", {4, outputs}, kernel),
                          float_tensor("head/bias", {outputs}, bias)};
  m.graph.nodes = {{"Reshape", {"image", "flat"}, {"features"}}, {"Gemm", {"features", "head/kernel", "head/bias"}, {"scores"}}};
  if (!end.empty()) m.graph.nodes.push_back({end, {"scores"}, {"activated"}});
  m.graph.outputs = {value_bytes(end.empty() ? "scores" : "activated", 1, {-1, outputs})};
  return folder.write("net" + std::to_string(outputs) + end + ".onnx", model_bytes(m));
}

Words train_words(const TemporaryFolder& folder, const std::string& model, const std::string& name, const Words& more) {
  return Words{"train",
               model,
               folder / "x.npy",
               "--val-data",
               folder / "x.npy",
               "--preprocess",
               "none",
               "--channels",
               "gray",
               "--optimizer",
               "sgd",
               "--batch",
               "4",
               "--epochs",
               "2",
               "--no-shuffle",
               "--output",
               folder / name} +
         more;
}

Numbers array_of(const std::string& model, const std::string& name) {
  const Graph graph = import_file(model);
  for (const models::TrainableArray& a : models::trainable_arrays(graph)) {
    if (a.name == name) return graph.value(a.value).constant.made().to_doubles();
  }
  return {};
}

void expect_close(const Numbers& found, const Numbers& wanted, const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-6 * std::max(1.0, std::abs(wanted[i]))) << what << " " << i;
}

// summary.csv: the names of its columns but the epoch's, and the numbers of each row.
struct Summary {
  std::string names;
  std::vector<Numbers> rows;
};
Summary summary_of(const std::string& run) {
  Summary s;
  std::istringstream in(read_text(run + "/summary.csv"));
  std::getline(in, s.names);
  s.names = s.names.substr(s.names.find(',') + 1);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string field;
    s.rows.emplace_back();
    for (std::getline(fields, field, ','); std::getline(fields, field, ',');) s.rows.back().push_back(std::stod(field));
  }
  return s;
}

constexpr const char* kSeveral = "several";
const Numbers kKernelSeveral = {0.0753141865006273,   0.07036002334524807,  0.11040992682053571,  -0.193770537783724,
                                -0.12910061767240233, 0.1944564048223132,   -0.00565620552263002, 0.014559143209731479,
                                -0.10145843023823921, -0.22500327170985238, 0.6137077637549881,   -0.01875752961399202},
              kBiasSeveral = {0.044088136152836466, -0.08634182338918744, -0.33276776620951387};

void write_several(const TemporaryFolder& folder) {
  write_samples(folder);
  write(folder / "y.npy", {4, 3}, {0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0});
}

// With a sigmoid, with plain scores, and with a softmax that --loss auto exchanges: the same steps.
TEST(TrainTargets, SeveralClassesAtOnceAreTrainedAsInTorch) {
  const TemporaryFolder folder;
  write_several(folder);
  for (const char* end : {"Sigmoid", "", "Softmax"}) {
    const std::string name = std::string(kSeveral) + end, run = folder / name;
    const Finished r = run_tandem(train_words(folder, network(folder, 3, end), name, {"--lr", "4"}));
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.err.find("--loss auto: binary_crossentropy (zeros and ones, several of them 1 at once)"), std::string::npos) << r.err;
    EXPECT_EQ(r.err.find("now in a sigmoid") != std::string::npos, std::string(end) == "Softmax") << r.err;
    EXPECT_NE(r.err.find(" - accuracy: 0.3333 - loss: 0.7053 - val_accuracy: 0.8333 - val_loss: 0.6245 - learning_rate: 4"), std::string::npos)
        << r.err;
    expect_close(array_of(run + "/model.onnx", "head/kernel"), kKernelSeveral, "kernel");
    expect_close(array_of(run + "/model.onnx", "head/bias"), kBiasSeveral, "bias");
    const Summary s = summary_of(run);
    EXPECT_EQ(s.names, "accuracy,learning_rate,loss,val_accuracy,val_loss");
    ASSERT_EQ(s.rows.size(), 2u);
    expect_close(s.rows[0], {1.0 / 3, 4, 0.8236550484641306, 1.0 / 3, 0.7053149302821115}, "first epoch");
    expect_close(s.rows[1], {1.0 / 3, 4, 0.7053149302821115, 10.0 / 12, 0.6245112139952829}, "second epoch");
    const std::string page = read_text(run + "/report.html");
    EXPECT_NE(page.find("<h2>Labels</h2>"), std::string::npos);
    // Label 0: 2 of 4, the network says 3.
    EXPECT_NE(
        page.find(
            "<tr><td class=\"n\">0</td><td class=\"n\">2</td><td class=\"n\">0.6667</td><td class=\"n\">1.0000</td><td class=\"n\">0.8000</td>"),
        std::string::npos)
        << page;
    EXPECT_EQ(page.find("Confusion"), std::string::npos);
  }
}

// Shares of classes, from hand-written softmax and gradients in float64: not cut to the largest.
TEST(TrainTargets, SharesOfClassesAreTrainedAsTheyAre) {
  struct Case {
    const char *name, *end;
    Words more;
    Numbers kernel, first, second;  // rows of summary.csv
  };
  const Numbers plain = {-0.5036617660761845,  0.05307418355206313,  0.4505875825241214,    0.35945765783451306,
                         -0.3094849019463247,  0.07502724411181172,  0.0003908284280437907, 0.3780941726681965,
                         -0.12848500109624028, -0.27744249450869024, 0.11946124921852587,   -0.34201875470983567},
                plain_first = {0.5, 0.5, 1.0198532661685622, 0.75, 0.9537723060377528},
                plain_second = {0.75, 0.5, 0.9537723060377528, 0.75, 0.9063758485068851};
  const Words categorical = {"--loss", "categorical_crossentropy"};
  const std::vector<Case> cases = {
      {"plain", "Softmax", categorical, plain, plain_first, plain_second},
      {"logits", "", categorical, plain, plain_first, plain_second},
      {"auto", "Softmax", {}, plain, plain_first, plain_second},
      {"auto_logits", "", {}, plain, plain_first, plain_second},
      {"weighted",
       "Softmax",
       categorical + Words{"--class-weights", "weights.json"},
       {-0.569824370347101, 0.06926410374445507, 0.5005602666026459, 0.4503973024825223, -0.33680793583894436, 0.01141063335642211,
        -0.04086904656330015, 0.3984770890811484, -0.10760804251784827, -0.282486492107482, 0.1128670911412819, -0.3303805990337999},
       {0.5, 0.5, 1.3726417596214437, 0.75, 0.9022466555247348},
       {0.75, 0.5, 1.1084318462102563, 0.75, 0.8489217752829852}},
      {"smooth",
       "Softmax",
       categorical + Words{"--label-smoothing", "0.3"},
       {-0.4586897587402248, 0.03507296140284562, 0.4236167973373792, 0.3218883757138399, -0.2858183241867118, 0.08892994847287201,
        -0.0005294851231706452, 0.3715286472510814, -0.12099916212791079, -0.26915370945473144, 0.11977965558640233, -0.35062594613167086},
       {0.5, 0.5, 1.0636813911685619, 0.75, 0.9693132447293732},
       {0.75, 0.5, 1.0251050469678655, 0.75, 0.9321812936312379}}};
  const TemporaryFolder folder;
  write_samples(folder);
  write(folder / "y.npy", {4, 3}, {0.9f, 0.05f, 0.05f, 0.25f, 0.5f, 0.25f, 0, 0.375f, 0.625f, 1, 0, 0});
  folder.write("weights.json", "[2, 1, 0.5]");
  for (const Case& c : cases) {
    Words more = c.more;
    for (std::string& word : more) word = word == "weights.json" ? folder / word : word;
    const Finished r = run_tandem(train_words(folder, network(folder, 3, c.end), c.name, more + Words{"--lr", "0.5"}));
    ASSERT_EQ(r.code, 0) << c.name << r.err;
    const std::string run = folder / c.name;
    expect_close(array_of(run + "/model.onnx", "head/kernel"), c.kernel, c.name);
    const Summary s = summary_of(run);
    EXPECT_EQ(s.names, "accuracy,learning_rate,loss,val_accuracy,val_loss");
    ASSERT_EQ(s.rows.size(), 2u);
    expect_close(s.rows[0], c.first, c.name);
    expect_close(s.rows[1], c.second, c.name);
    EXPECT_NE(read_text(run + "/report.html").find("Confusion"), std::string::npos);
    const Finished e = run_tandem({"evaluate", run + "/model.onnx", folder / "x.npy", "--json"});
    ASSERT_EQ(e.code, 0) << e.err;
    const auto j = nlohmann::json::parse(e.out);
    expect_close({j.at("loss"), j.at("top1")}, {c.second[4], c.second[3]}, c.name);
  }
}

TEST(TrainTargets, RowsThatTheLossCannotTakeAreRefused) {
  const TemporaryFolder folder;
  write_samples(folder);
  const std::string net = network(folder, 3, "Softmax");
  const auto refused = [&](const std::vector<float>& rows, const char* loss, const std::string& said) {
    write(folder / "y.npy", {4, 3}, rows);
    for (const Finished& r : {run_tandem(train_words(folder, net, "out", {"--loss", loss})),
                              run_tandem({"evaluate", net, folder / "x.npy", "--preprocess", "none", "--channels", "gray", "--loss", loss})}) {
      EXPECT_EQ(r.code, 4) << r.err;
      for (const std::string& part : {std::string("x.npy"), said}) EXPECT_NE(r.err.find(part), std::string::npos) << r.err;
    }
  };
  refused({1, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0}, "categorical_crossentropy", "label 2 is no class and no shares of classes");
  refused({1, 0, 0, 0.5f, 1, -0.5f, 0, 1, 0, 1, 0, 0}, "categorical_crossentropy", "label 1 is no class");
  refused({1, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0}, "sparse_categorical_crossentropy", "labels have shape [4, 3], expected one class number");
  refused({0.5f, 0.5f, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0}, "sparse_categorical_crossentropy", "labels have shape [4, 3]");
}

// By hand from torch's scores after two steps: label 0 has 0.75 of the pairs in order, label 1 all, label 2 one of three.
TEST(TrainTargets, EvaluateSaysWhatLabelsAreWorth) {
  const TemporaryFolder folder;
  write_several(folder);
  for (const char* end : {"Sigmoid", ""}) {
    ASSERT_EQ(run_tandem(train_words(folder, network(folder, 3, end), end + std::string("run"), {"--lr", "4"})).code, 0);
    const Words words = {"evaluate", folder / (std::string(end) + "run/model.onnx"), folder / "x.npy"};
    const Finished r = run_tandem(words + Words{"--json"});
    ASSERT_EQ(r.code, 0) << r.err;
    const auto j = nlohmann::json::parse(r.out);
    EXPECT_FALSE(j.contains("top1"));
    EXPECT_EQ(j.at("samples"), 4);
    expect_close({j.at("loss"), j.at("accuracy"), j.at("exact"), j.at("f1"), j.at("auc")}, {0.6245112139952829, 10.0 / 12, 0.5, 0.6, 25.0 / 36},
                 "all");
    const auto& labels = j.at("labels");
    ASSERT_EQ(labels.size(), 3u);
    expect_close({labels[0].at("precision"), labels[0].at("recall"), labels[0].at("f1"), labels[0].at("auc")}, {2.0 / 3, 1, 0.8, 0.75}, "label 0");
    expect_close({labels[2].at("samples"), labels[2].at("f1"), labels[2].at("auc")}, {1, 0, 1.0 / 3}, "label 2");
    const Finished text = run_tandem(words);
    EXPECT_TRUE(text.out.starts_with("samples 4  loss 0.6245  accuracy 0.8333  exact 0.5000  F1 0.6000  AUC 0.6944\n")) << text.out;
  }
}

TEST(TrainTargets, NumbersAreTrainedAsInTorch) {
  struct Case {
    const char *loss, *words;
    Numbers kernel, first, second;  // loss, mae, mse and those of the validation
  };
  const std::vector<Case> cases = {
      {"mse",
       " - loss: 2.8546 - mae: 1.4036 - mse: 2.8546 - val_loss: 2.5796 - val_mae: 1.3215 - val_mse: 2.5796",
       {-0.6738185882568359, 0.1015625, 0.3848114013671875, -0.14197540283203125, 0.1353302001953125, 0.3533782958984375, -0.3520545959472656,
        -0.12324714660644531},
       {0.25, 3.2030029296875, 1.50390625, 3.2030029296875, 2.854618337005377, 1.403594970703125, 2.854618337005377},
       {0.25, 2.854618337005377, 1.403594970703125, 2.854618337005377, 2.57958776632276, 1.3215109705924988, 2.57958776632276}},
      {"mae",
       " - loss: 1.4697 - mae: 1.4697 - mse: 3.1050 - val_loss: 1.4355 - val_mae: 1.4355 - val_mse: 3.0115",
       {-0.453125, 0.046875, 0.328125, -0.265625, 0.0, 0.375, -0.25, 0.0625},
       {0.25, 1.50390625, 1.50390625, 3.2030029296875, 1.4697265625, 1.4697265625, 3.1049633026123047},
       {0.25, 1.4697265625, 1.4697265625, 3.1049633026123047, 1.435546875, 1.435546875, 3.0114669799804688}}};
  const TemporaryFolder folder;
  write_samples(folder);
  write(folder / "y.npy", {4, 2}, {1.5f, -2, 0, 0.25f, -3, 1, 2, 2.5f});
  for (const Case& c : cases) {
    const Words loss = std::string(c.loss) == "mse" ? Words{} : Words{"--loss", c.loss};  // what auto takes
    const Finished r =
        run_tandem(train_words(folder, network(folder, 2), c.loss, loss + Words{"--lr", "0.25", "--monitor", "val_mae", "--save-best"}));
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.err.find(c.words), std::string::npos) << r.err;
    EXPECT_EQ(r.err.find("accuracy"), std::string::npos) << r.err;
    const std::string run = folder / c.loss;
    expect_close(array_of(run + "/model.onnx", "head/kernel"), c.kernel, c.loss);
    const Summary s = summary_of(run);
    EXPECT_EQ(s.names, "learning_rate,loss,mae,mse,val_loss,val_mae,val_mse");
    ASSERT_EQ(s.rows.size(), 2u);
    expect_close(s.rows[0], c.first, "first epoch");
    expect_close(s.rows[1], c.second, "second epoch");
    EXPECT_NE(read_text(run + "/report.html").find("<h2>Mean absolute error</h2>"), std::string::npos);
    EXPECT_TRUE(fs::exists(run + "/best.h5"));
  }
}

TEST(TrainTargets, EvaluateAndPredictSayNumbers) {
  const TemporaryFolder folder;
  write_samples(folder);
  write(folder / "y.npy", {4, 2}, {1.5f, -2, 0, 0.25f, -3, 1, 2, 2.5f});
  ASSERT_EQ(run_tandem(train_words(folder, network(folder, 2), "run", {"--lr", "0.25"})).code, 0);
  const Finished r = run_tandem({"evaluate", folder / "run/model.onnx", folder / "x.npy", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  const auto j = nlohmann::json::parse(r.out);
  EXPECT_FALSE(j.contains("top1"));
  expect_close({j.at("loss"), j.at("mae"), j.at("mse")}, {2.57958776632276, 1.3215109705924988, 2.57958776632276}, "all");
  const auto& outputs = j.at("outputs");
  ASSERT_EQ(outputs.size(), 2u);
  const Numbers first = {1.2941781282424927, 2.5109325519939034, 0.33868443075057686},
                second = {1.3488438129425049, 2.6482429806516166, -0.004370671180464969};
  expect_close({outputs[0].at("mae"), outputs[0].at("mse"), outputs[0].at("r2")}, first, "output 0");
  expect_close({outputs[1].at("mae"), outputs[1].at("mse"), outputs[1].at("r2")}, second, "output 1");
  const Finished text = run_tandem({"evaluate", folder / "run/model.onnx", folder / "x.npy"});
  EXPECT_TRUE(text.out.starts_with("samples 4  loss 2.57959  mae 1.32151  mse 2.57959  R2 ")) << text.out;

  fs::create_directories(folder / "images");
  io::write_png(folder / "images/a.png", {2, 2, 1, {0, 100, 200, 255}});
  const Words predict = {"predict", folder / "run/model.onnx", folder / "images", "--preprocess", "tf", "--channels", "gray",
                         "--out",   folder / "p.csv"};
  const Finished predicted = run_tandem(predict);
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_TRUE(read_text(folder / "p.csv").starts_with("path,value1,value2\na.png,")) << read_text(folder / "p.csv");
  EXPECT_EQ(run_tandem(predict + Words{"--topk", "2"}).code, 2);
}

// One output, two classes: the program writes a network that it can evaluate and predict with.
TEST(TrainTargets, OneOutputTellsTwoClassesApart) {
  const TemporaryFolder folder;
  write_samples(folder);
  write<std::int32_t>(folder / "y.npy", {4}, {1, 0, 0, 1});
  for (const char* end : {"Sigmoid", ""}) {
    const std::string run = std::string("run") + end;
    const Finished r = run_tandem(train_words(folder, network(folder, 1, end), run, {"--lr", "0.5"}));
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.err.find("--loss auto: binary_crossentropy"), std::string::npos) << r.err;
    const double val_loss = summary_of(folder / run).rows[1][4], val_accuracy = summary_of(folder / run).rows[1][3];
    const Finished e = run_tandem({"evaluate", folder / (run + "/model.onnx"), folder / "x.npy", "--json"});
    ASSERT_EQ(e.code, 0) << e.err;
    const auto j = nlohmann::json::parse(e.out);
    expect_close({j.at("loss"), j.at("top1")}, {val_loss, val_accuracy}, run);
    EXPECT_EQ(j.at("classes").size(), 2u);
  }
}

// Ten images; a list that names them.
std::string make_list(const TemporaryFolder& folder, const std::string& name, const std::vector<std::string>& targets,
                      const std::string& header = "") {
  std::string text = header;
  const char* between = name.ends_with(".csv") ? "," : " ";
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::string image = "img " + std::to_string(i) + ".png";
    io::Pixels p{16, 16, 3, {}};
    for (std::size_t k = 0; k < 16 * 16 * 3; ++k) p.data.push_back(static_cast<std::uint8_t>(k * (i + 3) % 251));
    io::write_png(folder / image, p);
    text += image + between + targets[i] + "\n";
  }
  return folder.write(name, text);
}

Words list_words(const std::string& list, const Words& more) {
  return Words{"train", TANDEM_SOURCE_DIR "/tests/data/training/net_a_softmax.onnx", list, "--preprocess", "tf", "--batch", "4", "--lr", "0.01"} +
         more;
}

TEST(TrainTargets, ListsHoldSeveralNumbers) {
  const TemporaryFolder folder;
  const std::vector<std::string> rows = {"0,1,1,0", "1,0,0,1", "1,1,1,1", "0,0,0,0", "0,1,0,1", "0,0,1,0"};
  const std::string list = make_list(folder, "several.csv", rows, "picture,cat,dog,red,big\n");
  const Finished r = run_tandem(list_words(list, {"--output", folder / "run", "--val-split", "0.4"}));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("--loss auto: binary_crossentropy"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("in a sigmoid"), std::string::npos) << r.err;
  EXPECT_EQ(read_text(folder / "run/labels.txt"), "cat\ndog\nred\nbig\n");
  const Finished evaluated = run_tandem({"evaluate", folder / "run/model.onnx", list});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_NE(evaluated.out.find("accuracy"), std::string::npos) << evaluated.out;
  EXPECT_NE(evaluated.out.find("\nred "), std::string::npos) << evaluated.out;
  // The same as Caffe's kind of list: the same network.
  std::vector<std::string> blanks = rows;
  for (std::string& row : blanks) std::replace(row.begin(), row.end(), ',', ' ');
  const std::string text = make_list(folder, "several.txt", blanks);
  ASSERT_EQ(run_tandem(list_words(text, {"--output", folder / "text", "--val-split", "0.4"})).code, 0);
  EXPECT_EQ(array_of(folder / "text/model.onnx", "logits/kernel"), array_of(folder / "run/model.onnx", "logits/kernel"));
  EXPECT_FALSE(array_of(folder / "run/model.onnx", "logits/kernel").empty());
  // Resuming goes on with the same loss.
  EXPECT_EQ(run_tandem(list_words(list, {"--resume", folder / "run", "--val-split", "0.4", "--epochs", "2"})).code, 0);
}

TEST(TrainTargets, ListsHoldSharesOfClasses) {
  const TemporaryFolder folder;
  const std::string shares = make_list(folder, "shares.csv", {"0.5,0.25,0.25", "1,0,0", "0,0.1,0.9"}, "path,cat,dog,red\n"),
                    one_hot = make_list(folder, "one.csv", {"0,1,0", "1,0,0"});
  const Words categorical = {"--loss", "categorical_crossentropy"};
  const Finished r = run_tandem(list_words(shares, categorical + Words{"--output", folder / "run", "--val-data", shares}));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(read_text(folder / "run/labels.txt"), "cat\ndog\nred\n");
  const double val_loss = summary_of(folder / "run").rows[0][4];
  const Finished e = run_tandem({"evaluate", folder / "run/model.onnx", shares, "--json"});
  ASSERT_EQ(e.code, 0) << e.err;
  const auto j = nlohmann::json::parse(e.out);
  EXPECT_NEAR(j.at("loss"), val_loss, 1e-6);
  EXPECT_EQ(j.at("classes")[2].at("label"), "red");
  EXPECT_EQ(run_tandem(list_words(one_hot, categorical + Words{"--output", folder / "one"})).code, 0);
  const Finished sparse = run_tandem(list_words(one_hot, {"--loss", "sparse_categorical_crossentropy", "--output", folder / "sparse"}));
  EXPECT_EQ(sparse.code, 4) << sparse.err;
  EXPECT_NE(sparse.err.find("3 targets, expected one class number"), std::string::npos) << sparse.err;
}

TEST(TrainTargets, ListsOfNumbersTrainARegression) {
  const TemporaryFolder folder;
  const std::string list = make_list(folder, "numbers.txt", {"1.5 -2", "2e1 0", "-0.5 3", "12 7"});
  const Finished r = run_tandem(list_words(list, {"--output", folder / "run"}));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("--loss auto: mse (numbers)"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("now in its plain scores"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find(" - mae: "), std::string::npos) << r.err;
  const Finished evaluated = run_tandem({"evaluate", folder / "run/model.onnx", list, "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(nlohmann::json::parse(evaluated.out).at("outputs").size(), 2u);
}

TEST(TrainTargets, WhatDoesNotFitIsRefused) {
  const TemporaryFolder folder;
  const std::string uneven = make_list(folder, "uneven.csv", {"0,1", "1,1", "1", "0,0"}, "path,a,b\n"),
                    word = make_list(folder, "word.csv", {"0,1", "1,x", "1,1"}), many = make_list(folder, "many.txt", {"1.5", "2.5", "3 4"}),
                    two = make_list(folder, "two.csv", {"0,2", "1,1"}), one = make_list(folder, "one.csv", {"0,1", "1,1"});
  struct Case {
    Words words;
    int code;
    Words said;
  };
  const std::vector<Case> cases = {
      {list_words(uneven, {}), 4, {"uneven.csv", "line 4", "1 target, expected 2"}},
      {list_words(word, {}), 4, {"word.csv", "line 2", "\"x\", expected a number"}},
      {list_words(many, {"--loss", "mae"}), 4, {"many.txt", "line 3", "2 targets, expected 1"}},
      {list_words(two, {"--loss", "binary_crossentropy"}), 4, {"img 0.png", "target 2", "from 0 to 1"}},
      {list_words(one, {"--class-weights", "balanced"}), 2, {"--class-weights"}},
      {list_words(one, {"--loss", "mse", "--label-smoothing", "0.1"}), 2, {"--label-smoothing"}},
      {list_words(one, {"--classes", "3"}), 2, {"--classes", "2 numbers"}},
      {list_words(one, {"--loss", "mse", "--monitor", "accuracy"}), 2, {"--monitor"}},
  };
  for (const Case& c : cases) {
    const Finished r = run_tandem(c.words + Words{"--output", folder / "out"});
    EXPECT_EQ(r.code, c.code) << c.said[0] << ": " << r.err;
    for (const std::string& said : c.said) EXPECT_NE(r.err.find(said), std::string::npos) << said << " in " << r.err;
    EXPECT_FALSE(fs::exists(folder / "out")) << c.said[0];
  }
  // A softmax that tells classes apart has no say about several at once.
  const Finished r = run_tandem({"evaluate", TANDEM_SOURCE_DIR "/tests/data/training/net_a_softmax.onnx", one, "--preprocess", "tf"});
  EXPECT_EQ(r.code, 4) << r.err;
  EXPECT_NE(r.err.find("--loss"), std::string::npos) << r.err;
}

}  // namespace
}  // namespace tandem::test
