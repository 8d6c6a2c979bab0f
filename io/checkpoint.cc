#include "io/checkpoint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "io/keras_h5.h"
#include "runtime/base/error.h"
#include "runtime/base/quote.h"
#include "runtime/base/safe_file.h"

namespace tandem::io {
namespace {

namespace fs = std::filesystem;
constexpr const char* kState = "state";

std::string last_of(const std::string& folder) { return folder + "/last.h5"; }
std::string previous_of(const std::string& folder) { return folder + "/previous.h5"; }

// A second name for what is last, put in the place of the previous one at once: there is a last one at every moment.
void keep_previous(const std::string& folder) {
  const std::string last = last_of(folder), previous = previous_of(folder), between = previous + ".new";
  if (!fs::exists(last)) return;
  ::unlink(between.c_str());
  if (::link(last.c_str(), between.c_str()) != 0 || ::rename(between.c_str(), previous.c_str()) != 0)
    throw InvalidData(fmt::format("{} cannot be kept as {}: {}", quote_whole(last), quote_whole(previous), std::strerror(errno)));
}

LayerWeight text_array(const std::string& text) {
  Tensor bytes(DType::kU8, {static_cast<std::int64_t>(text.size())});
  std::memcpy(bytes.mutable_data(), text.data(), text.size());
  return {kState, DType::kU8, bytes.shape(), [bytes] { return bytes; }};
}

Checkpoint read_checkpoint(const std::string& path) {
  KerasWeights file = read_keras_h5(path);
  if (!file.sha256) throw InvalidModel(fmt::format("{} has no digest", quote_whole(path)));
  verify_digest(file, path);
  Checkpoint out{std::move(file.layers), {}, {}};
  bool has_state = false;
  for (LayerWeight& w : file.extras) {
    if (w.name != kState) {
      out.arrays.push_back(std::move(w));
      continue;
    }
    const Tensor bytes = w.read();
    out.state.assign(static_cast<const char*>(bytes.data()), bytes.bytes());
    has_state = true;
  }
  if (!has_state) throw InvalidModel(fmt::format("{} is a weights file, no checkpoint", quote_whole(path)));
  return out;
}

}  // namespace

void save_checkpoint(const std::string& folder, const Checkpoint& checkpoint, const std::map<std::string, std::string>& texts) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw InvalidData(fmt::format("folder {} cannot be made: {}", quote_whole(folder), failed.message()));
  std::vector<LayerWeight> extras = checkpoint.arrays;
  extras.push_back(text_array(checkpoint.state));
  const auto bytes = keras_h5_bytes(checkpoint.layers, texts, extras);
  keep_previous(folder);
  save_file(last_of(folder), bytes);
}

Checkpoint load_checkpoint(const std::string& folder, std::string& note) {
  std::string wrong;
  for (const std::string& path : {last_of(folder), previous_of(folder)}) {
    if (!fs::exists(path)) {
      wrong += fmt::format("{}{} is not there", wrong.empty() ? "" : "\n", quote_whole(path));
      continue;
    }
    try {
      Checkpoint found = read_checkpoint(path);
      note.clear();
      if (wrong.empty()) return found;
      // Out of the way of the next save, which would keep it in the place of the good one.
      ::rename(last_of(folder).c_str(), (folder + "/damaged.h5").c_str());
      note = fmt::format("{}: {} is taken", wrong, quote_whole(path));
      return found;
    } catch (const Error& e) {
      wrong += fmt::format("{}{}", wrong.empty() ? "" : "\n", e.message());
    }
  }
  throw InvalidData(fmt::format("folder {} holds no checkpoint:\n{}", quote_whole(folder), wrong));
}

std::map<std::string, std::string> checkpoint_texts(const std::string& folder) {
  for (const std::string& path : {last_of(folder), previous_of(folder)}) {
    try {
      if (fs::exists(path)) return read_keras_h5(path).texts;
    } catch (const Error&) {
      continue;  // load_checkpoint() says what is wrong
    }
  }
  return {};
}

}  // namespace tandem::io
