// Looks ahead: items are produced by somebody else's threads while earlier ones are used, at most `ahead` at a time, and come out in order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tandem::io {

class DecodeQueue {
 public:
  struct Item {
    std::vector<float> sample;  // empty when it failed
    std::string error;          // empty when it did not
  };
  // Runs a task on some thread, at some time (TaskPool::submit).
  using Submit = std::function<void(std::function<void()>)>;
  // Fills `out` for item i; throws an Error when it cannot. Called from several threads at once.
  using Load = std::function<void(std::int64_t i, std::span<float> out)>;

  // Items [first, last), each of `sample_size` floats. Memory: at most `ahead` samples. submit and load must stay usable until the destructor
  // returns.
  DecodeQueue(std::int64_t first, std::int64_t last, std::int64_t sample_size, int ahead, Submit submit, Load load);
  ~DecodeQueue();  // waits for tasks under way; those that have not begun load nothing
  DecodeQueue(const DecodeQueue&) = delete;
  DecodeQueue& operator=(const DecodeQueue&) = delete;

  // The next item in order; nothing after the last. Blocks. One caller. What submit throws comes through and may be tried again.
  std::optional<Item> next();
  // Seconds of all threads that load() took so far.
  double load_seconds() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with tasks
};

}  // namespace tandem::io
