#include "tools/targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "runtime/graph/network_end.h"
#include "tools/train_setup.h"

namespace tandem::cli {
namespace {

using Activation = NetworkEnd::Activation;
using io::Targets;

constexpr const char* kRecord = "tandem.loss";

bool in_unit(const TargetFacts& facts) { return facts.least >= 0 && facts.most <= 1; }

// The loss binary_crossentropy takes shares of one.
void check_unit(const io::Dataset& data) {
  std::vector<float> row(static_cast<std::size_t>(data.value_count()));
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.values(i, row);
    for (const float v : row) {
      if (!(v >= 0 && v <= 1))
        throw InvalidData(fmt::format("{} has the target {}: binary_crossentropy takes numbers from 0 to 1 (--loss mse or mae take any)",
                                      quote_whole(data.name(i)), v));
    }
  }
}

std::int64_t largest_label(const io::Dataset& data) {
  std::int64_t most = -1;
  for (std::int64_t i = 0; i < data.size(); ++i) most = std::max(most, data.label(i));
  return most;
}

LossChoice auto_for_classes(const Graph& graph, const io::Dataset& data, Activation end) {
  if (end == Activation::kSigmoid) return {"binary", Targets::kClasses, "classes, the network ends in a sigmoid"};
  if (end == Activation::kNone && outputs_of(graph) == 1 && data.class_names().empty() && data.label(0) >= 0) {
    if (largest_label(data) > 1) return {"mse", Targets::kValues, "numbers, the network gives one"};
    return {"binary", Targets::kClasses, "zeros and ones, the network gives one score"};
  }
  if (end == Activation::kNone && outputs_of(graph) == 1 && data.class_names().size() == 2)
    return {"binary", Targets::kClasses, "two classes, the network gives one score"};
  return {"categorical", Targets::kClasses, "classes"};
}

// One stray -1 would make a regression of a classification. A network that gives one plain number is no classifier.
void check_integers(const io::Dataset& data, const TargetFacts& facts, bool one_number) {
  if (one_number || data.value_count() != 1 || !data.has_integer_values() || facts.least >= 0 || facts.most < 0) return;
  std::vector<float> value(1);
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.values(i, value);
    if (value[0] < 0)
      throw InvalidData(fmt::format("{} has the label {}, which is no class, while others are class numbers (--loss mse or mae if they are numbers)",
                                    quote_whole(data.name(i)), value[0]));
  }
}

LossChoice auto_for_values(const io::Dataset& data, Activation end, std::int64_t outputs, bool may_change_end) {
  const TargetFacts facts = facts_of(data);
  check_integers(data, facts, end == Activation::kNone && outputs == 1);
  const bool softmax = end == Activation::kSoftmax;
  if (facts.sums_are_one && data.value_count() > 1 && end != Activation::kSigmoid)
    return {"categorical", Targets::kValues, "shares of classes, they add up to 1"};
  if (softmax && !may_change_end)
    throw InvalidData(
        fmt::format("the targets are {}, the network ends in a softmax, which tells classes apart: --loss says what they are compared by",
                    facts.zeros_and_ones ? "several zeros and ones for a sample" : "numbers"));
  if (facts.zeros_and_ones) return {"binary", Targets::kValues, "zeros and ones, several of them 1 at once"};
  if (end == Activation::kSigmoid && in_unit(facts)) return {"binary", Targets::kValues, "numbers from 0 to 1, the network ends in a sigmoid"};
  return {"mse", Targets::kValues, "numbers"};
}

}  // namespace

void declare_loss(OptionSet& o, std::string& loss, const std::string& help) {
  o.choice("--loss", {"auto", "categorical_crossentropy", "sparse_categorical_crossentropy", "binary_crossentropy", "mse", "mae"}, loss, help);
}

std::vector<std::int64_t> map_classes(const std::vector<std::string>& names, const std::vector<std::string>& labels, std::int64_t outputs) {
  std::vector<std::int64_t> map;
  std::int64_t known = 0;
  for (const std::string& name : names) {
    const auto at = std::find(labels.begin(), labels.end(), name);
    known += at != labels.end();
    map.push_back(at == labels.end() ? -1 : at - labels.begin());
  }
  if (known == static_cast<std::int64_t>(names.size())) return map;
  if (known > 0) {
    const auto missing = std::find(map.begin(), map.end(), -1) - map.begin();
    throw InvalidData(fmt::format("{} of {} class names are among the model's labels, \"{}\" is not", known, names.size(),
                                  names[static_cast<std::size_t>(missing)]));
  }
  if (static_cast<std::int64_t>(names.size()) != outputs) {
    throw InvalidData(fmt::format(
        "the data has {} classes, the network {} outputs, and {}", names.size(), outputs,
        labels.empty() ? "there are no labels to tell which is which: give --labels FILE" : "none of the class names is among the labels"));
  }
  for (std::size_t i = 0; i < map.size(); ++i) map[i] = static_cast<std::int64_t>(i);
  return map;
}

void check_labelled(const io::Dataset& data, const std::string& path) {
  if (data.size() == 0) throw InvalidData(fmt::format("{} holds no samples", quote_whole(path)));
  if (data.value_count() > 0 || data.label(0) >= 0) return;
  const bool npy = path.ends_with(".npy"), pairs = path.ends_with(".npz") || path.ends_with(".h5") || path.ends_with(".hdf5");
  throw InvalidData(fmt::format("{} has no labels: expected {}", quote_whole(path),
                                npy     ? "NAME_y.npy or y.npy beside it"
                                : pairs ? "them beside the samples, as y beside x or y_train beside x_train"
                                        : "a file of labels beside it, ...-labels-idx1-ubyte beside ...-images-idx3-ubyte"));
}

std::string loss_kind(const std::string& word) {
  if (word == "categorical_crossentropy" || word == "sparse_categorical_crossentropy") return "categorical";
  return word == "binary_crossentropy" ? "binary" : word;
}

std::string loss_word(const std::string& kind) { return is_regression(kind) ? kind : kind + "_crossentropy"; }

std::string recorded_loss(const Graph& graph) {
  const auto at = graph.metadata.find(kRecord);
  if (at == graph.metadata.end()) return "";
  const std::string kind = loss_kind(at->second);
  return kind == "categorical" || kind == "binary" || is_regression(kind) ? kind : "";
}

void record_loss(Graph& graph, const std::string& kind) { graph.metadata[kRecord] = loss_word(kind); }

Targets targets_for(const std::string& word) {
  const std::string kind = loss_kind(word);
  if (word == "sparse_categorical_crossentropy") return Targets::kNumbers;
  return is_regression(kind) ? Targets::kValues : kind == "categorical" ? Targets::kShares : Targets::kEither;
}

TargetFacts facts_of(const io::Dataset& data) {
  TargetFacts facts{.least = std::numeric_limits<double>::infinity(),
                    .most = -std::numeric_limits<double>::infinity(),
                    .zeros_and_ones = true,
                    .sums_are_one = true};
  std::vector<float> row(static_cast<std::size_t>(data.value_count()));
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.values(i, row);
    for (const float f : row) {
      const double v = static_cast<double>(f);
      facts.least = std::min(facts.least, v);
      facts.most = std::max(facts.most, v);
      facts.zeros_and_ones = facts.zeros_and_ones && (f == 0 || f == 1);
    }
    facts.sums_are_one = facts.sums_are_one && io::are_shares(row);
  }
  return facts;
}

LossChoice choose_loss(const Graph& graph, const io::Dataset& data, const std::string& word, bool may_change_end) {
  const bool values = data.value_count() > 0;
  if (word == "auto") {
    const Activation end = network_end(graph).activation;
    return values ? auto_for_values(data, end, outputs_of(graph), may_change_end) : auto_for_classes(graph, data, end);
  }
  const std::string kind = loss_kind(word);
  if (kind == "binary" && values) check_unit(data);
  return {kind, values ? Targets::kValues : Targets::kClasses, ""};
}

}  // namespace tandem::cli
