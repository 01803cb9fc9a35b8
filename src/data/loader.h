// Provides batches in order. A background thread prepares them ahead if a core is free for it; otherwise they
// are prepared when asked for.
#pragma once

#include <memory>

#include "data/order/sampler.h"
#include "data/source.h"

namespace shardmark {

// The number of batches to prepare ahead: 2 if the node has a core to spare, and 0 if every core computes,
// because a thread would then take time from the model. num_cores is the node's.
int prefetch_depth(int num_cores, int local_ranks, int threads_per_rank);

class Loader {
 public:
  // `depth` is the number of batches prepared ahead; 0 means no thread. first_step is a step of the sampler.
  // The source must outlive the loader.
  Loader(const DataSource& source, DistributedSampler sampler, at::Device device, int depth,
         int64_t first_step = 0);
  // May be called at any time; waits at most for the batch that is being prepared.
  ~Loader();
  // Returns the next micro-batch on the device: the micro-batches of the first step, then those of the next
  // one, and so on. On a GPU the copy is enqueued on the current stream, and the host does not wait for it.
  // An exception of the background thread is thrown here, after the batches before it.
  Batch next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardmark
