// Names from files in messages: quoted, shortened, control characters as \x0a.
#pragma once

#include <string>
#include <string_view>

namespace tandem {

// "name" with the quotes; at most about 200 characters.
std::string quote(std::string_view name);

}  // namespace tandem
