// The reference of verification: one device trains the same blocks on the same global batches. What is proven
// is that the strategy changes nothing: the reference has no program, no flat memory and no communication,
// but the blocks' own forward and backward. Whether the blocks compute the right model is another question;
// the comparison with Hugging Face's models answers it (tests/mpi/peer_huggingface_test.cpp).
#pragma once

#include <optional>

#include "data/source.h"
#include "sweep/workloads/workload.h"

namespace shardmark {

inline constexpr int64_t kReferenceSteps = 2;
inline constexpr const char* kReferenceStage = "training on one device, to compare";

// Losses and gradient norms of the first steps of a point, on one device. `replica`: the rank whose data
// alone counts (for strategy single), or -1 for the whole global batch. OutOfMemory is a result
// (ReferenceRun::impossible). Every block is noted on the heartbeat: this may take long.
ReferenceRun run_reference(const Point& point, const DataSource& source, at::Device device, int64_t replica,
                           Heartbeat& heartbeat);

// The same layout of the same model with as few layers as it can have; nothing where the model has no such
// option, or the point has no more already. What one device cannot hold is verified like this.
std::optional<Point> with_fewest_layers(Point point);

// What a reference depends on, as text: the key of the cache.
std::string reference_key(const Point& point, int64_t replica);

}  // namespace shardmark
