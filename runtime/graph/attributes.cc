#include "runtime/graph/attributes.h"

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace tandem {
namespace {

template <class T>
const char* kind_name() {
  if constexpr (std::is_same_v<T, std::int64_t>)
    return "an integer";
  else if constexpr (std::is_same_v<T, float>)
    return "a float";
  else if constexpr (std::is_same_v<T, std::string>)
    return "a string";
  else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
    return "a list of integers";
  else if constexpr (std::is_same_v<T, std::vector<float>>)
    return "a list of floats";
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    return "a list of strings";
  else if constexpr (std::is_same_v<T, Tensor>)
    return "a tensor";
  else
    return "a graph";
}

}  // namespace

template <class T>
const T* Attributes::find(std::string_view name) const {
  const auto it = values_.find(name);
  if (it == values_.end()) return nullptr;
  const T* value = std::get_if<T>(&it->second);
  if (!value) throw InvalidModel(fmt::format("attribute '{}' must be {}", name, kind_name<T>()));
  return value;
}

template <class T>
const T& Attributes::need(std::string_view name) const {
  const T* value = find<T>(name);
  if (!value) throw InvalidModel(fmt::format("attribute '{}' ({}) is required and missing", name, kind_name<T>()));
  return *value;
}

void Attributes::erase(std::string_view name) {
  const auto it = values_.find(name);
  if (it != values_.end()) values_.erase(it);
}

std::int64_t Attributes::integer(std::string_view name) const { return need<std::int64_t>(name); }
std::int64_t Attributes::integer(std::string_view name, std::int64_t otherwise) const {
  const auto* v = find<std::int64_t>(name);
  return v ? *v : otherwise;
}
float Attributes::real(std::string_view name) const { return need<float>(name); }
float Attributes::real(std::string_view name, float otherwise) const {
  const auto* v = find<float>(name);
  return v ? *v : otherwise;
}
std::string Attributes::text(std::string_view name) const { return need<std::string>(name); }
std::string Attributes::text(std::string_view name, std::string otherwise) const {
  const auto* v = find<std::string>(name);
  return v ? *v : otherwise;
}
std::vector<std::int64_t> Attributes::integers(std::string_view name) const { return need<std::vector<std::int64_t>>(name); }
std::vector<std::int64_t> Attributes::integers(std::string_view name, std::vector<std::int64_t> otherwise) const {
  const auto* v = find<std::vector<std::int64_t>>(name);
  return v ? *v : otherwise;
}
std::vector<float> Attributes::reals(std::string_view name) const { return need<std::vector<float>>(name); }
const Tensor& Attributes::tensor(std::string_view name) const { return need<Tensor>(name); }
std::shared_ptr<const Graph> Attributes::graph(std::string_view name) const { return need<std::shared_ptr<const Graph>>(name); }

}  // namespace tandem
