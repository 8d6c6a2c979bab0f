// report.html of train: what stands on the page, of validation passes made up here and of a run of the program.
#include "tools/train_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "io/write_png.h"
#include "runtime/base/error.h"
#include "tests/support/files.h"
#include "tests/support/graph_builder.h"
#include "tests/support/subprocess.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using cli::ScoredSample;
using cli::Scoring;
using cli::TrainReport;

const std::string kEvil = "</title><script>alert(1)</script>";

// Sample 3 cannot be read any more; names hold markup.
class Pictures : public io::Dataset {
 public:
  explicit Pictures(bool has_images) : has_images_(has_images) {}
  std::int64_t size() const override { return 100; }
  void load(std::int64_t, std::span<float>) const override {}
  std::int64_t label(std::int64_t) const override { return 0; }
  std::string name(std::int64_t i) const override { return "<i>" + std::to_string(i) + ".png"; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t sample_size() const override { return 12; }
  bool has_images() const override { return has_images_; }
  io::Image image(std::int64_t i) const override {
    if (i == 3) throw InvalidData("gone");
    return {2, 2, std::vector<std::uint8_t>(12, 7)};
  }

 private:
  bool has_images_;
  std::vector<std::string> names_;
};

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// Every tag is closed, in the right order; nothing is loaded from outside. Empty where all is well.
std::string what_is_wrong(const std::string& page) {
  if (count(page, "<script") + count(page, "http:") + count(page, "https:") + count(page, "src=\"") != count(page, "src=\"data:image/png;base64,"))
    return "something from outside";
  const std::set<std::string> empty = {"!doctype", "meta", "br", "img"};
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    const std::size_t end = page.find('>', at);
    if (end == std::string::npos) return "a tag without an end";
    const std::string tag = page.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    at = end;
    if (tag.find('<') != std::string::npos) return "a tag in a tag: " + tag;
    if (tag.ends_with("/") || empty.contains(name)) continue;
    if (tag[0] != '/') {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return "closed but not open: " + name;
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

std::vector<cli::EpochRow> two_epochs(bool classes) {
  std::vector<cli::EpochRow> rows = {{.epoch = 0, .loss = 1.5, .rate = 0.01, .seconds = 12, .waited = 4},
                                     {.epoch = 1, .loss = 0.75, .rate = 0.005, .seconds = 10, .waited = 1}};
  for (auto& r : rows) {
    r.val_loss = 2 * r.loss;
    r.validation_seconds = 2;
    r.samples = 240;
    if (classes) r.measured.accuracy = r.val_measured.accuracy = 0.5;
  }
  return rows;
}

TrainReport report_on(std::vector<std::string> labels, std::int64_t classes, bool has_images = true) {
  return TrainReport({.model = "m.onnx",
                      .settings = {{"optimizer", "\"sgd\""}, {kEvil, kEvil}},
                      .labels = std::move(labels),
                      .classes = classes,
                      .validation = std::make_shared<const Pictures>(has_images),
                      .devices = {"cpu:0", "cpu:1"},
                      .threads = 2,
                      .shards = 5,
                      .memory = {.held = 3 << 20, .step = 41 << 20, .validation = 0},
                      .step = {.weights = 1 << 20, .arenas = 40 << 20, .live_shards = 4}});
}

// 10 s of two threads, of which the shards had 12.
TrainReport::Use some_use() {
  return {.seconds = 10, .waited = 1.5, .devices = {{.samples = 90, .busy_seconds = 8}, {.samples = 60, .busy_seconds = 4}}};
}

ScoredSample sample(std::int64_t index, std::int64_t label, std::int64_t predicted, double loss) {
  return {.index = index, .label = label, .predicted = predicted, .probability = 0.625, .loss = loss, .prediction = {}, .target = {}};
}

// Truth: 4 cats (3 found), 2 evil (1 found, 1 taken for a cat). Cats: precision 3/4, recall 3/4; evil: 1/2, 1/2.
TEST(TrainReport, AClassifiersPage) {
  TrainReport report = report_on({"cat", kEvil}, 2);
  report.start_pass();
  report.take(sample(50, 1, 0, 99));  // of a pass that is forgotten
  report.start_pass();
  for (int i = 0; i < 3; ++i) report.take(sample(i, 0, 0, 0.1));
  report.take(sample(3, 0, 1, 2.5));
  report.take(sample(4, 1, 1, 0.2));
  report.take(sample(5, 1, 0, 3.25));
  const std::string page = report.html(two_epochs(true), some_use(), "running: 2 of 5 " + kEvil);
  EXPECT_EQ(what_is_wrong(page), "");
  EXPECT_EQ(page.find("<i>"), std::string::npos);
  const std::string evil = "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;";
  for (const std::string& text :
       {std::string("running: 2 of 5 " + evil), std::string("&quot;sgd&quot;"),
        std::string("<strong>predicted peak</strong></td><td class=\"n\">44.0 MiB</td>"), std::string("<dt>time of the epochs</dt><dd>22.0 s</dd>"),
        std::string("<dt>images/s in training</dt><dd>26.7</dd>"),  // 480 in 10 + 8 s
        std::string("<dt>waited for data</dt><dd>27.8 %</dd>"),     // 5 of 18 s
        "<tr><td>cat</td><td class=\"n\">4</td><td class=\"n\">0.7500</td><td class=\"n\">0.7500</td><td class=\"n\">0.7500</td></tr>\n<tr><td>" +
            evil + "</td><td class=\"n\">2</td><td class=\"n\">0.5000</td><td class=\"n\">0.5000</td><td class=\"n\">0.5000</td></tr>",
        std::string("truth " + evil + "<br>prediction cat (0.6250)"), std::string("<h2>Loss</h2>"), std::string("<h2>Accuracy</h2>"),
        std::string("<h2>Learning rate</h2>"),
        // Shards 3 and 2 of 5, four alive at once, 10 MiB each; 6 of 10 s.
        std::string("<td>cpu:0</td><td class=\"n\">3</td><td class=\"n\">90</td><td class=\"n\">9.0</td><td class=\"n\">8.0 s</td><td "
                    "class=\"n\">1.5 s</td><td class=\"n\">30.0 MiB</td>"),
        std::string("<td>cpu:1</td><td class=\"n\">2</td><td class=\"n\">60</td><td class=\"n\">6.0</td><td class=\"n\">4.0 s</td><td "
                    "class=\"n\">1.5 s</td><td class=\"n\">20.0 MiB</td>"),
        std::string("computing 60.0 %"), std::string("waiting for data 15.0 %"), std::string("without a shard 25.0 %")})
    EXPECT_NE(page.find(text), std::string::npos) << text;
  // The matrix: rows 3 1 and 1 1.
  const std::string matrix = page.substr(page.find("<h2>Confusion matrix"), page.find("<h2>Classes") - page.find("<h2>Confusion matrix"));
  std::string cells;
  for (std::size_t at = matrix.find("<td"); at != std::string::npos; at = matrix.find("<td", at + 1)) cells += matrix[matrix.find('>', at) + 1];
  EXPECT_EQ(cells, "3111");
  // Two mistakes, the larger loss first; the picture of one is gone.
  EXPECT_EQ(count(page, "<figure>"), 2u);
  EXPECT_EQ(count(page, "<img "), 1u);
  EXPECT_LT(page.find("\">&lt;i&gt;5.png"), page.find("\">&lt;i&gt;3.png"));
  EXPECT_EQ(page.find("50.png"), std::string::npos);
}

TEST(TrainReport, ManyClassesShowTheirMostConfusedPairs) {
  TrainReport report = report_on({}, 1000);
  report.start_pass();
  for (int i = 0; i < 3; ++i) report.take(sample(i, 999, 7, 1));
  report.take(sample(3, 5, 6, 1));
  report.take(sample(4, 999, 999, 1));
  const std::string page = report.html(two_epochs(true), some_use(), "finished");
  EXPECT_EQ(what_is_wrong(page), "");
  const std::size_t first = page.find("<td class=\"n\">999</td><td class=\"n\">7</td><td class=\"n\">3</td><td class=\"n\">75.0 %</td>");
  EXPECT_NE(first, std::string::npos);
  EXPECT_GT(page.find("<td class=\"n\">5</td><td class=\"n\">6</td><td class=\"n\">1</td><td class=\"n\">100.0 %</td>"), first);
  EXPECT_EQ(page.find("Confusion matrix"), std::string::npos);
}

TEST(TrainReport, ValuesHaveCurvesAndTheirWorstSamples) {
  TrainReport report = report_on({}, 0, false);
  report.start_pass();
  const std::vector<float> target = {1, 2, 3, 4, 5}, prediction = {0.5f, -1, 0, 0, 0};
  for (std::int64_t i = 0; i < 60; ++i) {
    ScoredSample s = sample(i, -1, 0, i == 30 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>((i * 7) % 60));
    s.target = target;
    s.prediction = prediction;
    report.take(s);
  }
  const std::string page = report.html(two_epochs(false), some_use(), "finished");
  EXPECT_EQ(what_is_wrong(page), "");
  EXPECT_EQ(count(page, "<figure>"), 24u);
  EXPECT_EQ(count(page, "truth 1, 2, 3, 4, ...<br>prediction 0.5, -1, 0, 0, ..."), 24u);
  EXPECT_EQ(page.find("<h2>Accuracy"), std::string::npos);
  EXPECT_EQ(page.find("<h2>Classes"), std::string::npos);
  // What is no number comes first, then 59, 58, ... down to 36 without that of sample 30 (its 30 is not among them).
  std::size_t at = page.find("loss nan");
  for (int loss = 59; loss > 36; --loss) {
    const std::size_t next = page.find("loss " + std::to_string(loss) + "<");
    EXPECT_LT(at, next) << loss;
    at = next;
  }
  EXPECT_EQ(page.find("loss 36<"), std::string::npos);
}

TEST(TrainReport, WithoutValidationThereAreCurvesAlone) {
  const TrainReport report(
      {.model = kEvil, .settings = {}, .labels = {}, .classes = 3, .validation = nullptr, .devices = {"cpu:0"}, .memory = {}, .step = {}});
  auto rows = two_epochs(true);
  for (auto& r : rows) r.val_loss = r.val_measured.accuracy = std::nullopt;
  const std::string page = report.html(rows, {}, "finished");
  EXPECT_EQ(what_is_wrong(page), "");
  EXPECT_EQ(count(page, "</i>validation</span>"), 0u);
  EXPECT_GT(count(page, "</i>training</span>"), 0u);
  EXPECT_EQ(page.find("Worst mistakes"), std::string::npos);
  EXPECT_EQ(what_is_wrong(report.html({}, {}, "finished")), "");
}

// The network's last node decides what its scores are.
TEST(Scoring, GuessesAreProbabilities) {
  const auto scoring = [](const char* end, const char* loss) {
    GraphBuilder b;
    ValueId last = b.input("x", DType::kF32, {-1, 2});
    if (*end) last = b.node("end", end, {last});
    b.output(last);
    return Scoring(b.graph, loss);
  };
  const std::vector<float> two = {1, 3}, one = {0.25f}, minus = {-2};
  Scoring::Guess g = scoring("", "categorical").guess(two);
  EXPECT_EQ(g.output, 1);
  EXPECT_DOUBLE_EQ(g.probability, 1 / (1 + std::exp(-2.0)));
  EXPECT_DOUBLE_EQ(scoring("", "binary").guess(two).probability, 1 / (1 + std::exp(-3.0)));
  EXPECT_DOUBLE_EQ(scoring("Softmax", "categorical").guess(two).probability, 3.0);
  g = scoring("Sigmoid", "binary").guess(one);
  EXPECT_EQ(g.output, 0);
  EXPECT_DOUBLE_EQ(g.probability, 0.75);
  g = scoring("", "binary").guess(minus);
  EXPECT_EQ(g.output, 0);
  EXPECT_DOUBLE_EQ(g.probability, 1 / (1 + std::exp(-2.0)));
}

TEST(TrainReport, TheProgramWritesOne) {
  const TemporaryFolder folder;
  for (int i = 0; i < 12; ++i) {
    const std::string name = folder / ("data/" + std::string(i % 2 ? "plain" : "<b>bold & co") + "/" + std::to_string(i) + ".png");
    fs::create_directories(fs::path(name).parent_path());
    io::Pixels p{64, 64, 3, std::vector<std::uint8_t>(64 * 64 * 3, static_cast<std::uint8_t>(i * 20))};
    io::write_png(name, p);
  }
  const auto trained = run_tandem({"train", trained_network(), folder / "data", "--epochs", "2", "--batch-size", "4", "--freeze-backbone",
                                   "--val-split", "0.5", "--lr", "0.01", "--preprocess", "tf", "--image-size", "64", "--output", folder / "run"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string page = read_text(folder / "run/report.html");
  EXPECT_EQ(what_is_wrong(page), "");
  for (const char* text : {"<dt>state</dt><dd>finished</dd>", "<h2>Confusion matrix", "&lt;b&gt;bold &amp; co", "<h2>Accuracy</h2>",
                           "6 samples for training, 6 for validation"})
    EXPECT_NE(page.find(text), std::string::npos) << text << "\n" << page;
  EXPECT_EQ(page.find("<b>"), std::string::npos);
}

}  // namespace
}  // namespace tandem::test
