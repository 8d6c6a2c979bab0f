#include "io/decode_queue.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>

namespace tandem::io {

struct DecodeQueue::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::int64_t, Item> ready;  // done, not yet taken
  std::int64_t next_start = 0, next_out = 0, last = 0, sample_size = 0;
  int ahead = 1, running = 0;
  bool stopped = false;  // nobody wants the rest
  double load_seconds = 0;
  Submit submit;
  Load load;

  // One item, on somebody's thread. The lock is not held while it decodes.
  void produce(std::int64_t i) {
    const auto started = std::chrono::steady_clock::now();
    Item item = is_stopped() ? Item() : loaded(i);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    const std::lock_guard lock(mutex);
    load_seconds += took;
    ready.emplace(i, std::move(item));
    --running;
    changed.notify_all();
  }

 private:
  bool is_stopped() {
    const std::lock_guard lock(mutex);
    return stopped;
  }
  Item loaded(std::int64_t i) const {
    try {
      Item item{std::vector<float>(static_cast<std::size_t>(sample_size)), {}};
      load(i, item.sample);
      return item;
    } catch (const std::exception& e) {
      const std::string text = e.what();
      return {{}, text.empty() ? "unknown error" : text};
    }
  }
};

DecodeQueue::DecodeQueue(std::int64_t first, std::int64_t last, std::int64_t sample_size, int ahead, Submit submit, Load load)
    : state_(std::make_shared<State>()) {
  state_->next_start = state_->next_out = first;
  state_->last = last;
  state_->sample_size = sample_size;
  state_->ahead = ahead < 1 ? 1 : ahead;
  state_->submit = std::move(submit);
  state_->load = std::move(load);
}

DecodeQueue::~DecodeQueue() {
  std::unique_lock lock(state_->mutex);
  state_->stopped = true;
  state_->changed.wait(lock, [&] { return state_->running == 0; });
}

std::optional<DecodeQueue::Item> DecodeQueue::next() {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  if (s.next_out >= s.last) return std::nullopt;
  while (s.next_start < s.last && s.next_start - s.next_out < s.ahead) {
    const std::int64_t i = s.next_start++;
    ++s.running;
    lock.unlock();
    try {
      s.submit([state = state_, i] { state->produce(i); });
    } catch (...) {  // the task will never run: the destructor must not wait for it
      lock.lock();
      --s.running;
      --s.next_start;
      throw;
    }
    lock.lock();
  }
  s.changed.wait(lock, [&] { return s.ready.count(s.next_out) > 0; });
  auto node = s.ready.extract(s.next_out++);
  return std::move(node.mapped());
}

double DecodeQueue::load_seconds() const {
  const std::lock_guard lock(state_->mutex);
  return state_->load_seconds;
}

}  // namespace tandem::io
