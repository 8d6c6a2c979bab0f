// Training batches from a data set: shuffled, augmented, decoded ahead of the devices.
//
// A pass over the data takes its samples in an order that is a function of (seed, pass) alone: Fisher-Yates with Philox. Batch k of a pass takes
// places [k B, (k + 1) B) of that order, the last one what is left; nothing is dropped. Every bit of a batch depends on the data, the options and its
// position, never on threads, on how far is looked ahead, or on where the source was started.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/augment.h"
#include "io/dataset.h"
#include "io/decode_queue.h"
#include "runtime/base/tensor.h"

namespace tandem::io {

struct BatchPosition {
  std::int64_t pass = 0, batch = 0;
  auto operator<=>(const BatchPosition&) const = default;
};

struct Batch {
  Tensor x;                         // [n, sample ...] float32, in the network's layout
  Tensor target;                    // [n, width] float32
  Tensor weight;                    // [n] float32: weight of the sample times that of its class; 1 where there are none
  std::vector<std::int64_t> index;  // of each sample in the data set
  std::vector<std::int64_t> label;  // of each sample before smoothing and mixing, an output of the network; -1 where targets are values but no shares
  std::int64_t first = 0;           // place of the batch's first sample in the order of its pass
  BatchPosition at;
  bool ends_pass = false;
};

struct BatchOptions {
  std::int64_t batch_size = 32;  // global
  std::uint64_t seed = 0;
  bool shuffle = true;
  std::int64_t passes = 0;           // the source ends behind so many; 0: never
  int ahead = 0;                     // samples that are decoded before they are asked for; 0: two batches
  bool skip_damaged = false;         // leave out samples that cannot be read, so that batches may be smaller; otherwise the first one is an error
  std::vector<std::int64_t> subset;  // indices of the data set that belong to this source (split_by_class); empty: all

  // Of one sample, as the network takes it ([C, H, W] or [H, W, C] with images), and of one target. With one output and two classes (a sigmoid) the
  // target is the class number, 0 or 1.
  Shape sample_shape;
  std::int64_t outputs = 0;
  std::vector<std::int64_t> class_map;  // output of each class of the data set; empty: class i is output i
  bool shares = false;                  // values are shares of classes: the largest is the sample's class for weights and labels
  float label_smoothing = 0;            // s: t (1 - s) + s / outputs; with one output, `apart` or values that are no shares t (1 - s) + s / 2 (Keras)
  bool apart = false;                   // each output is a question of its own (binary cross-entropy)
  std::vector<float> class_weights;     // for each output (two with one output); empty: 1

  Augmentation augment;
  std::optional<Preprocess> preprocess;     // the record that the data set was opened with
  InputLayout layout = InputLayout::kNhwc;  // of samples that are no images; with a record its own is taken
};

class BatchSource {
 public:
  // Checks every label. `submit` runs a task on some thread (TaskPool::submit) and must stay usable until the destructor returns. Throws UsageError
  // for options that do not go together, InvalidData naming the sample whose label is missing or none of the outputs.
  BatchSource(std::shared_ptr<const Dataset>, BatchOptions, DecodeQueue::Submit submit);
  ~BatchSource();  // waits for tasks under way
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  std::int64_t samples() const;  // of one pass
  std::int64_t batches() const;  // of one pass

  // The next batch; nothing behind the last pass. Blocks until it is decoded. One caller. InvalidData naming the file that cannot be read (with
  // skip_damaged: when no sample of a whole pass can be).
  std::optional<Batch> next();
  // Goes on at `position`, whatever was given before. UsageError when there is no such batch.
  void start(BatchPosition position);
  BatchPosition position() const;  // of the batch that next() gives

  // Seconds that next() took so far: the time that the devices stood still for want of data.
  double waited_seconds() const;
  // Seconds of all threads that decoding took so far, ahead of next() or in it.
  double decode_seconds() const;
  // With skip_damaged: samples that could not be read so far, by index, with the reason.
  const std::map<std::int64_t, std::string>& damaged() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The order of `count` samples in a pass: a permutation of 0 .. count - 1 (below 2^32).
std::vector<std::uint32_t> shuffled_order(std::uint64_t seed, std::int64_t pass, std::int64_t count);

struct Split {
  std::vector<std::int64_t> training, validation;  // indices, ascending
};
// The last floor(fraction * n) of each class's n samples, as shuffled by the seed, are for validation (without labels: of all samples).
// Throws UsageError unless 0 < fraction < 1 and both parts have a sample.
Split split_by_class(const Dataset&, double fraction, std::uint64_t seed);

}  // namespace tandem::io
