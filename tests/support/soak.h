// TANDEM_SOAK=1 in the environment makes the tests that stop or kill the program do it as often as a release deserves, not as CI's time allows.
#pragma once

#include <cstdlib>

namespace tandem::test {

inline bool soak() { return std::getenv("TANDEM_SOAK") != nullptr; }

}  // namespace tandem::test
