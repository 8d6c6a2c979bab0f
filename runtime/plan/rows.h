// The proof that a graph may be cut along axis 0: every output carries the batch on axis 0 and each of its rows depends on one row of the
// batched inputs. Found by running the shape pass for several batch sizes and following the operators' row rules.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/infer.h"

namespace tandem {

struct CutProof {
  bool possible = false;
  std::string reason;                         // why not, for --log-placement
  std::int64_t batch = 0;                     // N of the binding that was asked about
  std::vector<bool> input_batched;            // for each graph input; the others go whole to every device
  std::vector<std::int64_t> rows_per_sample;  // for each graph output: rows that one sample makes
};

// `binding`: the shapes of the run. An input carries the batch when its first dimension is dynamic in the file (or, in files with a fixed
// batch, equals that of the first input) and equals N here.
CutProof prove_cut(const Graph& graph, const InputBinding& binding);

// The binding with N samples in every batched input.
InputBinding with_batch(const InputBinding& binding, const CutProof& proof, std::int64_t batch);

}  // namespace tandem
