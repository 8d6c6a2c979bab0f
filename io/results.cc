#include "io/results.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "io/hdf5.h"
#include "io/read_file.h"
#include "io/result_text.h"
#include "io/save_file.h"
#include "runtime/base/error.h"

namespace tandem::io {
namespace {

constexpr std::size_t kBuffer = 64 << 10;
constexpr std::int64_t kMostOld = std::int64_t{1} << 36;  // bytes of an old result

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

void remove(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

// A file that grows at its end.
class Appender {
 public:
  // Opens and cuts it to `keep` bytes.
  Appender(std::string path, std::size_t keep) : path_(std::move(path)) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd_ < 0) fail();
    const bool taken = ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;  // not every file system has locks
    if (!taken && ::ftruncate(fd_, static_cast<off_t>(keep)) == 0) return;
    const int error = errno;
    ::close(fd_);
    errno = error;
    if (taken) throw InvalidData(fmt::format("another run is writing {}", io::quoted(path_)));
    fail();
  }
  ~Appender() {
    if (fd_ >= 0) ::close(fd_);
  }
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  void add(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= kBuffer) flush();
  }
  void flush() {
    std::string_view rest = buffer_;
    while (!rest.empty()) {
      const ssize_t n = ::write(fd_, rest.data(), rest.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail();
      rest.remove_prefix(static_cast<std::size_t>(n));
    }
    buffer_.clear();
  }
  void sync() {
    flush();
    if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) fail();  // pipes and the like cannot
  }

 private:
  [[noreturn]] void fail() const { throw InvalidData(fmt::format("cannot write {}: {}", quoted(path_), std::strerror(errno))); }

  std::string path_, buffer_;
  int fd_ = -1;
};

std::string_view text_of(const std::vector<std::uint8_t>& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

bool is_hdf5_name(const std::string& file) { return file.ends_with(".h5") || file.ends_with(".hdf5"); }

}  // namespace

struct ResultWriter::State {
  ResultOptions options;
  std::string rows_file, errors_file, state_file;  // rows_file: FILE itself, or FILE.part for HDF5
  ResultText text;
  std::unique_ptr<Appender> rows, errors;  // errors: from the first failure on
  std::size_t done = 0, failed = 0;

  explicit State(ResultOptions o)
      : options(std::move(o)),
        rows_file(options.file + (is_hdf5_name(options.file) ? ".part" : "")),
        errors_file(options.file + ".errors.csv"),
        state_file(options.file + ".state"),
        text(options.file.ends_with(".jsonl"), options) {}

  std::string record() const { return fmt::format("tandem results 1\n{}\n{}", text.header(), options.signature); }
  void start();
  void resume(std::span<const std::string> inputs);
  void check_record() const;
  void write_hdf5() const;
};

void ResultWriter::State::start() {
  rows = std::make_unique<Appender>(rows_file, 0);  // first: it is refused where another process writes
  remove(errors_file);
  if (is_hdf5_name(options.file)) remove(options.file);
  save_file(state_file, record());
  rows->add(text.header());
}

void ResultWriter::State::check_record() const {
  if (!exists(state_file)) {
    throw UsageError(fmt::format("cannot continue {}: {} is missing; without it, it cannot be known that model and options are the same",
                                 quoted(options.file), quoted(state_file)));
  }
  const auto old = read_file(state_file, 1 << 24);
  if (text_of(old) != record()) {
    throw UsageError(fmt::format("cannot continue {}: it was begun with another model or other options; recorded is\n{}\nand now\n{}",
                                 quoted(options.file), text_of(old), record()));
  }
}

// Rows and failures are taken as long as each belongs to the next input.
void ResultWriter::State::resume(std::span<const std::string> inputs) {
  check_record();
  const auto old_rows = read_file(rows_file, kMostOld);
  const auto old_errors = exists(errors_file) ? read_file(errors_file, kMostOld) : std::vector<std::uint8_t>();
  const std::string_view row_text = text_of(old_rows), error_text = text_of(old_errors);
  if (!row_text.starts_with(text.header())) return start();
  std::size_t row = text.header().size(), error = error_text.starts_with(kErrorHeader) ? kErrorHeader.size() : error_text.size();
  const std::size_t no_errors = error;
  for (const std::string& input : inputs) {
    const std::string_view rest = row_text.substr(row), errors_rest = error_text.substr(error);
    if (const auto n = text.length(rest); n && rest.starts_with(text.beginning(input))) {
      row += *n;
    } else if (const auto m = csv_length(errors_rest); m && errors_rest.starts_with(csv_field(input) + ",")) {
      error += *m;
      ++failed;
    } else {
      break;
    }
    ++done;
  }
  rows = std::make_unique<Appender>(rows_file, row);
  if (error == no_errors)
    remove(errors_file);
  else
    errors = std::make_unique<Appender>(errors_file, error);
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
    throw UsageError(fmt::format("a result file ends in .csv, .jsonl or .h5; {} does not", quoted(file)));
  }
  if (state_->options.go_on && exists(state_->rows_file)) {
    state_->resume(inputs);
  } else {
    if (state_->options.go_on && exists(file)) state_->check_record();
    state_->start();
  }
}

ResultWriter::~ResultWriter() {
  if (!state_ || !state_->rows) return;
  try {
    flush();
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
    state_->errors = std::make_unique<Appender>(state_->errors_file, 0);
    state_->errors->add(kErrorHeader);
  }
  state_->errors->add(error_row(path, error));
  ++state_->failed;
  ++state_->done;
}

void ResultWriter::flush() {
  if (state_->errors) state_->errors->flush();
  state_->rows->flush();
}

void ResultWriter::finish() {
  if (state_->errors) state_->errors->sync();
  state_->rows->sync();
  state_->rows.reset();
  if (is_hdf5_name(state_->options.file)) {
    state_->write_hdf5();
    remove(state_->rows_file);
  }
}

}  // namespace tandem::io
