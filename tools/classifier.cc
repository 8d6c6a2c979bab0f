#include "tools/classifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/graph/network_end.h"

namespace tandem::cli {
namespace {

// The graph cut so that its only output is what was asked for.
Graph with_output(const Graph& graph, ValueId id) {
  Graph cut = graph;
  cut.outputs = {id};
  cut.declared_outputs = {Declared{.dtype = graph.value(id).dtype}};
  remove_dead_nodes(cut);
  return cut;
}

ValueId find_layer(const Graph& graph, const std::string& layer) {
  for (const Node& node : graph.nodes) {
    if (node.name == layer && !node.outputs.empty()) return node.outputs[0];
  }
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].name == layer && !graph.values[v].known()) return static_cast<ValueId>(v);
  }
  throw UsageError(fmt::format("option --layer: the network has no node or value \"{}\" (tandem inspect lists them)", layer));
}

// What goes into the last Gemm, MatMul or 1x1 Conv before the output.
ValueId features_of(const Graph& graph) {
  ValueId id = graph.outputs[0];
  for (int hops = 0; hops < 8; ++hops) {
    const Node* node = producer_of(graph, id);
    if (!node || node->inputs.empty()) break;
    if (node->op == "Gemm" || node->op == "MatMul" || node->op == "Conv") return node->inputs[0];
    id = node->inputs[0];
  }
  throw UsageError("option --output-type: no Dense layer before the output; name the layer with --layer");
}

void softmax(std::span<float> row) {
  const float top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float& v : row) sum += static_cast<double>(v = std::exp(v - top));
  for (float& v : row) v = static_cast<float>(v / sum);
}

float sigmoid(float v) { return static_cast<float>(1 / (1 + std::exp(-static_cast<double>(v)))); }

// "no" beside each "yes": 1 - p, or the logit 0.
std::vector<float> with_no(const std::vector<float>& yes, bool logits) {
  std::vector<float> both;
  for (const float v : yes) both.insert(both.end(), {logits ? 0.0f : 1 - v, v});
  return both;
}

}  // namespace

OutputType output_type_of(const std::string& word) {
  return word == "logit" ? OutputType::kLogits : word == "features" ? OutputType::kFeatures : OutputType::kProbabilities;
}

Classifier::Classifier(Model model, RunOptions options, Shape input, OutputType type, const std::string& layer, const std::string& loss)
    : input_(std::move(input)), type_(type) {
  const Graph& graph = model.graph();
  if (graph.inputs.size() != 1)
    throw UsageError(fmt::format("the network has {} inputs; images go into networks with one (use tandem run)", graph.inputs.size()));
  const NetworkEnd end = network_end(graph);
  const bool ends_in_scores = end.activation != NetworkEnd::Activation::kNone;
  ValueId output = graph.outputs[0];
  if (!layer.empty())
    output = find_layer(graph, layer);
  else if (type == OutputType::kFeatures)
    output = features_of(graph);
  else if (type == OutputType::kLogits)
    output = end.logits;
  const bool on_top = type == OutputType::kProbabilities && layer.empty() && !ends_in_scores;
  sigmoid_on_top_ = on_top && loss == "binary";
  softmax_on_top_ = on_top && !sigmoid_on_top_;
  one_row_ = (type == OutputType::kProbabilities || type == OutputType::kLogits) && layer.empty();
  const Value& v = graph.value(graph.inputs[0]);
  fixed_batch_ = v.shape_known && v.shape[0] > 0 ? v.shape[0] : 0;
  sample_size_ = elements(std::span(input_).subspan(1));
  count_memory(options);
  Model cut(std::make_shared<const Graph>(with_output(graph, output)));
  predictor_ = std::make_unique<Predictor>(std::move(cut), std::move(options));
  input_[0] = batch(1);
  classes_ = static_cast<std::int64_t>(run_batch(std::vector<float>(static_cast<std::size_t>(sample_size_), 0.0f), 1).size());
}

void Classifier::tell_two_apart() {
  two_of_one_ = true;
  classes_ = 2;
}

RunReport Classifier::plan(std::int64_t wanted) const {
  Shape shape = input_;
  shape[0] = batch(wanted);
  return predictor_->plan({shape});
}

// Decoded images wait in a queue, and a batch lies in a vector before and after the network: the limit holds for all of it.
void Classifier::count_memory(RunOptions& options) {
  const std::size_t limit = options.memory.limit(CpuInfo::detect().memory_bytes), sample = static_cast<std::size_t>(sample_size_) * sizeof(float);
  options.batch_copies = 2;
  if (limit == 0) return;
  most_ahead_ = static_cast<std::int64_t>(std::clamp<std::size_t>(limit / 16 / std::max<std::size_t>(sample, 1), 1, 256));
  options.held_bytes = static_cast<std::size_t>(most_ahead_) * sample;
}

std::vector<float> Classifier::run_batch(std::vector<float> samples, std::int64_t count) const {
  std::vector<float> scores;
  const auto sample = static_cast<std::size_t>(sample_size_);
  for (std::int64_t at = 0; at < count;) {
    Shape shape = input_;
    shape[0] = batch(count);
    const std::int64_t n = std::min(shape[0], count - at);
    Tensor input(DType::kF32, shape);
    auto* to = static_cast<float*>(input.mutable_data());
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      const std::int64_t from = at + std::min(i, n - 1);
      std::memcpy(to + static_cast<std::size_t>(i) * sample, &samples[static_cast<std::size_t>(from) * sample], sample * sizeof(float));
    }
    const Tensor out = predictor_->run({input})[0];
    if (out.rank() < 1 || out.shape()[0] != shape[0]) {
      throw Unsupported(fmt::format("the network gives {} for a batch of {}: not one row for each image", to_string(out.shape()), shape[0]));
    }
    const auto wide = std::count_if(out.shape().begin() + 1, out.shape().end(), [](std::int64_t d) { return d > 1; });
    if (one_row_ && wide > 1) {
      throw Unsupported(fmt::format("the network gives {} for an image, expected one score for each class: --layer NAME writes all values",
                                    to_string(std::span(out.shape()).subspan(1))));
    }
    const auto values = out.to_doubles();
    const std::size_t row = values.size() / static_cast<std::size_t>(shape[0]);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n) * row; ++i) scores.push_back(static_cast<float>(values[i]));
    at += n;
  }
  const std::size_t row = scores.size() / static_cast<std::size_t>(count);
  if (sigmoid_on_top_) std::transform(scores.begin(), scores.end(), scores.begin(), sigmoid);
  if (two_of_one_) return with_no(scores, type_ == OutputType::kLogits);
  for (std::size_t i = 0; softmax_on_top_ && i < static_cast<std::size_t>(count); ++i) softmax(std::span(scores).subspan(i * row, row));
  return scores;
}

void Classifier::for_each(std::int64_t first, std::int64_t last, std::int64_t batch_size, int workers, io::DecodeQueue::Load load,
                          const std::function<void(const Item&)>& done, const std::function<void()>& after_batch) const {
  const auto ahead = static_cast<int>(std::min<std::int64_t>(workers > 0 ? workers : std::min<std::int64_t>(2 * batch_size, 256), most_ahead_));
  io::DecodeQueue queue(
      first, last, sample_size_, ahead, [this](std::function<void()> task) { predictor_->submit(std::move(task)); }, std::move(load));
  std::int64_t index = first;
  while (index < last) {
    std::vector<float> samples;
    samples.reserve(static_cast<std::size_t>(std::min(batch_size, last - index) * sample_size_));
    std::vector<std::pair<std::int64_t, std::string>> items;  // index, error
    std::int64_t good = 0;
    while (index < last && good < batch_size) {
      auto item = queue.next();
      if (!item) break;
      if (item->error.empty()) {
        samples.insert(samples.end(), item->sample.begin(), item->sample.end());
        ++good;
      }
      items.emplace_back(index++, std::move(item->error));
    }
    const std::vector<float> scores = good ? run_batch(std::move(samples), good) : std::vector<float>();
    std::size_t row = 0;
    const auto width = static_cast<std::size_t>(classes_);
    for (const auto& [i, error] : items) {
      done({i, error, error.empty() ? std::span(scores).subspan(row++ * width, width) : std::span<const float>()});
    }
    if (after_batch) after_batch();
  }
}

}  // namespace tandem::cli
