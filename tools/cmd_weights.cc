// `tandem weights`: list, save, load and compare weights.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "importer/exporter.h"
#include "importer/importer.h"
#include "io/keras_h5.h"
#include "models/weights_map.h"
#include "runtime/base/error.h"
#include "runtime/base/sha256.h"
#include "tools/command.h"
#include "tools/tandem.h"

namespace tandem::cli {
namespace {

bool is_h5(const std::string& file) { return file.ends_with(".h5") || file.ends_with(".hdf5") || file.ends_with(".keras"); }

// The layers of a file: of an .h5 as stored, of an .onnx as Keras would store them, or under its own names where they are not Keras'.
std::vector<Layer> layers_of(const std::string& file, const Console& console) {
  if (is_h5(file)) {
    auto weights = io::read_keras_h5(file);
    io::verify_digest(weights, file);
    return std::move(weights.layers);
  }
  const Model model = Model::from_file(file);
  try {
    return models::keras_layers(model.graph());
  } catch (const Unsupported&) {
    console.info(fmt::format("{}: names and shapes are the file's own, not Keras'", file));
    return with_context([&] { return file; }, [&] { return models::own_layers(model.graph()); });
  }
}

std::string digest_of(const Tensor& t) {
  Sha256 sha;
  sha.update(t.data(), t.bytes());
  return sha.hex();
}

struct ShowOptions {
  std::string file;
  bool json = false;
};

int show(const ShowOptions& o, const Console& console) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string text;
  std::int64_t parameters = 0, tensors = 0;
  for (const Layer& layer : layers_of(o.file, console)) {
    for (const LayerWeight& w : layer.weights) {
      const Tensor t = w.read();
      const std::string sha = digest_of(t);
      parameters += t.size();
      ++tensors;
      if (o.json)
        rows.push_back({{"layer", layer.name}, {"name", w.name}, {"dtype", name_of(w.dtype)}, {"shape", w.shape}, {"sha256", sha}});
      else
        text += fmt::format("{:32} {:40} {:24} {}\n", layer.name, w.name, to_string(w.shape), sha);
    }
  }
  if (o.json)
    print(json_text(rows, 1));
  else
    print(printable(text, 400) + fmt::format("{} tensors, {} parameters\n", tensors, parameters));
  return 0;
}

struct SaveOptions {
  std::string model, output, layout = "keras2";
};

int save(const SaveOptions& o, const Console& console) {
  if (o.layout != "keras2") throw UsageError(fmt::format("option --layout: this version writes keras2 only, found \"{}\"", o.layout));
  if (o.output.ends_with(".weights.h5"))
    throw UsageError("Keras 3 reads files named *.weights.h5 in another layout: give the file another name ending in .h5");
  const Model model = Model::from_file(o.model);
  const auto layers = with_context([&] { return o.model; }, [&] { return models::keras_layers(model.graph()); });
  std::map<std::string, std::string> texts;
  for (const char* key : {"tandem.preprocess", "tandem.labels"}) {
    const auto at = model.graph().metadata.find(key);
    if (at != model.graph().metadata.end()) texts.emplace(*at);
  }
  io::write_keras_h5(o.output, layers, texts);
  std::size_t tensors = 0;
  for (const Layer& layer : layers) tensors += layer.weights.size();
  console.info(fmt::format("{}: {} layers, {} tensors, digest {}", o.output, layers.size(), tensors, io::weights_digest(layers)));
  return 0;
}

struct LoadFlags {
  std::string model, weights, output, match = "auto";
  bool allow_missing = false, allow_mismatch = false;
};

int load(const LoadFlags& o, const Console& console) {
  auto file = io::read_keras_h5(o.weights);
  io::verify_digest(file, o.weights);
  FileRecord record;
  Graph graph = import_file(o.model, {.record = &record});
  const models::Match match = o.match == "name" ? models::Match::kName : o.match == "order" ? models::Match::kOrder : models::Match::kAuto;
  const auto report = with_context([&] { return o.weights; },
                                   [&] {
                                     return models::load_weights(
                                         graph, file.layers, {.match = match, .allow_missing = o.allow_missing, .allow_mismatch = o.allow_mismatch});
                                   });
  for (const auto& [key, value] : file.texts) graph.metadata[key] = value;
  std::string text;
  for (const auto& pair : report.used) text += fmt::format("used       {} <- {} {}\n", pair.parameter, pair.weight, to_string(pair.found));
  for (const auto& pair : report.mismatched)
    text += fmt::format("mismatched {} {} <- {} {}\n", pair.parameter, to_string(pair.expected), pair.weight, to_string(pair.found));
  for (const std::string& name : report.missing) text += fmt::format("missing    {}\n", name);
  for (const std::string& name : report.unused) text += fmt::format("unused     {}\n", name);
  write_onnx(graph, o.output, {.record = &record});
  print(printable(text, 600));
  console.info(fmt::format("{}: {} tensors by {}, {} missing, {} of another shape, {} unused", o.output, report.used.size(),
                           report.match == models::Match::kName ? "name" : "order", report.missing.size(), report.mismatched.size(),
                           report.unused.size()));
  return 0;
}

struct DiffOptions {
  std::string a, b;
  bool json = false;
};

// Weights by layer and word, or by a name of the file's own that holds its layer's. A name that stands again gets "#2", "#3": files of nested models
// repeat layers' names.
std::vector<std::pair<std::string, LayerWeight>> named_weights(const std::vector<Layer>& layers) {
  std::vector<std::pair<std::string, LayerWeight>> named;
  std::set<std::string> taken;
  for (const Layer& layer : layers) {
    for (const LayerWeight& w : layer.weights) {
      const std::string name = w.name.starts_with(layer.name + ".") ? w.name : layer.name + "/" + weight_word(w.name);
      std::string unique = name;
      for (std::size_t n = 2; !taken.insert(unique).second; ++n) unique = fmt::format("{}#{}", name, n);
      named.emplace_back(unique, w);
    }
  }
  return named;
}

// NaN where one of the two holds it and the other does not, or an infinity meets another number.
double largest_difference(const Tensor& a, const Tensor& b) {
  const auto x = a.to_doubles(), y = b.to_doubles();
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double d = std::abs(x[i] - y[i]);
    if (std::isnan(d)) return NAN;
    largest = std::max(largest, d);
  }
  return largest;
}

int diff(const DiffOptions& o, const Console& console) {
  std::map<std::string, Tensor> second;
  for (const auto& [name, weight] : named_weights(layers_of(o.b, console))) second.emplace(name, weight.read());
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string text;
  const auto row = [&](const std::string& name, const std::string& what, double largest) {
    rows.push_back(
        {{"name", name}, {"result", what}, {"largest", std::isfinite(largest) ? nlohmann::ordered_json(largest) : nlohmann::ordered_json(nullptr)}});
    text += fmt::format("{:48} {}\n", name, what == "compared" ? fmt::format("{:.6g}", largest) : what);
  };
  bool equal = true;
  for (const auto& [name, weight] : named_weights(layers_of(o.a, console))) {
    const auto other = second.extract(name);
    if (other.empty()) {
      row(name, "only in the first", NAN);
      equal = false;
      continue;
    }
    const Tensor mine = weight.read();
    if (mine.shape() != other.mapped().shape()) {
      row(name, fmt::format("shapes {} and {}", to_string(mine.shape()), to_string(other.mapped().shape())), NAN);
      equal = false;
      continue;
    }
    const double largest = largest_difference(mine, other.mapped());
    equal = equal && largest == 0;
    row(name, "compared", largest);
  }
  for (const auto& [name, tensor] : second) {
    row(name, "only in the second", NAN);
    equal = false;
  }
  print(o.json ? json_text(rows, 1) : printable(text, 400) + (equal ? "equal\n" : "different\n"));
  return 0;
}

}  // namespace

Command weights_command() {
  auto s = std::make_shared<ShowOptions>();
  auto v = std::make_shared<SaveOptions>();
  auto l = std::make_shared<LoadFlags>();
  auto d = std::make_shared<DiffOptions>();
  Command weights{.name = "weights",
                  .summary = "Lists, saves, loads and compares weights, with Keras' .h5 as the other side.",
                  .example = "tandem weights save model.onnx -o weights.h5\ntandem weights diff before.h5 after.h5",
                  .declare = nullptr,
                  .run = nullptr,
                  .subcommands = {}};
  weights.subcommands.push_back({"show",
                                 "Lists layer, name, shape and SHA-256 of every weight.",
                                 "tandem weights show weights.h5\ntandem weights show model.onnx --json",
                                 [s](OptionSet& o) {
                                   o.positional("FILE", s->file, "an .h5 or .onnx file");
                                   o.flag("--json", s->json, "print a JSON list");
                                 },
                                 [s](const Console& c) { return show(*s, c); },
                                 {}});
  weights.subcommands.push_back({"save",
                                 "Writes the weights of a model as Keras stores them.",
                                 "tandem weights save model.onnx -o weights.h5",
                                 [v](OptionSet& o) {
                                   o.positional("MODEL", v->model, "an .onnx file whose parameters are named layer/weight");
                                   o.text("--output,-o", "W.h5", v->output, "the file to write").required = true;
                                   o.choice("--layout", {"keras2", "keras3", "weights.h5"}, v->layout, "Keras' legacy layout; the others come later");
                                 },
                                 [v](const Console& c) { return save(*v, c); },
                                 {}});
  weights.subcommands.push_back(
      {"load",
       "Puts weights of a Keras file into a model, with a report of every tensor.",
       "tandem weights load model.onnx weights.h5 -o loaded.onnx",
       [l](OptionSet& o) {
         o.positional("MODEL", l->model, "an .onnx file");
         o.positional("WEIGHTS", l->weights, "an .h5 file");
         o.text("--output,-o", "OUT", l->output, "the .onnx file to write").required = true;
         o.choice("--match", {"name", "order", "auto"}, l->match, "by layer name, by position as Keras does, or by name where every layer is there");
         o.flag("--allow-missing", l->allow_missing, "parameters without a weight keep their values");
         o.flag("--allow-mismatch", l->allow_mismatch, "so do those whose weight has another shape");
       },
       [l](const Console& c) { return load(*l, c); },
       {}});
  weights.subcommands.push_back({"diff",
                                 "The largest difference of each tensor of two files.",
                                 "tandem weights diff a.h5 b.h5",
                                 [d](OptionSet& o) {
                                   o.positional("A", d->a, "an .h5 or .onnx file");
                                   o.positional("B", d->b, "an .h5 or .onnx file");
                                   o.flag("--json", d->json, "print a JSON list");
                                 },
                                 [d](const Console& c) { return diff(*d, c); },
                                 {}});
  return weights;
}

}  // namespace tandem::cli
