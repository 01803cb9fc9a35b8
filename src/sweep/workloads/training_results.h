// What a training record holds beyond its samples: arithmetic on rank 0.
#pragma once

#include "specs/model_table.h"
#include "sweep/workloads/workload.h"

namespace shardmark {

// Model FLOPs of a rank in a step, by formula.
double flops_per_step(const Point& point, const specs::ModelTable& table);

// The rank whose peak is highest, the first of several: memory is measured and predicted of this one. 0 where
// no series of peaks is there.
int64_t fullest_rank(const Record& record);

// Fills throughput, FLOPs and MFU of a record whose median step is there, from steps that took so many
// seconds.
void derive_speed(Record& record, const specs::ModelTable& table, const Resources& resources, int64_t steps,
                  double seconds);

// Fills throughput, phases, FLOPs, MFU and the predicted numbers of a record whose samples and step
// statistics are there.
void derive_training(Record& record, const specs::ModelTable& table, const Resources& resources);

}  // namespace shardmark
