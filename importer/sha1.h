// SHA-1 (FIPS 180-4), for the checksums of ONNX's external data only: it detects damage, not malice.
#pragma once

#include <string>

#include "importer/wire.h"

namespace tandem {

// 40 lower-case hex digits.
std::string sha1_hex(wire::Bytes data);

}  // namespace tandem
