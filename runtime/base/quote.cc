#include "runtime/base/quote.h"

#include <fmt/format.h>

namespace tandem {

std::string quote(std::string_view name, std::size_t shown) {
  std::string out = "\"";
  for (const char c : name.substr(0, shown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  out += name.size() > shown ? "...\"" : "\"";
  return out;
}

std::string quote_whole(std::string_view name) { return quote(name, name.size()); }

}  // namespace tandem
