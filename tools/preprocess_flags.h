// The preprocessing options of convert, evaluate and predict, and how they meet the model's own record.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/preprocess.h"
#include "runtime/graph/graph.h"
#include "tools/console.h"
#include "tools/option_set.h"

namespace tandem::cli {

struct PreprocessFlags {
  std::string image_size, resize, fit, family, pad, mean, std, channels, input_layout;  // empty: not given
  std::string labels, class_order = "plain";
  double crop_pct = 0;  // 0: not given
  bool any() const;     // an option that changes the record (labels and class order do not)
};
void declare_preprocess_flags(OptionSet&, PreprocessFlags&);

// The record for the graph's first input: the model's own (metadata `tandem.preprocess`) with the options laid over it; without a record the
// options, completed by what the graph shows (size and layout of its input). Says on the console in one line what it took. Throws UsageError
// naming the choices when nothing says how pixels become numbers, and when size or layout contradict the input.
io::Preprocess resolve_preprocess(const Graph&, const PreprocessFlags&, const Console&);

// The options that say all of the record but its pad_value, for which there is none; `given` for what is not in it.
PreprocessFlags flags_of(const io::Preprocess&, const PreprocessFlags& given);

// Labels in output order: --labels FILE, else the model's (`tandem.labels`); empty when neither is there. Throws InvalidData when their number is
// not `classes` (0: not known).
std::vector<std::string> resolve_labels(const Graph&, const PreprocessFlags&, std::int64_t classes);

// The graph's input as a batch of images, once it is known that the record fits it. Throws InvalidModel or UsageError.
Shape batch_shape(const Graph&, const io::Preprocess&, std::int64_t batch);

}  // namespace tandem::cli
