#include "tools/train_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "io/html.h"
#include "parallel/split.h"
#include "runtime/base/error.h"
#include "runtime/memory/memory.h"

namespace tandem::cli {
namespace {

namespace html = io::html;

constexpr std::size_t kShownMistakes = 24, kShownPairs = 30, kShownClasses = 1000, kShownValues = 4;
constexpr std::int64_t kMatrixClasses = 20;
constexpr int kSide = 128;

double ratio(double a, double b) { return b > 0 ? a / b : 0; }
double ratio(std::int64_t a, std::int64_t b) { return ratio(static_cast<double>(a), static_cast<double>(b)); }

std::string left_out(std::size_t all, std::size_t shown, const char* what) {
  return all > shown ? fmt::format("<p>and {} more {}</p>\n", all - shown, what) : "";
}

std::string values_text(std::span<const float> values) {
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), kShownValues); ++i) text += fmt::format("{}{:.4g}", i ? ", " : "", values[i]);
  return values.size() > kShownValues ? text + ", ..." : text;
}

// Seconds of the epoch that went into steps.
double training_seconds(const EpochRow& row) { return row.seconds - row.validation_seconds; }

std::string epochs_table(const std::vector<EpochRow>& history) {
  std::vector<std::string> header = {"epoch", "loss"};
  std::vector<std::string> shown;  // beside the loss, as the last epoch has them
  for (const auto& [name, value] : history.back().values()) {
    if (name != "loss" && name != "learning_rate") shown.push_back(name);
  }
  header.insert(header.end(), shown.begin(), shown.end());
  for (const char* name : {"learning rate", "seconds", "of them validation", "waited for data", "images/s"}) header.emplace_back(name);
  std::vector<std::vector<std::string>> rows;
  for (const EpochRow& r : history) {
    std::vector<std::string> cells = {std::to_string(r.epoch + 1), fmt::format("{:.4f}", r.loss)};
    const auto values = r.values();
    for (const std::string& name : shown) {
      const auto at = std::find_if(values.begin(), values.end(), [&name](const auto& v) { return v.first == name; });
      cells.push_back(at == values.end() ? "" : fmt::format("{:.4f}", at->second));
    }
    cells.push_back(fmt::format("{:.4g}", r.rate));
    cells.push_back(fmt::format("{:.1f}", r.seconds));
    cells.push_back(fmt::format("{:.1f}", r.validation_seconds));
    cells.push_back(fmt::format("{:.0f} %", 100 * ratio(r.waited, training_seconds(r))));
    cells.push_back(fmt::format("{:.1f}", ratio(static_cast<double>(r.samples), training_seconds(r))));
    rows.push_back(std::move(cells));
  }
  return html::section("Epochs", html::table(header, rows));
}

// The curve of one value; no points where the epoch has none.
html::Line line(const char* name, const std::vector<EpochRow>& history, const std::function<std::optional<double>(const EpochRow&)>& value) {
  html::Line line{name, {}};
  for (const EpochRow& row : history) {
    if (const auto v = value(row)) line.points.emplace_back(static_cast<double>(row.epoch + 1), *v);
  }
  return line;
}

std::string chart(const char* heading, std::vector<html::Line> lines) {
  std::erase_if(lines, [](const html::Line& l) { return l.points.empty(); });
  return lines.empty() ? "" : html::section(heading, html::lines(lines, "epoch"));
}

std::string curves(const std::vector<EpochRow>& history) {
  std::vector<std::string> all = {chart("Loss", {line("training", history, [](const EpochRow& r) { return std::optional(r.loss); }),
                                                 line("validation", history, [](const EpochRow& r) { return r.val_loss; })})};
  all.push_back(chart("Accuracy", {line("training", history, [](const EpochRow& r) { return r.measured.accuracy; }),
                                   line("validation", history, [](const EpochRow& r) { return r.val_measured.accuracy; })}));
  all.push_back(chart("Mean absolute error", {line("training", history, [](const EpochRow& r) { return r.measured.mae; }),
                                              line("validation", history, [](const EpochRow& r) { return r.val_measured.mae; })}));
  all.push_back(chart("Mean squared error", {line("training", history, [](const EpochRow& r) { return r.measured.mse; }),
                                             line("validation", history, [](const EpochRow& r) { return r.val_measured.mse; })}));
  all.push_back(chart("Learning rate", {line("rate", history, [](const EpochRow& r) { return std::optional(r.rate); })}));
  all.push_back(chart("Images a second in training", {line("images/s", history, [](const EpochRow& r) {
                        return std::optional(ratio(static_cast<double>(r.samples), training_seconds(r)));
                      })}));
  return html::columns(all);
}

}  // namespace

// What is no number is the worst; of equals the first comes first, so that the page does not depend on the order of the heap.
bool TrainReport::is_worse(const Mistake& a, const Mistake& b) {
  if (std::isnan(a.loss) != std::isnan(b.loss)) return std::isnan(a.loss);
  return a.loss != b.loss && !std::isnan(a.loss) ? a.loss > b.loss : a.index < b.index;
}

void TrainReport::start_pass() { before_ = std::exchange(pass_, {}); }
void TrainReport::drop_pass() { pass_ = std::exchange(before_, {}); }

void TrainReport::take(const ScoredSample& s) {
  ++pass_.samples;
  if (s.label >= 0) {
    ++pass_.by_class[s.label].samples;
    ++pass_.by_class[s.predicted].predicted;
    pass_.by_class[s.label].right += s.predicted == s.label;
    if (s.predicted == s.label) return;
    ++pass_.confused[{s.label, s.predicted}];
  } else if (about_.yes_above) {
    count_labels(s);
  }
  Mistake mistake{.index = s.index, .label = s.label, .predicted = s.predicted, .probability = s.probability, .loss = s.loss};
  const bool full = pass_.worst.size() == kShownMistakes;
  if (full && !is_worse(mistake, pass_.worst.front())) return;
  if (s.label < 0) {
    mistake.target = values_text(s.target);
    mistake.prediction = values_text(s.prediction);
  }
  if (full) {
    std::pop_heap(pass_.worst.begin(), pass_.worst.end(), is_worse);
    pass_.worst.pop_back();
  }
  pass_.worst.push_back(std::move(mistake));
  std::push_heap(pass_.worst.begin(), pass_.worst.end(), is_worse);
}

// Each output apart: how often it is 1, how often the network says so, how often both.
void TrainReport::count_labels(const ScoredSample& s) {
  for (std::size_t i = 0; i < std::min(s.target.size(), s.prediction.size()); ++i) {
    Counts& counts = pass_.by_class[static_cast<std::int64_t>(i)];
    const bool is = s.target[i] > 0.5f, says = s.prediction[i] > *about_.yes_above;
    counts.samples += is;
    counts.predicted += says;
    counts.right += is && says;
  }
}

std::string TrainReport::label(std::int64_t output) const {
  const auto at = static_cast<std::size_t>(output);
  return html::escape(at < about_.labels.size() ? about_.labels[at] : std::to_string(output));
}

std::string TrainReport::key_figures(const std::vector<EpochRow>& history, std::string_view state) const {
  double seconds = 0, training = 0, waited = 0, samples = 0;
  for (const EpochRow& r : history) {
    seconds += r.seconds;
    training += training_seconds(r);
    waited += r.waited;
    samples += static_cast<double>(r.samples);
  }
  std::vector<std::pair<std::string, std::string>> figures = {{"state", html::escape(state)}, {"epochs", std::to_string(history.size())}};
  if (!history.empty()) {
    for (const auto& [name, value] : history.back().values()) {
      if (name != "learning_rate") figures.emplace_back(name, fmt::format("{:.4f}", value));
    }
  }
  figures.emplace_back("time of the epochs", fmt::format("{:.1f} s", seconds));
  figures.emplace_back("images/s in training", fmt::format("{:.1f}", ratio(samples, training)));
  figures.emplace_back("waited for data", fmt::format("{:.1f} %", 100 * ratio(waited, training)));
  figures.emplace_back("peak memory", format_size(peak_resident_bytes()));
  return html::cards(figures);
}

// The devices share the threads, so that what is told apart is the threads' time in each one's shards.
std::string TrainReport::devices(const Use& use) const {
  double busy = 0;
  for (const DeviceUse& d : use.devices) busy += d.busy_seconds / about_.threads;
  const std::vector<std::pair<std::string, double>> times = {
      {"computing", busy},
      {"waiting for data", use.waited},
      {"merging, update, threads without a shard", std::max(0.0, use.seconds - use.waited - busy)}};
  std::vector<std::vector<std::string>> rows;
  const int shards = static_cast<int>(about_.shards), count = static_cast<int>(about_.devices.size());
  std::vector<std::int64_t> of_device(about_.devices.size(), 0);
  for (int s = 0; s < shards; ++s) ++of_device.at(static_cast<std::size_t>(share_of(s, shards, count)));
  const std::size_t arena = about_.step.arenas / static_cast<std::size_t>(std::max(1, about_.step.live_shards));
  for (std::size_t d = 0; d < std::min(use.devices.size(), about_.devices.size()); ++d) {
    const DeviceUse& u = use.devices[d];
    const auto live = static_cast<std::size_t>(std::min<std::int64_t>(of_device[d], about_.step.live_shards));
    rows.push_back({html::escape(about_.devices[d]), std::to_string(of_device[d]), std::to_string(u.samples),
                    fmt::format("{:.1f}", ratio(static_cast<double>(u.samples), use.seconds)), fmt::format("{:.1f} s", u.busy_seconds),
                    fmt::format("{:.1f} s", use.waited), format_size(live * arena)});
  }
  const std::vector<std::string> header = {"device", "shards of a batch", "images", "images/s", "computing", "waiting for data", "activations"};
  return html::section("Devices", html::table(header, rows) +
                                      fmt::format("<p>{} threads work for all devices; computing is their time in the shards of one. Activations: as "
                                                  "predicted, of the shards of the device that are alive at once. Time of the steps in this process, "
                                                  "{:.1f} s:</p>\n",
                                                  about_.threads, use.seconds) +
                                      html::parts(times));
}

std::string TrainReport::memory() const {
  const TrainingPrediction& p = about_.step;
  std::vector<std::vector<std::string>> rows = {{"held before training", format_size(about_.memory.held)},
                                                {"weights", format_size(p.weights)},
                                                {"gradients", format_size(p.gradients)},
                                                {"packed weights", format_size(p.packed)},
                                                {"optimizer, decoded samples, threads", format_size(p.scratch + p.reserve)},
                                                {fmt::format("activations of {} shards", p.live_shards), format_size(p.arenas)},
                                                {"inputs of a batch", format_size(p.batch)}};
  // What comes in the place of activations and inputs.
  if (p.between > 0) rows.push_back({"or between two steps a checkpoint", format_size(p.between)});
  if (about_.memory.validation > p.kept()) rows.push_back({"or a validation pass", format_size(about_.memory.validation - p.kept())});
  rows.push_back({"<strong>predicted peak</strong>", format_size(about_.memory.peak())});
  rows.push_back({"<strong>measured peak of the process</strong>", format_size(peak_resident_bytes())});
  const std::vector<std::string> header = {"", ""};
  return html::section("Memory", html::table(header, rows));
}

std::string TrainReport::settings() const {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : about_.settings) rows.push_back({html::escape(name), html::escape(value)});
  const std::vector<std::string> header = {"", ""};
  return html::folded("Settings", html::table(header, rows));
}

std::string TrainReport::classes() const {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [output, counts] : pass_.by_class) {
    if (rows.size() == kShownClasses) break;
    const double precision = ratio(counts.right, counts.predicted), recall = ratio(counts.right, counts.samples);
    rows.push_back({label(output), std::to_string(counts.samples), fmt::format("{:.4f}", precision), fmt::format("{:.4f}", recall),
                    fmt::format("{:.4f}", ratio(2 * precision * recall, precision + recall))});
  }
  const std::vector<std::string> header = {about_.yes_above ? "label" : "class", "samples", "precision", "recall", "F1"};
  return html::section(about_.yes_above ? "Labels" : "Classes", html::table(header, rows) + left_out(pass_.by_class.size(), rows.size(), "classes"));
}

std::string TrainReport::matrix() const {
  std::string rows = "<tr><th></th>";
  for (std::int64_t o = 0; o < about_.classes; ++o) rows += fmt::format("<th title=\"{0}\">{0}</th>", label(o));
  rows += "</tr>\n";
  for (std::int64_t truth = 0; truth < about_.classes; ++truth) {
    const auto own = pass_.by_class.find(truth);
    const Counts counts = own == pass_.by_class.end() ? Counts() : own->second;
    rows += fmt::format("<tr><th title=\"{0}\">{0}</th>", label(truth));
    for (std::int64_t o = 0; o < about_.classes; ++o) {
      const auto at = pass_.confused.find({truth, o});
      const std::int64_t n = o == truth ? counts.right : at == pass_.confused.end() ? 0 : at->second;
      const double share = ratio(n, counts.samples);
      rows += fmt::format("<td title=\"{:.1f} %\" style=\"background:rgba({},{:.2f})\">{}</td>", 100 * share, o == truth ? "37,99,235" : "220,38,38",
                          0.6 * share, n);
    }
    rows += "</tr>\n";
  }
  return html::section("Confusion matrix of the validation data",
                       "<p>Rows are the truth, columns the predictions; the colour is the share of the row.</p>\n" + html::table("matrix", rows));
}

std::string TrainReport::confused_pairs() const {
  std::vector<std::pair<std::pair<std::int64_t, std::int64_t>, std::int64_t>> pairs(pass_.confused.begin(), pass_.confused.end());
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  pairs.resize(std::min(pairs.size(), kShownPairs));
  std::vector<std::vector<std::string>> rows;
  for (const auto& [pair, n] : pairs)
    rows.push_back(
        {label(pair.first), label(pair.second), std::to_string(n), fmt::format("{:.1f} %", 100 * ratio(n, pass_.by_class.at(pair.first).samples))});
  const std::vector<std::string> header = {"truth", "prediction", "samples", "of the class"};
  return html::section("Most confused pairs of the validation data",
                       rows.empty() ? "<p>none</p>\n" : html::table(header, rows) + left_out(pass_.confused.size(), rows.size(), "pairs"));
}

std::string TrainReport::tile(const Mistake& m) const {
  const std::string path = about_.validation->name(m.index);
  std::string picture;
  if (about_.validation->has_images()) {
    picture = "(no picture)";
    try {
      const io::Image image = about_.validation->image(m.index);
      picture = html::image(html::thumbnail({image.rgb.data(), image.height, image.width, 3}, kSide), path);
    } catch (const Error&) {  // it was there a moment ago
    }
  }
  const std::string what = m.label >= 0 ? fmt::format("truth {}<br>prediction {} ({:.4f})", label(m.label), label(m.predicted), m.probability)
                                        : fmt::format("truth {}<br>prediction {}", m.target, m.prediction);
  return fmt::format("<figure>{}<figcaption>{}<br>loss {:.4g}<br><span class=\"path\" title=\"{}\">{}</span></figcaption></figure>\n", picture, what,
                     m.loss, html::escape(path), html::escape(path.substr(path.rfind('/') + 1)));
}

std::string TrainReport::worst() const {
  const char* heading = about_.classes > 0 ? "Worst mistakes" : "Samples with the largest loss";
  if (pass_.worst.empty()) return html::section(heading, "<p>none</p>\n");
  auto mistakes = pass_.worst;
  std::sort(mistakes.begin(), mistakes.end(), is_worse);
  std::string tiles = "<div class=\"tiles\">\n";
  for (const Mistake& m : mistakes) tiles += tile(m);
  return html::section(heading, tiles + "</div>\n");
}

std::string TrainReport::html(const std::vector<EpochRow>& history, const Use& use, std::string_view state) const {
  std::string body = key_figures(history, state);
  if (!history.empty()) body += curves(history);
  if (pass_.samples > 0 && about_.classes > 0) body += about_.classes <= kMatrixClasses ? matrix() : confused_pairs();
  if (pass_.samples > 0) body += worst();
  if (pass_.samples > 0 && (about_.classes > 0 || about_.yes_above)) body += classes();
  if (!history.empty()) body += epochs_table(history);
  body += devices(use) + memory() + settings();
  return html::page("tandem train: " + about_.model, body);
}

}  // namespace tandem::cli
