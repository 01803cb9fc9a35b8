// A queue of batches and the thread that fills it.
#include "data/loader.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "device/device.h"

namespace shardmark {

int prefetch_depth(int num_cores, int local_ranks, int threads_per_rank) {
  return num_cores > local_ranks * threads_per_rank ? 2 : 0;
}

struct Loader::State {
  State(const DataSource& from, const DistributedSampler& by, at::Device to, int ahead, int64_t first_step)
      : source(from),
        sampler(by),
        device(to),
        depth(static_cast<size_t>(ahead)),
        position(first_step * by.accumulation()) {
    if (depth > 0) worker = std::jthread([this](const std::stop_token& stop) { fill(stop); });
  }

  // Prepares the next batch in order, on the host. It is called by one thread only: the worker, or the caller
  // of next() if there is no worker.
  Batch prepare() {
    const auto draws = sampler.draw(position / sampler.accumulation(), position % sampler.accumulation());
    ++position;
    return source.fetch(draws, device.is_cuda());
  }

  // The worker. It prepares a batch without the lock, so that next() can take others meanwhile. An
  // exception ends the worker, and take() throws it after the batches that were finished before.
  void fill(const std::stop_token& stop) {
    try {
      use_device(device);  // page-locked memory belongs to a device's context
      std::unique_lock lock(mutex);
      while (changed.wait(lock, stop, [this] { return queue.size() < depth; })) {
        lock.unlock();
        Batch batch = prepare();
        lock.lock();
        queue.push_back(std::move(batch));
        changed.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
      changed.notify_all();
    }
  }

  Batch take() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return !queue.empty() || error; });
    if (queue.empty()) std::rethrow_exception(error);
    Batch batch = std::move(queue.front());
    queue.pop_front();
    changed.notify_all();
    return batch;
  }

  const DataSource& source;
  const DistributedSampler sampler;
  const at::Device device;
  const size_t depth;
  int64_t position;  // micro-batches prepared since step 0

  std::mutex mutex;  // guards queue and error
  std::condition_variable_any changed;
  std::deque<Batch> queue;
  std::exception_ptr error;
  std::jthread worker;  // last: stops and joins before the rest is destroyed
};

Loader::Loader(const DataSource& source, DistributedSampler sampler, at::Device device, int depth,
               int64_t first_step)
    : state_(std::make_unique<State>(source, sampler, device, depth, first_step)) {}

Loader::~Loader() = default;

Batch Loader::next() { return (state_->depth > 0 ? state_->take() : state_->prepare()).on(state_->device); }

}  // namespace shardmark
