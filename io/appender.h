// A file that grows at its end, with the digest of what stands in it. Internal to io; results.h uses it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/file_handle.h"
#include "runtime/base/sha256.h"

namespace tandem::io {

class Appender {
 public:
  // Opens the file and cuts it to `kept`, which must be its beginning. The file is locked: throws InvalidData when another Appender holds it, of
  // this process or another one, and when it cannot be opened or written.
  Appender(std::string path, std::string_view kept);

  void add(std::string_view text);  // reaches the system at the latest after 64 KiB
  void flush();
  void sync();
  std::uint64_t bytes() const { return bytes_; }             // of all that was added, `kept` included
  std::string digest() const { return Sha256(sha_).hex(); }  // SHA-256 of it, in hex

 private:
  [[noreturn]] void fail() const;

  std::string path_, buffer_;
  tandem::FileHandle file_;
  std::uint64_t bytes_ = 0;
  Sha256 sha_;
};

}  // namespace tandem::io
