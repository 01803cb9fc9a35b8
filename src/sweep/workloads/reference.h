// The reference of verification: one device trains the same blocks on the same global batches. This shows
// that the strategy changes nothing, because the reference uses only the forward and backward of the blocks,
// without a program, flat buffers or communication. Whether the blocks compute the right model is another
// question, which tests/mpi/peer_huggingface_test.cpp answers by comparing them with Hugging Face's models.
#pragma once

#include <optional>

#include "data/source.h"
#include "sweep/workloads/workload.h"

namespace shardmark {

inline constexpr int64_t kReferenceSteps = 2;
inline constexpr const char* kReferenceStage = "training on one device, to compare";

// Returns losses and gradient norms of the first steps of a point on one device. `replica` is -1 for the
// whole global batch, or the rank whose samples alone are used (for strategy single). Running out of memory
// is a result (ReferenceRun::impossible). This may take long, so every block is reported to the heartbeat.
ReferenceRun run_reference(const Point& point, const DataSource& source, at::Device device, int64_t replica,
                           Heartbeat& heartbeat);

// Returns the point with as few layers as its layout and model allow. This verifies points whose full model
// does not fit on one device. Returns nothing if the model has no such option or the point already has the
// fewest.
std::optional<Point> with_fewest_layers(Point point);

// Everything that a reference depends on, as text: the key of the cache.
std::string reference_key(const Point& point, int64_t replica);

}  // namespace shardmark
