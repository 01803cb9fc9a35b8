// A Point is one configuration to measure: made by plan, run by sweep, stored whole, read back by analysis.
#pragma once

#include <cstdint>
#include <string>

#include "schema/choice.h"

namespace shardmark {

// The batch size of a point that stands for a search: the sweep tries batches until it has the largest that
// fits into memory, each a point of its own.
inline constexpr int64_t kLargest = -1;

// The axes of a training block; axes.h says what each is and accepts.
struct TrainingPoint {
  Choice model;  // resolved: every option present
  Choice data;
  Choice strategy;
  std::string chosen;  // what strategy `auto` became where it ran, as text (not part of the identity)
  Choice optimizer;
  std::string precision = "fp32";
  std::string reduce_dtype = "same";
  double clip_norm = 0;
  int64_t recompute = 0;          // every n-th block; 0: none
  std::string kernels = "torch";  // of language models on a GPU: torch's, or those of src/kernels ("fused")
  bool graph = false;             // a GPU is given a step as CUDA graphs (executor/step_graphs.h)
  // Whether parameters are gathered in the communicator of the reductions ("shared"), one operation after the
  // other, or in one of their own ("own").
  std::string gathers = "shared";
  int64_t batch_size = 0;  // kLargest: the most that fits
  int64_t accumulation = 1;
  // The layout: ranks that share a copy of the model (specs/mesh.h).
  int64_t tensor = 1;  // ranks that share every block
  bool sequence_parallel = false;
  int64_t context = 1;           // ranks that share every sequence
  int64_t pipeline = 1;          // stages
  Choice schedule = {"1f1b"};    // of the stages
  std::string stages = "flops";  // what stages have equally much of
  std::string rank_order = "dp-pp";
  // "weak": the suite fixed batch_size; "strong": it fixed the global batch (not part of the identity).
  std::string scaling = "weak";
};

// The axes of a collectives block.
struct CollectivePoint {
  std::string operation;  // a row of comm's table: all_reduce ...
  std::string dtype = "float32";
  std::string reduction = "sum";  // "none" where the operation does not reduce
  int64_t bytes = 0;              // as nccl-tests counts them
  bool in_place = true;
  std::string parts = "equal";   // of an all_to_all_v, who sends how much to whom: a choice as text
  std::string beside = "alone";  // what the ranks do at the same time: a choice as text
};

// When a point has been measured enough; see sweep/README.md.
struct Sampling {
  int64_t warmup_steps = 3;  // at least; goes on until the samples no longer drift, at most 10 times as many
  int64_t min_steps = 10;
  int64_t max_steps = 200;
  double time_limit_s = 20;  // of sampling, warm-up excluded
  double precision = 0.02;   // wanted half-width of the 95 % interval of the median, relative
  double duration_s = 0;     // a sustained run: steps go on for so long; 0: until measured enough
};

struct Point {
  std::string workload;  // "training", "collective", or "train": a run of shardmark train
  int64_t ranks = 1;
  std::string transport;    // a choice as text: mpi, nccl, hierarchical(...); empty: nccl on GPUs, else mpi
  std::string environment;  // settings of its start (settings.h); empty: those of the study
  int64_t seed = 1;
  int64_t repeat = 0;  // 0 .. repeats-1
  TrainingPoint training;
  CollectivePoint collective;
  Sampling sampling;
  std::string folder;      // of the suite's file, for relative paths of data (not part of the identity)
  std::string impossible;  // why plan knows that it cannot run; empty otherwise (not part of the identity)

  // Ranks that share one copy of the model and see the same samples.
  // Wraps where a damaged record holds numbers that no run had, as below.
  int64_t ranks_per_copy() const {
    return static_cast<int64_t>(static_cast<uint64_t>(training.tensor) *
                                static_cast<uint64_t>(training.context) *
                                static_cast<uint64_t>(training.pipeline));
  }
  // Copies of the model, each with samples of its own; 0 where the layout does not divide the ranks.
  int64_t data_ranks() const {
    return ranks_per_copy() >= 1 && ranks % ranks_per_copy() == 0 ? ranks / ranks_per_copy() : 0;
  }
  int64_t global_batch() const {
    return static_cast<int64_t>(static_cast<uint64_t>(data_ranks()) *
                                static_cast<uint64_t>(training.batch_size) *
                                static_cast<uint64_t>(training.accumulation));
  }
};

// A study may come from a program that knows more. Of other points nothing below may be asked.
bool is_known_workload(const Point& point);

// 16 hexadecimal digits of a hash over everything that defines the measurement: two suites that ask for the
// same thing ask for the same point. Independent of the order in which options were written.
std::string point_id(const Point& point);

// "training gpt2(layers=4) fsdp 2 ranks batch 4" or "all_reduce float32 sum 1 MiB 2 ranks": for progress and
// messages.
std::string to_text(const Point& point);

}  // namespace shardmark
