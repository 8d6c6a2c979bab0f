// Deterministic damage for fuzzing: the same seed bytes and number give the same result on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tandem::fuzz {

using Bytes = std::vector<std::uint8_t>;

// SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(next() % n); }
  bool chance(int percent) { return below(100) < static_cast<std::size_t>(percent); }

 private:
  std::uint64_t state_;
};

// A value that often breaks sizes and counts: 0, 1, -1, powers of two and their neighbours, small numbers.
std::uint64_t awkward_number(Random& r);

// Bytes changed without any idea of the format: bits, bytes, awkward integers, blocks removed, repeated, moved, zeroed or taken from
// `other`, the end cut off. A few of these at once.
void damage_bytes(Bytes& bytes, std::span<const std::uint8_t> other, Random& r);

// Fields of the format changed so that the rest still fits: a reader gets past its first checks. Formats: "onnx" (fields of the protobuf
// tree), "png" (chunks, checksums made right again), "jpeg" (segments), "webp" (RIFF chunks), "npz" (headers of the
// archive), "npy" (numbers of the header's text); others: integers in the first 64 bytes.
void damage_fields(const std::string& format, Bytes& bytes, std::span<const std::uint8_t> other, Random& r);

// Either of them, as the number says.
Bytes mutated(const std::string& format, const std::vector<Bytes>& seeds, std::uint64_t number);

}  // namespace tandem::fuzz
