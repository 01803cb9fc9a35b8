// Measures of a training record that are computed from its samples: arithmetic on rank 0.
#pragma once

#include "specs/model_table.h"
#include "sweep/workloads/workload.h"

namespace shardmark {

// Model FLOPs of one rank in one step, by formula.
double flops_per_step(const Point& point, const specs::ModelTable& table);

// The rank whose peak memory is highest (the first of several). Memory is reported and predicted for this
// rank. 0 if the record has no peaks.
int64_t fullest_rank(const Record& record);

// Fills in throughput, FLOPs and MFU from `steps` steps that took `seconds` in all. The median step time must
// be set already.
void derive_speed(Record& record, const specs::ModelTable& table, const Resources& resources, int64_t steps,
                  double seconds);

// Fills in throughput, phases, FLOPs, MFU and predictions. Samples and step statistics must be set already.
void derive_training(Record& record, const specs::ModelTable& table, const Resources& resources);

}  // namespace shardmark
