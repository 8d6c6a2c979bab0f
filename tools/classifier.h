// A network that maps images to class scores, for predict and evaluate: batches go in as they are decoded, rows come out in order.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "io/decode_queue.h"
#include "tools/tandem.h"

namespace tandem::cli {

enum class OutputType { kProbabilities, kLogits, kFeatures, kValues };  // kValues: the outputs as they are, of regression

class Classifier {
 public:
  // `input` is the shape of a batch of one. Throws UsageError when the network has more than one input, Unsupported when probabilities or logits
  // are asked for and it gives more than a score for each class, as segmentation does. `loss`: that the network was trained with, by kind
  // (tools/targets.h): scores of "binary" become probabilities by a sigmoid, others by a softmax.
  Classifier(Model model, RunOptions options, Shape input, OutputType type, const std::string& layer, const std::string& loss = "");

  // A network with one output that tells two classes apart: from now on there are two scores, of "no" and "yes".
  void tell_two_apart();

  std::int64_t classes() const { return classes_; }
  std::int64_t sample_size() const { return sample_size_; }
  const Predictor& predictor() const { return *predictor_; }
  // The file's fixed batch, else 0: batches of another size are filled up by repeating the last image.
  std::int64_t fixed_batch() const { return fixed_batch_; }
  // Images that go through the network at once when batches of `wanted` are asked for.
  std::int64_t batch(std::int64_t wanted) const { return fixed_batch_ > 0 ? fixed_batch_ : wanted; }
  // The plan for such a batch.
  RunReport plan(std::int64_t wanted) const;

  struct Item {
    std::int64_t index;
    std::string error;              // not empty: the file could not be read
    std::span<const float> scores;  // of this image
  };
  // Decodes items [first, last) ahead with the predictor's own threads and hands each to `done`, in order. `load` fills one sample and throws
  // for a damaged one. `after_batch` is called between batches. `workers`: how many samples are decoded ahead (0: two batches, a sixteenth of the
  // memory limit at most).
  void for_each(std::int64_t first, std::int64_t last, std::int64_t batch_size, int workers, io::DecodeQueue::Load load,
                const std::function<void(const Item&)>& done, const std::function<void()>& after_batch) const;

 private:
  void count_memory(RunOptions& options);
  std::vector<float> run_batch(std::vector<float> samples, std::int64_t count) const;

  std::unique_ptr<Predictor> predictor_;
  Shape input_;
  OutputType type_;
  bool softmax_on_top_ = false;  // scores are logits of a network that ends without one, probabilities were asked for
  bool sigmoid_on_top_ = false;  // likewise
  bool two_of_one_ = false;
  bool one_row_ = false;  // what comes out are scores of classes
  std::int64_t classes_ = 0, sample_size_ = 0, fixed_batch_ = 0, most_ahead_ = 4096;
};

OutputType output_type_of(const std::string& word);  // "prob" "logit" "features"

}  // namespace tandem::cli
