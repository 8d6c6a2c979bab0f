// predict --report: one self-contained page about a run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "io/image.h"
#include "io/listing.h"

namespace tandem::cli {

// Collects rows as they are written; memory grows with the number of classes, not of images.
class PredictReport {
 public:
  explicit PredictReport(std::size_t inputs) : inputs_(inputs) {}

  // `label` and `value` of the class that comes first; an empty label where a row holds no classes.
  void row(std::size_t input, const std::string& label, float value);
  void failure(std::size_t input, const std::string& error);

  struct About {
    std::string model, input, result, value;                    // value: "prob", "logit" or "feature"
    std::vector<std::pair<std::string, std::string>> settings;  // shown as they are
    double seconds = 0;
    std::size_t predicted_now = 0;  // inputs of this run; fewer than all when an earlier one was continued
  };
  // The page. Decodes the images of the least certain predictions again; what cannot be read any more has no picture.
  std::string html(const io::Listing& inputs, const About& about, const io::DecodeOptions& decode) const;

 private:
  struct Row {
    std::size_t input;
    std::string label;
    float value;
  };
  std::string classes() const;
  std::string certainty(const std::string& value) const;
  std::string least_certain(const io::Listing& inputs, const std::string& value, const io::DecodeOptions& decode) const;
  std::string errors(const io::Listing& inputs) const;

  std::size_t inputs_, rows_ = 0, failed_ = 0;
  std::map<std::string, std::size_t> by_class_;
  std::vector<std::size_t> by_certainty_ = std::vector<std::size_t>(10);  // of probabilities: tenths
  std::vector<Row> uncertain_;                                            // a heap, the most certain on top
  std::vector<std::pair<std::size_t, std::string>> errors_;               // the first ones
};

}  // namespace tandem::cli
