#include "tests/support/training_runs.h"

#include "models/weights_map.h"

namespace tandem::test {
namespace {

bool is_statistic(const std::string& word) { return word == "moving_mean" || word == "moving_variance"; }

struct Known {
  std::string name;  // "conv1/kernel"
  models::Parameter parameter;
};

std::vector<Known> known_parameters(const Graph& graph) {
  std::vector<Known> all;
  for (const auto& layer : models::parameter_layers(graph)) {
    for (const auto& p : layer.parameters) all.push_back({layer.name + "/" + p.word, p});
  }
  return all;
}

}  // namespace

Trainable everything_trained(const Graph& graph) {
  Trainable made;
  for (const Known& k : known_parameters(graph)) {
    if (is_statistic(k.parameter.word)) continue;
    made.training.trained.push_back(k.parameter.value);
    made.parameters.push_back({.name = graph.value(k.parameter.value).name, .shape = graph.value(k.parameter.value).shape});
  }
  for (const BatchNormLayer& layer : batch_norm_layers(graph)) made.training.running.push_back(layer.statistics);
  return made;
}

std::map<std::string, Tensor> keras_arrays(const Graph& graph, const std::vector<Trainer::NamedArray>& arrays) {
  std::map<std::string, Tensor> out;
  const auto known = known_parameters(graph);
  for (const auto& a : arrays) {
    for (const Known& k : known) {
      const std::string& own = graph.value(k.parameter.value).name;
      if (a.name == own) out[k.name] = models::to_keras(k.parameter.form, a.values);
      const std::size_t slash = a.name.find('/');
      if (a.name.substr(slash + 1) == own && a.name != own) out[a.name.substr(0, slash + 1) + k.name] = models::to_keras(k.parameter.form, a.values);
    }
  }
  return out;
}

}  // namespace tandem::test
