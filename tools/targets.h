// What the targets of a labelled set are, and which loss goes with them and with the network's end. For train and evaluate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/dataset.h"
#include "runtime/graph/graph.h"
#include "tools/option_set.h"

namespace tandem::cli {

// --loss auto|categorical_crossentropy|...
void declare_loss(OptionSet&, std::string& loss, const std::string& help);

// "categorical", "binary", "mse", "mae" of the option's word; and Keras' name of a kind.
std::string loss_kind(const std::string& word);
std::string loss_word(const std::string& kind);
inline bool is_regression(const std::string& kind) { return kind == "mse" || kind == "mae"; }

// The kind that the model says it was trained with (metadata `tandem.loss`, Keras' name); empty: it does not say.
std::string recorded_loss(const Graph&);
void record_loss(Graph&, const std::string& kind);

// How a set is opened for --loss WORD, before it is known what it holds.
io::Targets targets_for(const std::string& word);

// Targets that are numbers.
struct TargetFacts {
  double least = 0, most = 0;
  bool zeros_and_ones = false;
  bool sums_are_one = false;  // of each sample, none below 0
};
TargetFacts facts_of(const io::Dataset&);

struct LossChoice {
  std::string kind;
  io::Targets targets = io::Targets::kClasses;  // as the set is to be opened: kClasses or kValues
  std::string why;                              // of auto
};
// `word`: the option. `data`: opened with targets_for(word). With `may_change_end` a softmax is no reason against several classes at once or
// numbers: train takes another end then. Throws InvalidData naming the sample whose target the loss cannot take, and where nothing fits.
LossChoice choose_loss(const Graph&, const io::Dataset& data, const std::string& word, bool may_change_end);

// Throws InvalidData naming the file where a set is empty or has no labels, with where they were looked for.
void check_labelled(const io::Dataset&, const std::string& path);

// From the set's classes to the network's outputs: by name when every name is among the labels, by order when none is and the counts agree.
std::vector<std::int64_t> map_classes(const std::vector<std::string>& names, const std::vector<std::string>& labels, std::int64_t outputs);

}  // namespace tandem::cli
