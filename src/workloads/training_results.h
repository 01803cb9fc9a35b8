// What a training record holds beyond its samples: arithmetic on rank 0.
#pragma once

#include "laws/model_table.h"
#include "workloads/workload.h"

namespace shardmark {

// Fills throughput, phases, FLOPs, MFU and the laws' numbers of a record whose samples and step statistics
// are there.
void derive_training(Record& record, const laws::ModelTable& table, const Placement& placement);

}  // namespace shardmark
