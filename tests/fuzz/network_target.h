// A network's bytes: imported, planned and run on small inputs, within a memory limit.
#pragma once

#include "tests/fuzz/mutator.h"

namespace tandem::fuzz {

bool accepts_network(const Bytes& bytes);

}  // namespace tandem::fuzz
