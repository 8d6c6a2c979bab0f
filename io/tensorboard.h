// TensorBoard's event files: scalars by step. TFRecord framing (length, masked CRC32C of it, data, masked CRC32C of the data) around Event messages
// (tensorflow/core/util/event.proto), written by hand: no protobuf is needed for five fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::io {

// CRC-32C (Castagnoli), as in RFC 3720.
std::uint32_t crc32c(std::string_view bytes);

class EventFile {
 public:
  // Makes folder/events.out.tfevents.SECONDS.tandem, a new one for each process that goes on. Throws InvalidData.
  explicit EventFile(const std::string& folder);
  // One event with all scalars; on disk when it returns.
  void add(std::int64_t step, const std::vector<std::pair<std::string, double>>& scalars);
  const std::string& path() const { return path_; }

 private:
  void append(const std::string& event);
  std::string path_;
};

}  // namespace tandem::io
