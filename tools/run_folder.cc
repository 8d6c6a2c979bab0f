#include "tools/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "importer/exporter.h"
#include "io/checkpoint.h"
#include "io/keras_h5.h"
#include "io/preprocess.h"
#include "models/weights_map.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "runtime/base/safe_file.h"

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::map<std::string, std::string> texts_of(const Graph& graph) {
  std::map<std::string, std::string> texts;
  for (const char* key : {"tandem.preprocess", "tandem.labels"}) {
    if (const auto at = graph.metadata.find(key); at != graph.metadata.end()) texts.emplace(*at);
  }
  return texts;
}

// The graph's weights as Keras layers; none where their names are not Keras'.
std::optional<std::vector<Layer>> layers_of(const Graph& graph, std::string* reason = nullptr) {
  try {
    return models::keras_layers(graph);
  } catch (const Unsupported& e) {
    if (reason) *reason = e.message();
    return {};
  }
}

void add_arrays(std::vector<LayerWeight>& to, const std::string& prefix, const std::vector<Trainer::NamedArray>& arrays) {
  for (const auto& a : arrays) to.push_back({prefix + a.name, a.values.dtype(), a.values.shape(), [t = a.values] { return t; }});
}

// JSON has no word for NaN and the infinities: they are texts.
ordered_json number_json(double v) { return std::isfinite(v) ? ordered_json(v) : ordered_json(fmt::format("{}", v)); }
double number_of(const ordered_json& j) { return j.is_string() ? std::strtod(j.get_ref<const std::string&>().c_str(), nullptr) : j.get<double>(); }

ordered_json optional_json(const std::optional<double>& v) { return v ? number_json(*v) : ordered_json(nullptr); }
// What an earlier version did not write is not there.
std::optional<double> optional_of(const ordered_json& j, const char* name) {
  if (!j.contains(name) || j.at(name).is_null()) return {};
  return number_of(j.at(name));
}

ordered_json row_json(const EpochRow& r) {
  return {{"epoch", r.epoch},
          {"loss", number_json(r.loss)},
          {"rate", r.rate},
          {"seconds", r.seconds},
          {"waited", r.waited},
          {"accuracy", optional_json(r.measured.accuracy)},
          {"val_loss", optional_json(r.val_loss)},
          {"val_accuracy", optional_json(r.val_measured.accuracy)},
          {"mae", optional_json(r.measured.mae)},
          {"mse", optional_json(r.measured.mse)},
          {"val_mae", optional_json(r.val_measured.mae)},
          {"val_mse", optional_json(r.val_measured.mse)},
          {"validation_seconds", r.validation_seconds},
          {"samples", r.samples}};
}

EpochRow row_of(const ordered_json& j) {
  return {.epoch = j.at("epoch"),
          .loss = number_of(j.at("loss")),
          .rate = j.at("rate"),
          .seconds = j.at("seconds"),
          .waited = j.at("waited"),
          .measured = {optional_of(j, "accuracy"), optional_of(j, "mae"), optional_of(j, "mse")},
          .val_measured = {optional_of(j, "val_accuracy"), optional_of(j, "val_mae"), optional_of(j, "val_mse")},
          .val_loss = optional_of(j, "val_loss"),
          .validation_seconds = j.at("validation_seconds"),
          .samples = j.at("samples")};
}

std::string state_json(const Trainer::State& trainer, const RunState& s, const std::string& settings) {
  ordered_json j = {{"version", 1},
                    {"iteration", trainer.iteration},
                    {"accumulated", trainer.accumulated},
                    {"epoch", s.epoch},
                    {"step_in_epoch", s.step_in_epoch},
                    {"steps_done", s.steps_done},
                    {"step", s.step},
                    {"pass", s.position.pass},
                    {"batch", s.position.batch},
                    {"loss_sum", number_json(s.score.loss_sum)},
                    {"right", number_json(s.score.right)},
                    {"absolute", number_json(s.score.absolute)},
                    {"squared", number_json(s.score.squared)},
                    {"measured", s.score.measured},
                    {"samples", s.score.samples},
                    {"scored", s.score.scored},
                    {"penalty_sum", number_json(s.penalty_sum)},
                    {"rate", s.rate},
                    {"best", optional_json(s.best)},
                    {"epochs_since_best", s.epochs_since_best},
                    {"plateau",
                     {{"rate", s.plateau.rate},
                      {"best", optional_json(s.plateau.best)},
                      {"wait", s.plateau.wait},
                      {"cooldown", s.plateau.cooldown},
                      {"reductions", s.plateau.reductions ? ordered_json(*s.plateau.reductions) : ordered_json(nullptr)}}},
                    {"settings", ordered_json::parse(settings)}};
  j["history"] = ordered_json::array();
  for (const EpochRow& r : s.history) j["history"].push_back(row_json(r));
  return j.dump();
}

RunState state_of(const ordered_json& j, Trainer::State& trainer) {
  trainer.iteration = j.at("iteration");
  trainer.accumulated = j.at("accumulated");
  RunState s{.epoch = j.at("epoch"), .step_in_epoch = j.at("step_in_epoch"), .step = j.at("step")};
  s.position = {j.at("pass"), j.at("batch")};
  s.steps_done = j.value("steps_done", false);
  s.score.loss_sum = number_of(j.at("loss_sum"));
  s.score.right = number_of(j.at("right"));
  s.score.absolute = optional_of(j, "absolute").value_or(0);
  s.score.squared = optional_of(j, "squared").value_or(0);
  s.score.samples = j.at("samples");
  s.score.scored = j.at("scored");
  s.score.measured = j.value("measured", std::int64_t{0});
  // An earlier version kept the last step's penalty alone.
  s.penalty_sum = optional_of(j, "penalty_sum").value_or(optional_of(j, "penalty").value_or(0) * static_cast<double>(s.score.samples));
  s.rate = j.at("rate");
  s.best = optional_of(j, "best");
  s.epochs_since_best = j.at("epochs_since_best");
  const ordered_json& p = j.at("plateau");
  s.plateau = {.rate = p.at("rate"), .best = optional_of(p, "best"), .wait = p.at("wait"), .cooldown = p.at("cooldown"), .reductions = {}};
  if (p.contains("reductions") && !p.at("reductions").is_null()) s.plateau.reductions = p.at("reductions").get<std::int64_t>();
  for (const ordered_json& row : j.at("history")) s.history.push_back(row_of(row));
  return s;
}

// Throws where a value differs; those of "numbers" are warned of.
void compare_settings(const ordered_json& saved, const ordered_json& given, const Console& console) {
  const auto differ = [](const ordered_json& before, const ordered_json& after, const auto& say) {
    for (const auto& [key, value] : before.items()) {
      if (!after.contains(key)) continue;  // an earlier version compared it
      const ordered_json& now = after.at(key);
      if (now != value && key != "numbers") say(fmt::format("the run was made with {} = {}, now it is {}", key, value.dump(), now.dump()));
    }
  };
  differ(saved, given, [](const std::string& what) { throw UsageError("option --resume: " + what); });
  const ordered_json none = ordered_json::object();
  differ(saved.value("numbers", none), given.value("numbers", none), [&console](const std::string& what) { console.warn(what); });
}

// The arrays of `like`, in its order, from the checkpoint.
std::vector<Trainer::NamedArray> taken(const std::vector<Trainer::NamedArray>& like, const std::map<std::string, const LayerWeight*>& arrays,
                                       const std::string& prefix) {
  std::vector<Trainer::NamedArray> out;
  for (const auto& a : like) {
    const auto at = arrays.find(prefix + a.name);
    if (at == arrays.end()) throw InvalidData(fmt::format("the checkpoint has no array \"{}{}\"", prefix, a.name));
    out.push_back({a.name, at->second->read()});
  }
  return out;
}

}  // namespace

std::vector<std::pair<std::string, double>> EpochRow::values() const {
  std::vector<std::pair<std::string, double>> all;
  const auto add = [&all](const char* name, const std::optional<double>& value) {
    if (value) all.emplace_back(name, *value);
  };
  add("accuracy", measured.accuracy);
  add("learning_rate", rate);
  add("loss", loss);
  add("mae", measured.mae);
  add("mse", measured.mse);
  add("val_accuracy", val_measured.accuracy);
  add("val_loss", val_loss);
  add("val_mae", val_measured.mae);
  add("val_mse", val_measured.mse);
  return all;
}

RunFolder::RunFolder(std::string path, const std::string& name, bool goes_on) : path_(std::move(path)) {
  std::error_code failed;
  if (goes_on) {
    if (!fs::is_directory(path_, failed)) throw InvalidData(fmt::format("folder {} is not there", quote_whole(path_)));
    take();
    return;
  }
  for (int n = 1; path_.empty(); ++n) {
    const std::string tried = fmt::format("runs/{}-{}", name, n);
    fs::create_directories("runs", failed);
    if (failed) break;
    if (fs::create_directory(tried, failed) && !failed) path_ = tried;
    if (failed) break;
  }
  if (!failed && !path_.empty()) fs::create_directories(path_, failed);
  if (failed) throw InvalidData(fmt::format("folder {} cannot be made: {}", quote_whole(path_.empty() ? "runs" : path_), failed.message()));
  take();
  if (fs::exists(file("summary.csv")) || has_checkpoint())
    throw UsageError(fmt::format("option --output: {} holds a run already; --resume goes on with it", quote_whole(path_)));
}

void RunFolder::take() {
  lock_ = FileHandle(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock_ && try_lock(lock_) == Lock::kTaken) throw InvalidData(fmt::format("another run is writing into folder {}", quote_whole(path_)));
}

bool RunFolder::has_checkpoint() const { return fs::exists(checkpoints() + "/last.h5") || fs::exists(checkpoints() + "/previous.h5"); }

bool RunFolder::has(const std::string& name) const { return fs::exists(file(name)); }

std::vector<std::string> RunFolder::labels_of(const std::string& path) {
  const auto texts = io::checkpoint_texts(path + "/checkpoint");
  const auto at = texts.find("tandem.labels");
  return at == texts.end() ? std::vector<std::string>() : io::parse_labels(at->second);
}

void RunFolder::write_text(const std::string& name, const std::string& text) const { save_file(file(name), std::string_view(text)); }

void RunFolder::write_labels(const std::vector<std::string>& labels) const {
  std::string text;
  for (const std::string& label : labels) text += label + "\n";
  write_text("labels.txt", text);
}

void RunFolder::write_history(const std::vector<EpochRow>& rows) {
  // An epoch may lack a column, as those before --val-data was given do; CSVLogger orders columns by name.
  std::set<std::string> columns;
  for (const EpochRow& row : rows) {
    for (const auto& [name, value] : row.values()) columns.insert(name);
  }
  std::string text = "epoch";
  for (const std::string& name : columns) text += "," + name;
  text += "\n";
  for (const EpochRow& row : rows) {
    text += std::to_string(row.epoch);
    std::map<std::string, double> cells;
    for (const auto& [name, value] : row.values()) cells[name] = value;
    for (const std::string& name : columns) text += cells.contains(name) ? fmt::format(",{}", cells[name]) : ",";
    text += "\n";
  }
  write_text("summary.csv", text);
  if (!events_) events_.emplace(path_);
  auto scalars = rows.back().values();
  for (auto& [name, value] : scalars) name = "epoch_" + name;
  events_->add(rows.back().epoch, scalars);
}

void RunFolder::write_weights(const Graph& graph, const std::string& name, const Console& console) const {
  std::string reason;
  if (const auto layers = layers_of(graph, &reason))
    io::write_keras_h5(file(name), *layers, texts_of(graph));
  else
    console.warn(fmt::format("{} is not written: {}", name, reason.substr(0, reason.find('\n'))));
}

void RunFolder::write_model(const Graph& graph, const FileRecord& record) const { write_onnx(graph, file("model.onnx"), {.record = &record}); }

void RunFolder::save(const Trainer& trainer, const RunState& state, const std::string& settings) const {
  const Graph graph = trainer.trained();
  const Trainer::State now = trainer.view();
  io::Checkpoint checkpoint;
  if (auto layers = layers_of(graph)) {
    checkpoint.layers = std::move(*layers);
  } else {
    add_arrays(checkpoint.arrays, "weight/", now.weights);
    add_arrays(checkpoint.arrays, "statistics/", now.statistics);
  }
  add_arrays(checkpoint.arrays, "slot/", now.slots);
  checkpoint.state = state_json(now, state, settings);
  io::save_checkpoint(checkpoints(), checkpoint, texts_of(graph));
}

RunState RunFolder::restore(Trainer& trainer, const std::string& settings, const Console& console) const {
  std::string note;
  const io::Checkpoint checkpoint = io::load_checkpoint(checkpoints(), note);
  if (!note.empty()) console.warn(note);
  const ordered_json j = ordered_json::parse(checkpoint.state);
  compare_settings(j.at("settings"), ordered_json::parse(settings), console);
  std::map<std::string, const LayerWeight*> arrays;
  for (const LayerWeight& w : checkpoint.arrays) arrays.emplace(w.name, &w);
  Trainer::State state = trainer.view(j.at("accumulated").get<int>());
  const RunState run = state_of(j, state);
  if (checkpoint.layers.empty()) {
    state.weights = taken(state.weights, arrays, "weight/");
    state.statistics = taken(state.statistics, arrays, "statistics/");
  } else {
    Graph graph = *trainer.group().graph();
    models::load_weights(graph, checkpoint.layers, {.match = models::Match::kName});
    const auto put = [&graph](std::vector<Trainer::NamedArray>& to, std::size_t i, ValueId id) { to[i].values = graph.value(id).constant.made(); };
    const TrainingOptions& training = trainer.options().training;
    for (std::size_t i = 0; i < training.trained.size(); ++i) put(state.weights, i, training.trained[i]);
    for (std::size_t i = 0; i < training.running.size(); ++i) {
      put(state.statistics, 2 * i, training.running[i].mean);
      put(state.statistics, 2 * i + 1, training.running[i].variance);
    }
  }
  state.slots = taken(state.slots, arrays, "slot/");
  trainer.restore(state);
  return run;
}

}  // namespace tandem::cli
