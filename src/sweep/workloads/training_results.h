// What a training record holds beyond its samples: arithmetic on rank 0.
#pragma once

#include "specs/model_table.h"
#include "sweep/workloads/workload.h"

namespace shardmark {

// Fills throughput, phases, FLOPs, MFU and the predicted numbers of a record whose samples and step
// statistics are there.
void derive_training(Record& record, const specs::ModelTable& table, const Resources& resources);

}  // namespace shardmark
