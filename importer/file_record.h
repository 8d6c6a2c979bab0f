// What a model file says beside the graph that it holds: for who writes the network again, compares with it, or asks whether it is still the same.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"

namespace tandem {

struct FileRecord {
  using Metadata = std::map<std::string, std::string>;

  std::vector<std::string> data_files;  // paths of the external data that was read
  DType weights = DType::kNone;         // how most elements of the float weights are stored; kNone: there are none
  Metadata graph;                       // GraphProto.metadata_props

  // NodeProto.metadata_props (IR 10; torch's exporter writes where in the source a node comes from). A node is found again by its name, else by the
  // name of its first output, in the imported graph and in what passes made of it; a name that two nodes have finds none.
  void add_node(const std::string& name, const std::string& output, const Metadata& metadata) {
    const auto kept = std::make_shared<const Metadata>(metadata);
    for (const auto& [nodes, key] : {std::pair{&by_name_, &name}, std::pair{&by_output_, &output}}) {
      if (key->empty()) continue;
      const auto [at, fresh] = nodes->emplace(*key, kept);
      if (!fresh) at->second = nullptr;
    }
  }
  // Null where there is none.
  const Metadata* node(const std::string& name, const std::string& output) const {
    if (const auto at = by_name_.find(name); at != by_name_.end() && at->second) return at->second.get();
    const auto at = by_output_.find(output);
    return at == by_output_.end() ? nullptr : at->second.get();
  }

 private:
  std::map<std::string, std::shared_ptr<const Metadata>> by_name_, by_output_;
};

}  // namespace tandem
