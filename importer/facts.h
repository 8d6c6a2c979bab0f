// Types and ranks of a node's outputs from its operands alone: what can be said before shapes are known. Works on opset-24 forms.
#pragma once

#include "importer/graph_editor.h"

namespace tandem {

// Sets the facts of the node's outputs (unknown where nothing can be said). Throws InvalidModel where operands must have one type and do not.
void infer_facts(GraphEditor& editor, const Node& node);

}  // namespace tandem
