// Attributes of a node as the file gave them; a family parses them once into its own struct (op.h, InferContext::set_params).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/tensor.h"

namespace tandem {

struct Graph;

using AttributeValue = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>, std::vector<std::string>, Tensor,
                                    std::shared_ptr<const Graph>>;

// Getters throw InvalidModel naming the attribute when it is there with another type, or missing without a default.
class Attributes {
 public:
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  void set(std::string name, AttributeValue value) { values_.insert_or_assign(std::move(name), std::move(value)); }
  void erase(std::string_view name);

  std::int64_t integer(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  float real(std::string_view name) const;
  float real(std::string_view name, float otherwise) const;
  std::string text(std::string_view name) const;
  std::string text(std::string_view name, std::string otherwise) const;
  std::vector<std::int64_t> integers(std::string_view name) const;
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> otherwise) const;
  std::vector<float> reals(std::string_view name) const;
  const Tensor& tensor(std::string_view name) const;
  std::shared_ptr<const Graph> graph(std::string_view name) const;

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  std::size_t size() const { return values_.size(); }

 private:
  template <class T>
  const T* find(std::string_view name) const;
  template <class T>
  const T& need(std::string_view name) const;

  std::map<std::string, AttributeValue, std::less<>> values_;
};

}  // namespace tandem
