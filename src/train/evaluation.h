// Loss and accuracy on the samples that a data source holds out, with any strategy.
#pragma once

#include "data/source.h"
#include "executor/executor.h"

namespace shardmark {

struct Evaluation {
  double loss = 0;      // mean over targets
  double accuracy = 0;  // share of targets that have the largest logit
};

// Evaluates the held-out samples, divided among the ranks, with at most `most_batches` batches per rank. The
// result is the same for any number of ranks, as long as all samples are evaluated. It is collective and must
// be called between steps. If a rank has failed (Executor::failure), the result is meaningless. All ranks get
// rank 0's buffers.
Evaluation evaluate(Model& model, Executor& executor, Communicator& comm, const HostGroup& group,
                    const DataSource& source, int64_t batch_size, int64_t most_batches);

}  // namespace shardmark
