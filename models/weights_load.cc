// Matching a file's weights with a graph's parameters.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "models/weights_map.h"
#include "runtime/base/error.h"

namespace tandem::models {
namespace {

constexpr std::size_t kNamed = 5;

struct FileWeight {
  const LayerWeight* weight;
  std::string title;  // for reports: "layer weight"
};
struct FileLayer {
  std::string name;
  std::vector<FileWeight> weights;
};

// "stem/kernel:0" -> "stem"; "" for a bare "kernel".
std::string prefix_of(const std::string& weight) {
  const std::size_t slash = weight.rfind('/');
  return slash == std::string::npos ? "" : weight.substr(0, slash);
}

// A nested model is one layer of the file whose weights are those of its inner layers, not always together: taken apart by their names.
std::vector<FileLayer> inner_layers(const std::vector<Layer>& file) {
  std::vector<FileLayer> out;
  for (const Layer& layer : file) {
    std::vector<std::string> prefixes;
    for (const LayerWeight& w : layer.weights) {
      if (std::find(prefixes.begin(), prefixes.end(), prefix_of(w.name)) == prefixes.end()) prefixes.push_back(prefix_of(w.name));
    }
    for (const std::string& prefix : prefixes) {
      FileLayer inner{prefixes.size() == 1 || prefix.empty() ? layer.name : prefix, {}};
      for (const LayerWeight& w : layer.weights) {
        if (prefix_of(w.name) == prefix) inner.weights.push_back({&w, layer.name + " " + w.name});
      }
      out.push_back(std::move(inner));
    }
  }
  return out;
}

// A kernel named "kernel" whose groups have one channel each is taken for a DepthwiseConv2D's (h, w, C, M); a Conv2D with groups has (h, w, 1, C *
// M).
ArrayForm form_for(const Parameter& p, const Shape& found) {
  if (found == p.form.keras || p.word != "kernel" || !is_depthwise(p.form)) return p.form;
  std::vector<std::size_t> perm = p.form.perm;
  std::swap(perm[perm.size() - 2], perm.back());
  const ArrayForm grouped = ArrayForm::permuted(p.form.graph, p.form.graph, perm);
  return found == grouped.keras ? grouped : p.form;
}

struct Target {
  const Parameter* parameter;
  std::string title;  // "layer/word"
  const FileWeight* found = nullptr;
};

// The weight of a layer that belongs to a word. Keras calls a depthwise kernel by two names; old files have names of other kinds, there the
// position decides.
const FileWeight* find_word(const FileLayer& layer, const ParameterLayer& wanted, std::size_t index) {
  const std::string& word = wanted.parameters[index].word;
  bool words = false;
  for (const FileWeight& w : layer.weights) {
    const std::string found = weight_word(w.weight->name);
    if (found == word) return &w;
    words = words || word_order(found) >= 0;
  }
  const char* other = word == "kernel" ? "depthwise_kernel" : word == "depthwise_kernel" ? "kernel" : "";
  for (const FileWeight& w : layer.weights) {
    if (weight_word(w.weight->name) == other) return &w;
  }
  return !words && layer.weights.size() == wanted.parameters.size() ? &layer.weights[index] : nullptr;
}

bool has_all_names(const std::vector<ParameterLayer>& wanted, const std::map<std::string, const FileLayer*>& by_name) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const ParameterLayer& l) { return by_name.count(l.name) > 0; });
}

std::vector<Target> match_by_name(const std::vector<ParameterLayer>& wanted, const std::map<std::string, const FileLayer*>& by_name) {
  std::vector<Target> targets;
  for (const ParameterLayer& layer : wanted) {
    const auto file = by_name.find(layer.name);
    for (std::size_t i = 0; i < layer.parameters.size(); ++i) {
      const Parameter& p = layer.parameters[i];
      targets.push_back({&p, layer.name + "/" + p.word, file == by_name.end() ? nullptr : find_word(*file->second, layer, i)});
    }
  }
  return targets;
}

std::vector<Target> match_by_order(const std::vector<ParameterLayer>& wanted, const std::vector<FileLayer>& file) {
  std::vector<const FileLayer*> with_weights;
  for (const FileLayer& layer : file) {
    if (!layer.weights.empty()) with_weights.push_back(&layer);
  }
  if (with_weights.size() != wanted.size()) {
    throw InvalidModel(
        fmt::format("the network has {} layers with weights, the file {}: they cannot be matched by order", wanted.size(), with_weights.size()));
  }
  std::vector<Target> targets;
  for (std::size_t l = 0; l < wanted.size(); ++l) {
    if (with_weights[l]->weights.size() != wanted[l].parameters.size()) {
      throw InvalidModel(fmt::format("layer {} of the network, \"{}\", has {} weights; layer {} of the file, \"{}\", has {}", l + 1, wanted[l].name,
                                     wanted[l].parameters.size(), l + 1, with_weights[l]->name, with_weights[l]->weights.size()));
    }
    for (std::size_t i = 0; i < wanted[l].parameters.size(); ++i) {
      const Parameter& p = wanted[l].parameters[i];
      targets.push_back({&p, wanted[l].name + "/" + p.word, &with_weights[l]->weights[i]});
    }
  }
  return targets;
}

// A value of the file as float32; double and half precision are rounded or widened once.
Tensor as_f32(const Tensor& t, const std::string& title) {
  if (t.dtype() == DType::kF32) return t;
  if (t.dtype() != DType::kF64 && t.dtype() != DType::kF16)
    throw InvalidModel(fmt::format("weight {} is {}, expected float32", title, name_of(t.dtype())));
  Tensor out(DType::kF32, t.shape());
  const auto values = t.to_doubles();
  std::transform(values.begin(), values.end(), out.as_mutable<float>().begin(), [](double v) { return static_cast<float>(v); });
  return out;
}

template <class List, class Text>
std::string listed(const List& list, Text text) {
  std::string out;
  for (std::size_t i = 0; i < std::min(kNamed, list.size()); ++i) out += "\n  " + text(list[i]);
  if (list.size() > kNamed) out += fmt::format("\n  and {} more", list.size() - kNamed);
  return out;
}

void check(const LoadReport& r, const LoadOptions& options) {
  if (!options.allow_mismatch && !r.mismatched.empty()) {
    throw InvalidModel("shapes differ between network and file:" + listed(r.mismatched, [](const LoadReport::Pair& p) {
                         return fmt::format("{} needs {}, {} has {}", p.parameter, to_string(p.expected), p.weight, to_string(p.found));
                       }));
  }
  if (r.used.empty())
    throw InvalidModel("no weight of the file matches the network" + listed(r.missing, [](const std::string& s) { return "missing: " + s; }));
  if (!options.allow_missing && !r.missing.empty())
    throw InvalidModel("the file lacks weights of the network:" + listed(r.missing, [](const std::string& s) { return s; }));
}

}  // namespace

LoadReport load_weights(Graph& graph, const std::vector<Layer>& file, const LoadOptions& options) {
  const auto wanted = parameter_layers(graph);
  const auto layers = inner_layers(file);
  std::map<std::string, const FileLayer*> by_name;
  for (const FileLayer& layer : layers) by_name.emplace(layer.name, &layer);
  LoadReport report;
  report.match = options.match != Match::kAuto ? options.match : has_all_names(wanted, by_name) ? Match::kName : Match::kOrder;
  const auto targets = report.match == Match::kName ? match_by_name(wanted, by_name) : match_by_order(wanted, layers);
  std::set<const FileWeight*> taken;
  std::vector<std::pair<const Target*, ArrayForm>> loaded;
  for (const Target& t : targets) {
    if (!t.found) {
      report.missing.push_back(t.title);
      continue;
    }
    taken.insert(t.found);
    const ArrayForm form = form_for(*t.parameter, t.found->weight->shape);
    const bool fits = t.found->weight->shape == form.keras;
    (fits ? report.used : report.mismatched).push_back({t.title, t.found->title, t.parameter->form.keras, t.found->weight->shape});
    if (fits) loaded.emplace_back(&t, form);
  }
  for (const FileLayer& layer : layers) {
    for (const FileWeight& w : layer.weights) {
      if (!taken.contains(&w)) report.unused.push_back(w.title);
    }
  }
  check(report, options);
  std::vector<std::pair<ValueId, Tensor>> values;
  for (const auto& [t, form] : loaded) values.emplace_back(t->parameter->value, to_graph(form, as_f32(t->found->weight->read(), t->found->title)));
  for (auto& [value, tensor] : values) graph.value(value).constant = std::move(tensor);
  return report;
}

}  // namespace tandem::models
