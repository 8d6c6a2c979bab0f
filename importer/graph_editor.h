// A graph under construction: values with what the file says of them, unique names, nodes in order.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "runtime/graph/graph.h"

namespace tandem {

// What is known of a value without shapes; rules need it where a form of an old opset depends on the rank.
struct Fact {
  DType type = DType::kNone;  // as in the file: half precision stays visible here though the value is widened
  std::int64_t rank = -1;     // -1: not known
  bool fixed = false;         // follows from constants alone
};

class GraphEditor {
 public:
  Graph graph;

  // A computed value or graph input; its name is made unique.
  ValueId add_value(std::string_view name, Fact fact = {});
  // A constant; half precision is widened. `type`: the file's type where the tensor is not the file's own (kNone: fits any float).
  ValueId add_constant(std::string_view name, const Tensor& tensor);
  ValueId add_constant(std::string_view name, const Tensor& tensor, DType type);
  // Makes a value that was added before, and that no node makes, constant.
  void define(ValueId id, const Tensor& tensor);
  // Appends a node; types and ranks of its outputs follow from its operands. Throws InvalidModel where operand types contradict.
  void push(Node node);

  const Fact& fact(ValueId id) const { return facts_[static_cast<std::size_t>(id)]; }
  void set_fact(ValueId id, Fact fact) { facts_[static_cast<std::size_t>(id)] = fact; }
  // Names that the file uses and that invented values must not take.
  void reserve_name(std::string_view name) { reserved_.emplace(name); }

 private:
  std::string unique(std::string_view name);
  std::vector<Fact> facts_;
  std::unordered_set<std::string> used_, reserved_;
};

}  // namespace tandem
