// `tandem inspect`: what is in a model or weights file.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "io/keras_h5.h"
#include "runtime/base/error.h"
#include "runtime/graph/infer.h"
#include "tools/command.h"
#include "tools/model_inputs.h"
#include "tools/preprocess_flags.h"
#include "tools/tandem.h"

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string file;
  ShapeFlags shapes;
  bool json = false;
};

std::int64_t count(const Shape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t d : shape) n *= d;
  return n;
}

// Multiplications and additions of a node, each counted as one; only products of matrices and convolutions count.
double flop(const Graph& g, const Node& node) {
  if (node.inputs.size() < 2 || node.inputs[1] == kNoValue) return 0;
  const Shape &x = g.value(node.inputs[0]).shape, &w = g.value(node.inputs[1]).shape, &y = g.value(node.outputs[0]).shape;
  if (node.op == "Conv" && !w.empty() && w[0] > 0) return 2.0 * static_cast<double>(count(y)) * static_cast<double>(count(w) / w[0]);
  if (node.op == "ConvTranspose" && !w.empty() && w[0] > 0) return 2.0 * static_cast<double>(count(x)) * static_cast<double>(count(w) / w[0]);
  if (node.op == "Gemm" && y.size() == 2 && y[1] > 0) return 2.0 * static_cast<double>(y[0]) * static_cast<double>(count(w));
  if (node.op == "MatMul" && !x.empty()) return 2.0 * static_cast<double>(count(y)) * static_cast<double>(x.back());
  return 0;
}

struct Row {
  std::string name, op;
  std::optional<Shape> output;  // nothing: not known
  std::int64_t parameters = 0;
  double flop = 0;
};

struct Facts {
  std::vector<Row> rows;
  std::map<std::string, int> operators;
  std::int64_t parameters = 0;
  double flop = 0;
};

// `shaped`: the graph has its shapes. A constant that several nodes read counts at the first.
Facts facts_of(const Graph& g, bool shaped) {
  Facts f;
  std::set<ValueId> seen;
  for (const Node& node : g.nodes) {
    const Value& out = g.value(node.outputs[0]);
    Row row{.name = node.name.empty() ? out.name : node.name, .op = node.op, .output = std::nullopt};
    if (shaped) {
      row.output = out.shape;
      row.flop = flop(g, node);
    }
    for (const ValueId id : node.inputs) {
      if (id == kNoValue || !g.value(id).known() || g.value(id).dtype != DType::kF32 || !seen.insert(id).second) continue;
      row.parameters += g.value(id).constant.size();
    }
    ++f.operators[node.op];
    f.parameters += row.parameters;
    f.flop += row.flop;
    f.rows.push_back(std::move(row));
  }
  return f;
}

std::string record(const Graph& g, const char* key) {
  const auto at = g.metadata.find(key);
  return at == g.metadata.end() ? "" : at->second;
}

std::string batch_norm_state(const Facts& f) {
  const auto at = f.operators.find("BatchNormalization");
  return at == f.operators.end() ? "none: folded into the convolutions, or never there" : fmt::format("{} kept", at->second);
}

// What only shapes tell; nothing where the model leaves them open.
struct Sized {
  std::vector<Shape> shapes;
  RunReport plan;
};

Json model_json(const Options& o, const Graph& g, const Facts& f, const std::optional<Sized>& sized) {
  Json j = {{"file", o.file},
            {"producer", g.origin.producer},
            {"producer_version", g.origin.producer_version},
            {"ir_version", g.origin.ir_version},
            {"opset", g.origin.opset},
            {"first_exported_by", record(g, "tandem.origin")},
            {"dynamic_batch", has_dynamic_batch(g)}};
  for (const auto& [key, ids] : {std::pair{"inputs", &g.inputs}, std::pair{"outputs", &g.outputs}}) {
    j[key] = Json::array();
    for (const ValueId id : *ids) j[key].push_back(g.value(id).name);
  }
  j["parameters"] = f.parameters;
  for (const char* key : {"input_shapes", "gflop_per_image", "weights_bytes", "bytes_per_image"}) j[key] = nullptr;
  j["passes"] = Json::array();
  if (sized) {
    const auto& [shapes, plan] = *sized;
    const double images = shapes.empty() || shapes[0].empty() ? 1 : static_cast<double>(std::max<std::int64_t>(1, shapes[0][0]));
    j["input_shapes"] = shapes;
    j["gflop_per_image"] = f.flop / images / 1e9;
    j["weights_bytes"] = plan.weights_bytes;
    j["bytes_per_image"] = static_cast<double>(plan.activation_bytes + plan.io_bytes) / images;
    j["passes"] = plan.passes;
  }
  j["batch_normalization"] = batch_norm_state(f);
  for (const char* key : {"tandem.preprocess", "tandem.labels"}) {
    const std::string text = record(g, key);
    const Json parsed = text.empty() ? Json(nullptr) : Json::parse(text, nullptr, false);
    j[std::string(key).substr(7)] = parsed.is_discarded() ? Json(text) : parsed;
  }
  j["operators"] = f.operators;
  j["notes"] = g.origin.notes;
  j["nodes"] = Json::array();
  for (const Row& r : f.rows)
    j["nodes"].push_back({{"name", r.name}, {"op", r.op}, {"output", r.output ? Json(*r.output) : Json(nullptr)}, {"parameters", r.parameters}});
  return j;
}

std::string model_text(const Json& j, const Facts& f) {
  std::string text = fmt::format("{:44} {:22} {:22} {:>12}\n", "node", "operator", "output shape", "parameters");
  for (const Row& r : f.rows) text += fmt::format("{:44} {:22} {:22} {:>12}\n", r.name, r.op, r.output ? to_string(*r.output) : "?", r.parameters);
  text += "\noperators      ";
  for (const auto& [op, n] : f.operators) text += fmt::format(" {} {}", n, op);
  text += fmt::format("\nparameters      {}\n", f.parameters);
  text += j["input_shapes"].is_null()
              ? "per image       the model leaves the shape of its input open: --size or --shape tells shapes, work and memory\n"
              : fmt::format("per image       {:.4f} GFLOP, {:.0f} bytes; weights {} bytes\n", j["gflop_per_image"].get<double>(),
                            j["bytes_per_image"].get<double>(), j["weights_bytes"].get<std::size_t>());
  const auto word = [&](const char* key) { return j[key].get<std::string>(); };
  text += fmt::format("exporter        {}{}{}, opset {}, IR {}{}\n", word("producer").empty() ? "not named" : word("producer"),
                      word("producer_version").empty() ? "" : " ", word("producer_version"), j["opset"].get<int>(), j["ir_version"].get<int>(),
                      word("first_exported_by").empty() ? "" : "; first exported by " + word("first_exported_by"));
  text += fmt::format("batch           {}\n", j["dynamic_batch"].get<bool>() ? "any" : "fixed");
  text += fmt::format("batch norm      {}\n", j["batch_normalization"].get<std::string>());
  for (const char* key : {"preprocess", "labels"}) {
    text += fmt::format("{:15} {}\n", key, j[key].is_null() ? "no record" : j[key].dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  for (const auto& line : j["notes"]) text += fmt::format("importer        {}\n", line.get<std::string>());
  for (const auto& line : j["passes"]) text += fmt::format("pass            {}\n", line.get<std::string>());
  return text;
}

// By the flags and the model; what stays open is closed by the model's record of its preprocessing.
std::optional<std::vector<Shape>> shapes_of(const Graph& g, const ShapeFlags& flags) {
  auto shapes = known_shapes(g, flags);
  const std::string preprocess = record(g, "tandem.preprocess");
  if (shapes || preprocess.empty() || g.inputs.size() != 1) return shapes;
  try {
    return std::vector<Shape>{batch_shape(g, io::parse_preprocess(preprocess), std::max<std::int64_t>(1, flags.batch))};
  } catch (const Error&) {  // shown as it is
    return std::nullopt;
  }
}

int inspect_model(const Options& o) {
  const Model model = Model::from_file(o.file);
  const Graph& g = model.graph();
  const auto shapes = shapes_of(g, o.shapes);
  return with_context([&] { return o.file; },
                      [&] {
                        Graph shaped = g;
                        std::optional<Sized> sized;
                        if (shapes) {
                          infer(shaped, InputBinding{*shapes, {}});
                          sized = Sized{*shapes, Predictor(model).plan(*shapes)};
                        }
                        const Facts f = facts_of(shaped, sized.has_value());
                        const Json j = model_json(o, g, f, sized);
                        print(o.json ? json_text(j) : printable(model_text(j, f), 4000));
                        return 0;
                      });
}

int inspect_weights(const Options& o) {
  const io::KerasWeights file = io::read_keras_h5(o.file);
  Json j = {{"file", o.file}, {"keras_version", file.keras_version}, {"backend", file.backend}};
  j["tandem_sha256"] = file.sha256 ? Json(*file.sha256) : Json(nullptr);
  for (const auto& [key, value] : file.texts) j[key] = value;
  j["layers"] = Json::array();
  std::string text = fmt::format("{:32} {:48} {:24} {:>12}\n", "layer", "weight", "shape", "parameters");
  std::int64_t parameters = 0;
  for (const Layer& layer : file.layers) {
    Json weights = Json::array();
    for (const LayerWeight& w : layer.weights) {
      parameters += count(w.shape);
      weights.push_back({{"name", w.name}, {"dtype", name_of(w.dtype)}, {"shape", w.shape}});
      text += fmt::format("{:32} {:48} {:24} {:>12}\n", layer.name, w.name, to_string(w.shape), count(w.shape));
    }
    j["layers"].push_back({{"name", layer.name}, {"weights", weights}});
  }
  j["parameters"] = parameters;
  text += fmt::format("\nparameters      {}\nkeras           {} ({})\ndigest          {}\n", parameters,
                      file.keras_version.empty() ? "version not given" : file.keras_version,
                      file.backend.empty() ? "backend not given" : file.backend, file.sha256 ? *file.sha256 : "none");
  for (const auto& [key, value] : file.texts) text += fmt::format("{:15} {}\n", key, value);
  print(o.json ? json_text(j) : printable(text, 4000));
  return 0;
}

}  // namespace

Command inspect_command() {
  auto o = std::make_shared<Options>();
  return {.name = "inspect",
          .summary = "Shows what is in a file: operators, shapes, parameters, exporter, batch norm, preprocessing, labels, work and memory.",
          .example = "tandem inspect model.onnx\ntandem inspect weights.h5 --json",
          .declare =
              [o](OptionSet& s) {
                s.positional("FILE", o->file, "an .onnx file, or an .h5 file in Keras' legacy layout");
                declare_shapes(s, o->shapes);
                s.flag("--json", o->json, "print one JSON object");
              },
          .run =
              [o](const Console&) {
                const std::string& f = o->file;
                return f.ends_with(".h5") || f.ends_with(".hdf5") || f.ends_with(".keras") ? inspect_weights(*o) : inspect_model(*o);
              },
          .subcommands = {}};
}

}  // namespace tandem::cli
