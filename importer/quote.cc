#include "importer/quote.h"

namespace tandem {

std::string quote(std::string_view name) {
  constexpr std::size_t kShown = 200;
  std::string out = "\"";
  for (const char c : name.substr(0, kShown)) out.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c);
  out += name.size() > kShown ? "...\"" : "\"";
  return out;
}

}  // namespace tandem
