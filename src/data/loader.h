// Batches in order, prepared ahead by a background thread where a core is free, else when asked for.
#pragma once

#include <memory>

#include "data/order/sampler.h"
#include "data/source.h"

namespace shardmark {

// Batches to prepare ahead: 2 where the node has a core to spare, 0 where every core computes (a thread would
// then take its time from the model). num_cores: of the node.
int prefetch_depth(int num_cores, int local_ranks, int threads_per_rank);

class Loader {
 public:
  // depth: batches prepared ahead; 0: no thread. first_step: of the sampler. The source must outlive the
  // loader.
  Loader(const DataSource& source, DistributedSampler sampler, at::Device device, int depth,
         int64_t first_step = 0);
  ~Loader();  // at any time; waits for the batch in the making at most
  // The next micro-batch, on the device: the first step's micro-batches, then the next one's ... On a GPU the
  // copy is ordered before what the current stream does next; the host does not wait for it. An error of the
  // background thread is thrown here, in turn.
  Batch next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardmark
