// Loss and accuracy on the samples that a data source holds out, under any strategy.
#pragma once

#include "data/source.h"
#include "strategies/strategy.h"

namespace shardmark {

struct Evaluation {
  double loss = 0;      // mean over targets
  double accuracy = 0;  // share of targets with the largest logit
};

// The held-out samples are dealt to the ranks; the result is that of one rank. Collective; between steps.
// Buffers become rank 0's.
Evaluation evaluate(Model& model, Strategy& strategy, Communicator& comm, const HostGroup& group,
                    const DataSource& source, int64_t batch_size);

}  // namespace shardmark
