#include "runtime/cpu/task_pool.h"

#include <xmmintrin.h>

#include <algorithm>

namespace tandem {
namespace {

// Which pool and worker this thread is, so that nested calls run inline. Set once by the worker itself.
struct Identity {
  const TaskPool* pool = nullptr;
  int worker = -1;
};
Identity& identity() {
  thread_local Identity me;
  return me;
}

}  // namespace

TaskPool::TaskPool(int threads) {
  for (int i = 0; i < std::max(1, threads); ++i) workers_.emplace_back([this, i] { work(i); });
}

TaskPool::~TaskPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& t : workers_) t.join();
}

void TaskPool::parallel_for(int count, const std::function<void(int, int)>& body) {
  if (count <= 0) return;
  if (identity().pool == this) {
    for (int i = 0; i < count; ++i) body(identity().worker, i);
    return;
  }
  const auto job = std::make_shared<Job>();
  job->body = body;
  job->count = count;
  run_job(job);
}

void TaskPool::gang(const std::function<void(int)>& body) {
  if (identity().pool == this) return body(identity().worker);
  const auto job = std::make_shared<Job>();
  job->body = [&body](int worker, int) { body(worker); };
  job->count = threads();
  job->closes = true;
  run_job(job);
}

void TaskPool::submit(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    queued_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void TaskPool::run_job(const std::shared_ptr<Job>& job) {
  std::unique_lock lock(mutex_);
  jobs_.push_back(job);
  if (job->count == 1)
    wake_.notify_one();
  else
    wake_.notify_all();
  done_.wait(lock, [&] { return job->running == 0 && job->next.load() >= job->count; });
  if (job->error) std::rethrow_exception(job->error);
}

void TaskPool::work(int worker) {
  identity() = {this, worker};
  _mm_setcsr(0x1f80);  // round to nearest, denormals kept, exceptions masked
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || !jobs_.empty() || !queued_.empty(); });
    if (!jobs_.empty()) {
      const auto job = jobs_.front();
      ++job->running;
      lock.unlock();
      std::exception_ptr error;
      try {
        for (int i; (i = job->next.fetch_add(1)) < job->count;) {
          job->body(worker, i);
          if (job->closes) job->next.store(job->count);
        }
      } catch (...) {
        error = std::current_exception();
        job->next.store(job->count);
      }
      lock.lock();
      if (error && !job->error) job->error = error;
      const auto at = std::find(jobs_.begin(), jobs_.end(), job);
      if (at != jobs_.end()) jobs_.erase(at);
      if (--job->running == 0) done_.notify_all();
    } else if (!queued_.empty()) {
      const auto task = std::move(queued_.front());
      queued_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    } else if (stopping_) {
      return;
    }
  }
}

}  // namespace tandem
