// What a test says of an exception.
#pragma once

#include <string>

namespace tandem::test {

// The message of the E that f throws; "" with a failure when it does not.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "(nothing was thrown)";
}

}  // namespace tandem::test
