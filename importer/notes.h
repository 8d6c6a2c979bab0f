// What the importer changed, gathered for Origin::notes: one line for each kind of change.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace tandem {

class Notes {
 public:
  void add(const std::string& what, const std::string& where = {}) {
    for (Entry& e : entries_) {
      if (e.what == what) {
        ++e.count;
        return;
      }
    }
    entries_.push_back({what, where, 1});
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    for (const Entry& e : entries_)
      out.push_back(e.where.empty() ? e.what
                    : e.count == 1  ? fmt::format("{} ({})", e.what, e.where)
                                    : fmt::format("{} ({} nodes, first {})", e.what, e.count, e.where));
    return out;
  }

 private:
  struct Entry {
    std::string what, where;
    std::size_t count;
  };
  std::vector<Entry> entries_;
};

}  // namespace tandem
