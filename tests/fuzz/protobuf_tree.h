// Damage to one field of a protobuf message, with every enclosing length made right again.
#pragma once

#include "tests/fuzz/mutator.h"

namespace tandem::fuzz {

// Picks a field anywhere in the message and changes its number or value, removes it, repeats it, moves it, or replaces its content by
// that of another field of this message or of `other`. Bytes that are no message are damaged as bytes.
void damage_protobuf(Bytes& message, std::span<const std::uint8_t> other, Random& r);

}  // namespace tandem::fuzz
