// Loss and accuracy on the samples that a data source holds out, under any strategy.
#pragma once

#include "data/source.h"
#include "executor/executor.h"

namespace shardmark {

struct Evaluation {
  double loss = 0;      // mean over targets
  double accuracy = 0;  // share of targets with the largest logit
};

// The held-out samples are divided among the ranks, at most this many batches each; the result is that of one
// rank, as long as all are seen. Collective, between steps; where a rank has failed
// (Executor::failure) it means nothing. Buffers become rank 0's.
Evaluation evaluate(Model& model, Executor& executor, Communicator& comm, const HostGroup& group,
                    const DataSource& source, int64_t batch_size, int64_t most_batches);

}  // namespace shardmark
