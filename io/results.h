// Records of a prediction run: one row for each file read, in the order of the inputs, as CSV, JSONL or HDF5 (by the suffix of the file), and
// FILE.errors.csv for the others. What a killed run left can be continued to the same bytes that an uninterrupted run writes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tandem::io {

struct ResultOptions {
  std::string file;            // ends in .csv, .jsonl, .h5 or .hdf5
  int top_k = 1;               // columns path, top1, VALUE1, ... ; 0: path, VALUE1, VALUE2, ... (all values of a row)
  std::int64_t values = 1;     // with top_k 0: values of a row
  std::string value = "prob";  // name of the value columns: prob, logit, feature
  // The model's digest and every option that decides the rows, name and value; kept in FILE.state (result_state.h) with the digest of what is
  // written.
  std::vector<std::pair<std::string, std::string>> settings;
  bool go_on = false;         // continue what is there
  double record_seconds = 1;  // how often the digest is recorded: what came later is predicted again
  // With go_on: what is kept of the earlier run, in order. `input`: its index; `label`, `value`: the first of the row (no label with top_k 0).
  std::function<void(std::size_t input, const std::string& label, float value)> kept_row;
  std::function<void(std::size_t input, const std::string& error)> kept_failure;
};

// Rows must come in the order of the inputs; a row or a failure for each. One thread at a time.
class ResultWriter {
 public:
  // Starts anew (an old result and its error list are overwritten), or with go_on keeps the longest run of complete rows that fits the
  // beginning of `inputs`, of what FILE.state vouches for, and cuts off the rest. UsageError for another suffix, and when FILE.state is missing
  // beside a result, names another model or other options, or does not fit the result's bytes; InvalidData when a file cannot be written.
  ResultWriter(ResultOptions, std::span<const std::string> inputs);
  ~ResultWriter();  // flushes, silently; finish() reports errors
  ResultWriter(const ResultWriter&) = delete;
  ResultWriter& operator=(const ResultWriter&) = delete;

  std::size_t done() const;    // inputs that need not be predicted again: go on with inputs[done()]
  std::size_t failed() const;  // failures among all so far
  // `labels` and `values` have top_k entries, most likely first; with top_k 0 no labels and `values` values.
  void row(const std::string& path, std::span<const std::string> labels, std::span<const float> values);
  void failure(const std::string& path, const std::string& error);
  void flush();   // hands the rows so far to the system: a kill no longer loses them (but those of the last second)
  void finish();  // writes HDF5 now, syncs; the object is spent

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A field of CSV as RFC 4180 quotes it; the bytes are kept as they are.
std::string csv_field(const std::string&);
// A JSON string, quotes included. Bytes that are not UTF-8 are written as %XX.
std::string json_text(const std::string&);
// Bytes that are not UTF-8 as %XX.
std::string percent_encoded(const std::string&);

}  // namespace tandem::io
