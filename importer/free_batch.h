// Batches that an exporter baked into a file: a fixed first dimension of the inputs, or constants in Reshapes that hold the batch at the time of
// export.
#pragma once

#include "importer/notes.h"
#include "runtime/graph/graph.h"

namespace tandem {

// Where every dimension but the batch is fixed: writes constant shapes of Reshapes so that their first dimension follows the data (the result at
// the file's own batch is the same), and declares a fixed batch dynamic. Both only when the proof of runtime/plan/rows.h then holds, that every
// output carries the batch and each of its rows depends on one row of the inputs; otherwise the graph stays as it is.
void free_batch(Graph& graph, Notes& notes);

}  // namespace tandem
