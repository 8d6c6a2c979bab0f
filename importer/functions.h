// Model-local functions: what may be inlined.
#pragma once

#include "importer/model_file.h"

namespace tandem {

// Refuses functions that call themselves, directly or around a ring (through subgraphs too), calls nested deeper than limits::kFunctionDepth, and
// models that would have more than limits::kNodes nodes after inlining. Iterative; time grows with the file, not with the expansion.
void check_functions(const ModelFile&);

}  // namespace tandem
