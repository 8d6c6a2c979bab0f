// Names from files in messages: quoted, shortened, control characters as \x0a.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// "name" with the quotes; what is longer than `shown` bytes is cut.
std::string quote(std::string_view name, std::size_t shown = 200);
// The same, never cut: paths.
std::string quote_whole(std::string_view name);

}  // namespace tandem
