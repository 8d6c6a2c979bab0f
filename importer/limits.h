// Hard limits of the importer, each checked before the memory that it bounds is taken. Real models stay far below.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem::limits {

inline constexpr std::int64_t kMinIr = 3, kMaxIr = 13;
inline constexpr std::int64_t kMinOpset = 1, kMaxOpset = 25;
inline constexpr std::size_t kNodes = 200'000;                 // of a file, subgraphs and functions counted; again after inlining
inline constexpr std::size_t kTensors = 200'000;               // initialisers and tensor attributes of a file
inline constexpr std::size_t kFields = 2'000'000;              // strings and messages of a file without its tensors
inline constexpr std::size_t kBytesBesideTensors = 32u << 20;  // of the message that protobuf parses
inline constexpr std::size_t kMetadataBytes = 4u << 20;        // of it, metadata of graphs and nodes; more is left out
inline constexpr std::size_t kNameBytes = 4096;                // a name of a node, value, operator, attribute or domain
inline constexpr int kSubgraphDepth = 16;                      // If in If
inline constexpr int kFunctionDepth = 64;                      // function calling function
inline constexpr std::size_t kRank = 32;
inline constexpr std::size_t kGraphInputs = 4096;             // graph inputs and outputs, each
inline constexpr std::size_t kSparseDenseBytes = 128u << 20;  // a sparse tensor, made dense

}  // namespace tandem::limits
