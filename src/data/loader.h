// Batches in order, prepared ahead by a background thread where a core is free, else when asked for.
#pragma once

#include <memory>

#include "data/sampler.h"
#include "data/source.h"

namespace shardmark {

class Loader {
 public:
  // depth: batches prepared ahead; 0: no thread. The source must outlive the loader.
  Loader(const DataSource& source, DistributedSampler sampler, int64_t accumulation, at::Device device, int depth);
  ~Loader();
  // The next micro-batch, on the device: step 0's micro-batches, then step 1's ... An error of the background thread is
  // thrown here.
  Batch next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardmark
