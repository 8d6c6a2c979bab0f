// The benchmarks' networks with everything that makes them special, narrow and at few pixels. Random weights, He-scaled, from a fixed seed.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace tandem::test {

struct BenchNetwork {
  const char* name;
  Graph graph;
  Shape image;  // of one sample, without the batch
};

// Input [-1, 3, size, size], output [-1, 10] of a softmax. Xception: stem, pre-activation separable blocks with strided shortcut and max
// pool, an identity block. ResNet: 7x7 stem, bottlenecks with projection, identity and stride. MobileNetV2: inverted residuals with
// clipped activations, strided and with identity.
std::vector<BenchNetwork> bench_networks();

}  // namespace tandem::test
