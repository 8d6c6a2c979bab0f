// The exceptions of tandem. Few types, each with a documented exit code (tools/exit_codes.h); context is added on the way up,
// innermost first: value -> node "conv1" (Conv) -> replica 1 on cuda:1 -> file.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace tandem {

// Base of all errors. what() is the message, then each context on its own line ("  in node \"conv1\" (Conv)").
class Error : public std::exception {
 public:
  explicit Error(std::string message);
  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& message() const noexcept { return message_; }
  const std::vector<std::string>& contexts() const noexcept { return contexts_; }
  // Adds where it happened; called while the exception travels up.
  void add_context(std::string where);

 private:
  std::string message_, text_;
  std::vector<std::string> contexts_;
};

// The model or weights file is malformed or contradicts itself (exit 3).
struct InvalidModel : Error {
  using Error::Error;
};
// The file is well formed but asks for what tandem does not do; the message says what to do instead (exit 3).
struct Unsupported : Error {
  using Error::Error;
};
// Input data is missing, damaged or of the wrong shape (exit 4).
struct InvalidData : Error {
  using Error::Error;
};
// Does not fit the limit or the device (exit 5). Sizes in bytes.
struct OutOfMemory : Error {
  OutOfMemory(std::string message, std::size_t requested_bytes = 0, std::size_t in_use_bytes = 0, std::size_t limit_bytes = 0)
      : Error(std::move(message)), requested(requested_bytes), in_use(in_use_bytes), limit(limit_bytes) {}
  std::size_t requested, in_use, limit;
};
// A device or the communication between devices failed (exit 6).
struct DeviceError : Error {
  using Error::Error;
};
// An option or argument of the caller is wrong (exit 2).
struct UsageError : Error {
  using Error::Error;
};

// Runs f; an Error that leaves it carries where() as context. `where` is a callable so that nothing is formatted without an error.
template <class Where, class F>
decltype(auto) with_context(Where&& where, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (Error& e) {
    e.add_context(where());
    throw;
  }
}

}  // namespace tandem
