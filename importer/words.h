// Tables of names as text: words separated by single blanks.
#pragma once

#include <algorithm>
#include <string_view>

namespace tandem {

inline bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (text.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace tandem
