// The table of operators.
#pragma once

#include <span>
#include <string_view>

#include "runtime/ops/op.h"

namespace tandem {

// Null when there is no such operator.
const OpDef* find_op(std::string_view name);
// Throws Unsupported naming it.
const OpDef& need_op(std::string_view name);
// Every operator, in the order of families.
std::span<const OpDef* const> all_ops();

}  // namespace tandem
