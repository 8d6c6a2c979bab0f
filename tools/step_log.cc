#include "tools/step_log.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "runtime/base/special_file.h"

namespace tandem::cli {
namespace {

// Bytes of the lines of steps below `next_step`, from the beginning to the first other line. A torn last line is another one.
std::int64_t kept_bytes(const std::string& path, std::int64_t next_step) {
  std::ifstream in(path, std::ios::binary);
  std::int64_t kept = 0;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    const auto j = nlohmann::json::parse(line, nullptr, false);
    if (!j.is_object() || !j.contains("step") || !j["step"].is_number_integer() || j["step"].get<std::int64_t>() >= next_step) break;
    kept += std::ssize(line) + 1;
  }
  return kept;
}

}  // namespace

StepLog::StepLog(std::string path, std::int64_t next_step) : path_(std::move(path)) {
  if (is_special_file(path_)) {
    file_ = FileHandle(open_special_file(path_));
    if (!file_) fail();
    return;
  }
  file_ = FileHandle(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_) fail();
  if (try_lock(file_) == Lock::kTaken) throw InvalidData(fmt::format("another run is writing {}", quote_whole(path_)));
  if (::ftruncate(file_.get(), next_step > 0 ? kept_bytes(path_, next_step) : 0) != 0) fail();
}

void StepLog::add(const std::string& line) {
  if (!write_all(file_, line)) fail();
}

void StepLog::sync() {
  if (!sync_file(file_)) fail();
}

void StepLog::fail() const { throw InvalidData(fmt::format("{} cannot be written: {}", quote_whole(path_), std::strerror(errno))); }

}  // namespace tandem::cli
