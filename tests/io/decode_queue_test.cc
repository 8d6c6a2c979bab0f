#include "io/decode_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "runtime/base/error.h"

namespace tandem::io {
namespace {

// Threads that run tasks in order of arrival, once they are let go.
class Threads {
 public:
  explicit Threads(int count, bool held = false) : held_(held) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Threads() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
      held_ = false;
    }
    changed_.notify_all();
    for (auto& t : threads_) t.join();
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  DecodeQueue::Submit submit() {
    return [this](std::function<void()> task) {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      changed_.notify_one();
    };
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !held_ && (done_ || !tasks_.empty()); });
      if (tasks_.empty()) return;
      {
        const auto task = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        task();
      }
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool held_, done_ = false;
  std::vector<std::thread> threads_;
};

void numbered(std::int64_t i, std::span<float> out) {
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = static_cast<float>(i * 10) + static_cast<float>(k);
}

TEST(DecodeQueue, InOrderWhateverTheThreadsDo) {
  for (const int threads : {1, 4}) {
    for (const int ahead : {0, 1, 3, 1000}) {
      Threads pool(threads);
      DecodeQueue queue(5, 205, 3, ahead, pool.submit(), [](std::int64_t i, std::span<float> out) {
        std::this_thread::sleep_for(std::chrono::microseconds((i * 7919) % 200));
        numbered(i, out);
      });
      for (std::int64_t i = 5; i < 205; ++i) {
        const auto item = queue.next();
        ASSERT_TRUE(item);
        const auto v = static_cast<float>(i * 10);
        ASSERT_EQ(item->sample, (std::vector<float>{v, v + 1, v + 2}));
        ASSERT_EQ(item->error, "");
      }
      EXPECT_FALSE(queue.next());
      EXPECT_FALSE(queue.next());
    }
  }
}

TEST(DecodeQueue, LooksAheadAndNoFurther) {
  constexpr int kAhead = 5;
  std::atomic<std::int64_t> started{0};
  Threads pool(3);
  DecodeQueue queue(0, 100, 1, kAhead, pool.submit(), [&](std::int64_t i, std::span<float> out) {
    ++started;
    numbered(i, out);
  });
  for (std::int64_t taken = 1; taken <= 100; ++taken) {
    ASSERT_TRUE(queue.next());
    EXPECT_LE(started.load(), taken - 1 + kAhead);
    if (taken == 50) {  // the items ahead come without being asked for again
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (started.load() < taken - 1 + kAhead && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
      EXPECT_EQ(started.load(), taken - 1 + kAhead);
    }
  }
}

TEST(DecodeQueue, OneFailureIsOneItem) {
  Threads pool(4);
  DecodeQueue queue(0, 6, 2, 4, pool.submit(), [](std::int64_t i, std::span<float> out) {
    if (i == 1) throw InvalidData("damaged.jpg is cut");
    if (i == 2) throw std::runtime_error("");
    if (i == 4) throw std::bad_alloc();
    numbered(i, out);
  });
  for (int i = 0; i < 6; ++i) {
    const auto item = queue.next();
    ASSERT_TRUE(item);
    const bool failed = i == 1 || i == 2 || i == 4;
    EXPECT_EQ(item->sample.size(), failed ? 0u : 2u);
    EXPECT_EQ(item->error.empty(), !failed);
    if (i == 1) {
      EXPECT_EQ(item->error, "damaged.jpg is cut");
    }
  }
}

TEST(DecodeQueue, EmptyRangeAndTasksRunAtOnce) {
  DecodeQueue none(
      3, 3, 1, 4, [](const std::function<void()>&) { FAIL(); }, numbered);
  EXPECT_FALSE(none.next());
  DecodeQueue here(
      0, 3, 1, 2, [](const std::function<void()>& task) { task(); }, numbered);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(here.next()->sample, std::vector<float>{static_cast<float>(10 * i)});
  EXPECT_FALSE(here.next());
}

TEST(DecodeQueue, DestructorLeavesTheRestUnloaded) {
  std::atomic<int> loaded{0};
  Threads pool(2);
  {
    DecodeQueue queue(0, 1000, 1, 500, pool.submit(), [&](std::int64_t i, std::span<float> out) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++loaded;
      numbered(i, out);
    });
    ASSERT_TRUE(queue.next());
  }
  const int at_end = loaded;
  EXPECT_LT(at_end, 400);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(loaded, at_end);  // nothing runs on
}

TEST(DecodeQueue, ASubmitThatThrowsDoesNotHang) {
  int calls = 0;
  DecodeQueue queue(
      0, 3, 1, 2,
      [&](const std::function<void()>& task) {
        if (++calls == 2) throw std::runtime_error("no thread");
        task();
      },
      numbered);
  EXPECT_THROW(queue.next(), std::runtime_error);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(queue.next()->sample, std::vector<float>{static_cast<float>(10 * i)});
  DecodeQueue dead(
      0, 3, 1, 2, [](const std::function<void()>&) { throw std::runtime_error("no thread"); }, numbered);
  EXPECT_THROW(dead.next(), std::runtime_error);
}

}  // namespace
}  // namespace tandem::io
