#include "runtime/base/error.h"

namespace tandem {

Error::Error(std::string message) : message_(std::move(message)), text_(message_) {}

void Error::add_context(std::string where) {
  text_ += "\n  in " + where;
  contexts_.push_back(std::move(where));
}

}  // namespace tandem
