#include "io/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/quote.h"

namespace tandem::io {
namespace {

std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

// Keys of protobuf fields: number and wire type.
constexpr std::uint64_t kVarint = 0, kEightBytes = 1, kBytes = 2, kFourBytes = 5;
void put_key(std::string& to, std::uint64_t field, std::uint64_t type) { put_varint(to, field << 3 | type); }
void put_bytes(std::string& to, std::uint64_t field, std::string_view bytes) {
  put_key(to, field, kBytes);
  put_varint(to, bytes.size());
  to += bytes;
}

double seconds() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string event(std::int64_t step) {
  std::string made;
  put_key(made, 1, kEightBytes);
  put(made, seconds());
  put_key(made, 2, kVarint);
  put_varint(made, static_cast<std::uint64_t>(step));
  return made;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      t[i] = i;
      for (int bit = 0; bit < 8; ++bit) t[i] = t[i] >> 1 ^ (t[i] & 1 ? 0x82f63b78u : 0);
    }
    return t;
  }();
  std::uint32_t crc = ~0u;
  for (const char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

EventFile::EventFile(const std::string& folder) {
  for (auto at = static_cast<std::int64_t>(seconds());; ++at) {
    path_ = fmt::format("{}/events.out.tfevents.{}.tandem", folder, at);
    const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0) {
      ::close(file);
      break;
    }
    if (errno != EEXIST) throw InvalidData(fmt::format("{} cannot be written: {}", quote_whole(path_), std::strerror(errno)));
  }
  std::string first = event(0);
  put_bytes(first, 3, "brain.Event:2");
  append(first);
}

void EventFile::add(std::int64_t step, const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [name, value] : scalars) {
    std::string scalar;
    put_bytes(scalar, 1, name);
    put_key(scalar, 2, kFourBytes);
    put(scalar, static_cast<float>(value));
    put_bytes(summary, 1, scalar);
  }
  std::string made = event(step);
  put_bytes(made, 5, summary);
  append(made);
}

void EventFile::append(const std::string& data) {
  std::string record;
  put(record, static_cast<std::uint64_t>(data.size()));
  put(record, masked(crc32c(record)));
  record += data;
  put(record, masked(crc32c(data)));
  const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  const bool whole = file >= 0 && ::write(file, record.data(), record.size()) == static_cast<ssize_t>(record.size());
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!whole) throw InvalidData(fmt::format("{} cannot be written: {}", quote_whole(path_), std::strerror(error)));
}

}  // namespace tandem::io
