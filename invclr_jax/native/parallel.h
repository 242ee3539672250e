// Work shared by the threads of a pool: XLA's, or any that has `num_threads()` and `Schedule(f)`.

#ifndef INVCLR_NATIVE_PARALLEL_H_
#define INVCLR_NATIVE_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace invclr {

inline int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t RoundUp(int64_t value, int64_t multiple) {
  return CeilDivide(value, multiple) * multiple;
}

// How many workers `ParallelFor` has at most.
template <class Pool>
int64_t Workers(const Pool& pool) {
  return std::max<int64_t>(pool.num_threads(), 1);
}

// Calls work(i, worker) for all i below `count`, each worker one after the other: this thread, and
// those of the pool that are free. It waits only for calls that have begun, and so ends even where
// no thread is free (each virtual device of a host has one that may be waiting here too).
template <class Pool>
void ParallelFor(Pool& pool, int64_t count, const std::function<void(int64_t, int64_t)>& work) {
  struct Progress {
    std::atomic<int64_t> next{0}, done{0};
    std::mutex mutex;
    std::condition_variable finished;
  };
  auto progress = std::make_shared<Progress>();
  // A worker that comes late finds nothing left and does not touch `work`, which may be gone.
  auto run = [progress, count, &work](int64_t worker) {
    for (int64_t i; (i = progress->next++) < count;) {
      work(i, worker);
      if (++progress->done == count) {
        std::lock_guard<std::mutex> lock(progress->mutex);
        progress->finished.notify_all();
      }
    }
  };
  for (int64_t worker = 1; worker < std::min(Workers(pool), count); ++worker) {
    pool.Schedule([run, worker] { run(worker); });
  }
  run(0);
  std::unique_lock<std::mutex> lock(progress->mutex);
  progress->finished.wait(lock, [&] { return progress->done == count; });
}

}  // namespace invclr

#endif  // INVCLR_NATIVE_PARALLEL_H_
