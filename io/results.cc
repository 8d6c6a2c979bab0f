#include "io/results.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "io/appender.h"
#include "io/hdf5.h"
#include "io/read_file.h"
#include "io/result_state.h"
#include "io/result_text.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "runtime/base/safe_file.h"

namespace tandem::io {
namespace {

constexpr std::int64_t kMostOld = std::int64_t{1} << 36;  // bytes of an old result

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

void remove(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

std::string_view text_of(const std::vector<std::uint8_t>& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

bool is_hdf5_name(const std::string& file) { return file.ends_with(".h5") || file.ends_with(".hdf5"); }

}  // namespace

struct ResultWriter::State {
  ResultOptions options;
  std::string rows_file, errors_file;  // rows_file: FILE itself, or FILE.part for HDF5
  ResultText text;
  ResultState state;
  std::unique_ptr<Appender> rows, errors;  // errors: from the first failure on
  std::size_t done = 0, failed = 0;

  explicit State(ResultOptions o)
      : options(std::move(o)),
        rows_file(options.file + (is_hdf5_name(options.file) ? ".part" : "")),
        errors_file(options.file + ".errors.csv"),
        text(options.file.ends_with(".jsonl"), options),
        state(options.file + ".state", options.file, settings(), options.record_seconds) {}

  Settings settings() const {
    Settings all = options.settings;
    all.emplace_back("columns", fmt::format("{} {} {}", options.value, options.top_k, options.values));
    return all;
  }
  void start();
  void resume(std::span<const std::string> inputs);
  void flush(bool now);
  void write_hdf5() const;
};

void ResultWriter::State::start() {
  rows = std::make_unique<Appender>(rows_file, "");  // first: it is refused where another process writes
  remove(errors_file);
  if (is_hdf5_name(options.file)) remove(options.file);
  state.start();
  rows->add(text.header());
}

// Rows and failures are taken as long as each belongs to the next input, of the part of the files that the state vouches for.
void ResultWriter::State::resume(std::span<const std::string> inputs) {
  const auto old_rows = read_file(rows_file, kMostOld);
  const auto old_errors = exists(errors_file) ? read_file(errors_file, kMostOld) : std::vector<std::uint8_t>();
  const auto kept = state.check(text_of(old_rows), text_of(old_errors));
  if (!kept) return start();
  const std::string_view row_text = text_of(old_rows).substr(0, kept->rows), error_text = text_of(old_errors).substr(0, kept->errors);
  if (!row_text.starts_with(text.header())) return start();
  std::size_t row = text.header().size(), error = error_text.starts_with(kErrorHeader) ? kErrorHeader.size() : error_text.size();
  const std::size_t no_errors = error;
  for (const std::string& input : inputs) {
    const std::string_view rest = row_text.substr(row), errors_rest = error_text.substr(error);
    if (const auto n = text.length(rest); n && rest.starts_with(text.beginning(input))) {
      if (options.kept_row) text.with_best(rest.substr(0, *n), [&](const std::string& label, float value) { options.kept_row(done, label, value); });
      row += *n;
    } else if (const auto m = csv_length(errors_rest); m && errors_rest.starts_with(csv_field(input) + ",")) {
      if (options.kept_failure) options.kept_failure(done, csv_fields(errors_rest.substr(0, *m)).at(1));
      error += *m;
      ++failed;
    } else {
      break;
    }
    ++done;
  }
  rows = std::make_unique<Appender>(rows_file, row_text.substr(0, row));
  if (error == no_errors)
    remove(errors_file);
  else
    errors = std::make_unique<Appender>(errors_file, error_text.substr(0, error));
  state.go_on({row, errors ? error : 0}, row_text, error_text);
}

void ResultWriter::State::flush(bool now) {
  if (errors) errors->flush();
  rows->flush();
  state.record(*rows, errors.get(), now);
}

// One data set for each column; rows of many values as one matrix.
void ResultWriter::State::write_hdf5() const {
  const auto bytes = read_file(rows_file, kMostOld);
  std::string_view rest = text_of(bytes);
  rest.remove_prefix(text.header().size());
  const auto k = static_cast<std::size_t>(options.top_k), width = k > 0 ? k : static_cast<std::size_t>(options.values);
  std::vector<std::string> paths;
  std::vector<std::vector<std::string>> labels(k);
  std::vector<float> values;
  while (const auto n = csv_length(rest)) {
    const auto fields = csv_fields(rest.substr(0, *n));
    rest.remove_prefix(*n);
    paths.push_back(percent_encoded(fields[0]));
    for (std::size_t i = 0; i < width; ++i) {
      const std::string& number = fields.at(k > 0 ? 2 + 2 * i : 1 + i);
      float v = 0;
      std::from_chars(number.data(), number.data() + number.size(), v);
      values.push_back(v);
      if (k > 0) labels[i].push_back(percent_encoded(fields[1 + 2 * i]));
    }
  }
  const H5Image image;
  const auto rows_count = std::ssize(paths);
  image.root().write_strings("path", paths);
  for (std::size_t i = 0; i < k; ++i) {
    image.root().write_strings(fmt::format("top{}", i + 1), labels[i]);
    std::vector<float> column;
    for (std::size_t r = 0; r < paths.size(); ++r) column.push_back(values[r * width + i]);
    image.root().write(fmt::format("{}{}", options.value, i + 1), Tensor::of<float>({rows_count}, std::span<const float>(column)));
  }
  if (k == 0) image.root().write(options.value, Tensor::of<float>({rows_count, options.values}, std::span<const float>(values)));
  save_file(options.file, image.bytes());
}

ResultWriter::ResultWriter(ResultOptions options, std::span<const std::string> inputs) : state_(std::make_unique<State>(std::move(options))) {
  const std::string& file = state_->options.file;
  if (!file.ends_with(".csv") && !file.ends_with(".jsonl") && !is_hdf5_name(file)) {
    throw UsageError(fmt::format("a result file ends in .csv, .jsonl or .h5; {} does not", quote_whole(file)));
  }
  if (state_->options.go_on && exists(state_->rows_file)) {
    state_->resume(inputs);
  } else {
    if (state_->options.go_on && exists(file)) state_->state.check_settings();
    state_->start();
  }
}

ResultWriter::~ResultWriter() {
  if (!state_ || !state_->rows) return;
  try {
    state_->flush(true);
  } catch (const std::exception&) {  // finish() would have said so
  }
}

std::size_t ResultWriter::done() const { return state_->done; }
std::size_t ResultWriter::failed() const { return state_->failed; }

void ResultWriter::row(const std::string& path, std::span<const std::string> labels, std::span<const float> values) {
  const auto k = static_cast<std::size_t>(state_->options.top_k), width = k > 0 ? k : static_cast<std::size_t>(state_->options.values);
  if (labels.size() != k || values.size() != width) throw std::logic_error("a result row has another width than its file");
  state_->rows->add(state_->text.row(path, labels, values));
  ++state_->done;
}

void ResultWriter::failure(const std::string& path, const std::string& error) {
  if (!state_->errors) {
    state_->errors = std::make_unique<Appender>(state_->errors_file, "");
    state_->errors->add(kErrorHeader);
  }
  state_->errors->add(error_row(path, error));
  ++state_->failed;
  ++state_->done;
}

void ResultWriter::flush() { state_->flush(false); }

void ResultWriter::finish() {
  if (state_->errors) state_->errors->sync();
  state_->rows->sync();
  state_->flush(true);
  if (is_hdf5_name(state_->options.file)) {
    state_->write_hdf5();
    remove(state_->rows_file);
  }
  state_->rows.reset();  // and with it the lock
}

}  // namespace tandem::io
