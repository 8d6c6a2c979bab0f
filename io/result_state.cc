#include "io/result_state.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "io/read_file.h"
#include "io/results.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "runtime/base/safe_file.h"

namespace tandem::io {
namespace {

constexpr std::string_view kFirst = "tandem results 2";
constexpr std::int64_t kMostBytes = std::int64_t{1} << 26;
constexpr std::uint64_t kMostLines = std::uint64_t{1} << 20;  // bytes, then only the last line stays

std::string digest_of(std::string_view text) {
  Sha256 sha;
  sha.update(text);
  return sha.hex();
}

std::string line_of(std::uint64_t row_bytes, const std::string& row_digest, std::uint64_t error_bytes, const std::string& error_digest) {
  return fmt::format("{} {} {} {}\n", row_bytes, row_digest, error_bytes, error_digest);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// What the first line that differs is about, and what it says: `"topk" "3"`.
std::string shown(const std::string& line) {
  const std::string printable = quote_whole(line.substr(0, 80));
  return printable.substr(1, printable.size() - 2) + (line.size() > 80 ? "..." : "");
}

}  // namespace

ResultState::ResultState(std::string file, std::string result, const Settings& settings, double seconds)
    : file_(std::move(file)), result_(std::move(result)), head_(fmt::format("{}\n", kFirst)), between_(seconds) {
  for (const auto& [name, value] : settings) head_ += json_text(name) + " " + json_text(value) + "\n";
  head_ += "\n";
}

std::string ResultState::text() const {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file_, error))) {
    throw UsageError(fmt::format("cannot continue {}: {} is missing; without it, it cannot be known that model and options are the same",
                                 quote_whole(result_), quote_whole(file_)));
  }
  const auto bytes = read_file(file_, kMostBytes);
  return {bytes.begin(), bytes.end()};
}

void ResultState::check_settings() const {
  const std::string old = text();
  if (old.starts_with(head_)) return;
  const auto was = lines_of(old), now = lines_of(head_);
  if (was.empty() || was[0] != kFirst)
    throw UsageError(fmt::format("cannot continue {}: {} is not a state of this version of tandem", quote_whole(result_), quote_whole(file_)));
  std::size_t i = 0;
  while (i < was.size() && i < now.size() && was[i] == now[i]) ++i;
  throw UsageError(fmt::format("cannot continue {}: it was begun with another model or other options: then {}, now {}", quote_whole(result_),
                               i < was.size() ? shown(was[i]) : "nothing", i < now.size() ? shown(now[i]) : "nothing"));
}

std::optional<KeptBytes> ResultState::check(std::string_view rows, std::string_view errors) const {
  check_settings();
  const auto lines = lines_of(text().substr(head_.size()));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    KeptBytes kept;
    std::string row_digest, error_digest;
    std::istringstream in(*line);
    if (!(in >> kept.rows >> row_digest >> kept.errors >> error_digest)) continue;  // torn
    if (kept.rows > rows.size() || kept.errors > errors.size()) continue;           // the machine went down before the files were on the disk
    for (const auto& [name, part, digest] : {std::tuple{result_, rows.substr(0, kept.rows), row_digest},
                                             std::tuple{result_ + ".errors.csv", errors.substr(0, kept.errors), error_digest}}) {
      if (digest_of(part) != digest) {
        throw UsageError(
            fmt::format("cannot continue {}: its first {} bytes are not those that were written (changed since?); start anew without "
                        "--continue, or put the file back",
                        quote_whole(name), part.size()));
      }
    }
    return kept;
  }
  return std::nullopt;
}

void ResultState::replace(const std::string& line) {
  lines_.reset();
  save_file(file_, head_ + line);
  lines_ = std::make_unique<Appender>(file_, head_ + line);
  last_ = std::chrono::steady_clock::now();
}

void ResultState::start() { replace(""); }

void ResultState::go_on(const KeptBytes& kept, std::string_view rows, std::string_view errors) {
  replace(line_of(kept.rows, digest_of(rows.substr(0, kept.rows)), kept.errors, digest_of(errors.substr(0, kept.errors))));
}

void ResultState::record(Appender& rows, Appender* errors, bool now) {
  if (!now && std::chrono::steady_clock::now() - last_ < between_) return;
  const std::string line = line_of(rows.bytes(), rows.digest(), errors ? errors->bytes() : 0, errors ? errors->digest() : digest_of(""));
  if (lines_->bytes() > head_.size() + kMostLines) return replace(line);
  lines_->add(line);
  lines_->flush();
  last_ = std::chrono::steady_clock::now();
}

}  // namespace tandem::io
