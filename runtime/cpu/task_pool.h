// The threads of a CPU run: one pool, everything is a task of it (operators, decoding, saving). The caller of a blocking call only waits,
// so that a program with a pool of T threads has T + 1.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem {

class TaskPool {
 public:
  // Starts `threads` workers (at least 1) numbered from 0. Each has its floating-point state set to the default (no flush to zero).
  explicit TaskPool(int threads);
  ~TaskPool();  // finishes what was submitted
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()); }

  // Runs body(worker, index) for every index in [0, count), in any order, on the workers; returns when all are done. The first exception
  // is thrown here, the remaining indices are then skipped. Any number of threads may call it at once; called from a worker of this pool
  // it runs everything inline as that worker.
  void parallel_for(int count, const std::function<void(int worker, int index)>& body);

  // Runs body(worker) on as many workers as are free, until one call returns; waits for those that entered. For work that a team divides
  // by itself: later calls find it finished. Inline, once, when called from a worker.
  void gang(const std::function<void(int worker)>& body);

  // Queues a task that runs after blocking work has been taken up; nobody waits for it. An exception that leaves it is a programming error.
  void submit(std::function<void()> task);

 private:
  struct Job {
    std::function<void(int, int)> body;
    std::atomic<int> next{0};
    int count = 0;
    bool closes = false;  // gang: the first finished call stops further entries
    int running = 0;      // guarded by mutex_
    std::exception_ptr error;
  };
  void work(int worker);
  void run_job(const std::shared_ptr<Job>& job);

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::deque<std::shared_ptr<Job>> jobs_;  // with indices left
  std::deque<std::function<void()>> queued_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace tandem
