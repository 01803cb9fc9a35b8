// A Point is one configuration to measure. plan makes points, sweep runs them, the study stores them whole,
// and analysis reads them back.
#pragma once

#include <cstdint>
#include <string>

#include "schema/choice.h"

namespace shardmark {

// The batch size of a point that stands for a search. The sweep tries batch sizes until it has found the
// largest that fits into memory; each try is a point of its own.
inline constexpr int64_t kLargest = -1;

// In place of a number of blocks (TrainingPoint::recompute): the inputs that sequence_parallel gathers are
// gathered again in backward.
inline constexpr int64_t kGatheredInputs = -1;

// In place of a number of ranks (TrainingPoint::dispatch): a token travels once to each of its experts.
inline constexpr int64_t kDispatchCopies = 0;

// The axes of a training block. axes.h says what each axis means and accepts.
struct TrainingPoint {
  Choice model;  // resolved: all options are present
  Choice data;
  Choice strategy;
  // The strategy that `auto` chose on the ranks that ran the point, as text. Not part of the identity.
  std::string chosen;
  Choice optimizer;
  std::string precision = "fp32";
  Choice products = {"compute"};  // how transformer blocks multiply matrices: in the precision, or in fp8
  std::string reduce_dtype = "same";
  double clip_norm = 0;
  int64_t recompute = 0;  // recompute every n-th block in backward; 0: none; or kGatheredInputs
  // The kernels of the layers of a language model or of ResNet on a GPU: those of LibTorch ("torch") or of
  // src/kernels ("fused").
  std::string kernels = "torch";
  bool graph = false;  // run a step as CUDA graphs (executor/step_graphs.h)
  // The communicator that gathers parameters: that of the reductions ("shared"), where operations run one
  // after the other, or one of their own ("own"), where a gather and a reduction may overlap.
  std::string gathers = "shared";
  int64_t batch_size = 0;  // samples per rank and micro-batch, or kLargest
  int64_t accumulation = 1;
  // The parallel layout: how ranks share one copy of the model (specs/mesh.h).
  int64_t tensor = 1;  // tensor-parallel ranks
  bool sequence_parallel = false;
  int64_t context = 1;  // context-parallel ranks
  int64_t expert = 1;   // expert-parallel ranks
  // How often a token travels to the ranks that have its experts: kDispatchCopies, or once to each n
  // neighbouring ones, of which one passes it on to the others. 1: once to each rank.
  int64_t dispatch = kDispatchCopies;
  int64_t pipeline = 1;        // pipeline stages
  Choice schedule = {"1f1b"};  // the pipeline schedule
  // What is balanced when blocks are assigned to stages: their FLOPs or their number.
  std::string stages = "flops";
  std::string rank_order = "dp-pp";
  Choice save = {"none"};  // how checkpoints are written after the steps
  // "weak": the suite gave the batch of a rank. "strong": it gave the global batch. Not part of the identity.
  std::string scaling = "weak";

  // Whether products in fp8 have a scale for each block of 32 numbers (MXFP8).
  bool scales_blocks() const;
  // Whether products are in fp8 and emulated on every device, also on one that has such products.
  bool emulates_products() const { return products.name == "fp8" && precision != "bf16"; }
  // The type of most matrix products, whose peak a rate is compared with: a precision, or "fp8", or "mxfp8"
  // where each block has a scale. A device that emulates these has no peak of them.
  std::string product_type() const;
};

// The axes of a collectives block.
struct CollectivePoint {
  std::string operation;  // a row of specs/collectives.h: all_reduce ... or dispatch, combine
  std::string dtype = "float32";
  std::string reduction = "sum";  // "none" if the operation does not reduce
  int64_t bytes = 0;              // as nccl-tests counts them; of dispatch and combine: all tokens of a rank
  bool in_place = true;
  // For all_to_all_v, dispatch and combine: how much each rank sends to each; a choice as text.
  std::string parts = "equal";
  std::string beside = "alone";  // a load that runs at the same time; a choice as text
};

// The stopping rule of a point. src/sweep/README.md explains it.
struct Sampling {
  // Minimum number of warm-up steps. Warm-up goes on until step times no longer drift, up to 10 times as
  // many.
  int64_t warmup_steps = 3;
  int64_t min_steps = 10;
  int64_t max_steps = 200;
  double time_limit_s = 20;  // limit of sampling, warm-up excluded
  // Sampling ends when the half-width of the median's 95 % interval is at most this share of the median.
  double precision = 0.02;
  // If above 0, steps go on for this long (a sustained run), and the rule above does not end them.
  double duration_s = 0;
};

struct Point {
  std::string workload;  // "training", "collective", or "train": a run of shardmark train
  int64_t ranks = 1;
  // A choice as text: pt2pt, mpi, nccl, hierarchical(...). Empty: nccl on GPUs, pt2pt elsewhere.
  std::string transport;
  // Settings that ranks are started with (settings.h). Empty: those of the whole study.
  std::string environment;
  int64_t seed = 1;
  int64_t repeat = 0;  // 0 .. repeats-1
  TrainingPoint training;
  CollectivePoint collective;
  Sampling sampling;
  std::string folder;  // folder of the suite's file, for relative data paths; not part of the identity
  // Why the plan knows that the point cannot run; empty if it can. Not part of the identity.
  std::string impossible;

  // Ranks that share one copy of the model and see the same samples. The product is unsigned, because a
  // damaged record may hold numbers for which signed arithmetic would overflow.
  int64_t ranks_per_copy() const {
    return static_cast<int64_t>(static_cast<uint64_t>(training.tensor) *
                                static_cast<uint64_t>(training.context) *
                                static_cast<uint64_t>(training.pipeline));
  }
  // Whether ranks hold different parts of the model: of its blocks, sequences, stages or experts.
  bool is_model_parallel() const { return ranks_per_copy() > 1 || training.expert > 1; }
  // Copies of the model, each with its own samples: the data-parallel size. 0 if the layout does not divide
  // the ranks.
  int64_t data_ranks() const {
    return ranks_per_copy() >= 1 && ranks % ranks_per_copy() == 0 ? ranks / ranks_per_copy() : 0;
  }
  // Samples of all ranks in one step, over all micro-batches.
  int64_t global_batch() const {
    return static_cast<int64_t>(static_cast<uint64_t>(data_ranks()) *
                                static_cast<uint64_t>(training.batch_size) *
                                static_cast<uint64_t>(training.accumulation));
  }
};

// Whether this program knows the workload; a study of a later program may hold others. The functions below
// must not be called for an unknown workload.
bool is_known_workload(const Point& point);

// Returns 16 hexadecimal digits: a hash over everything that defines the measurement. Two suites that ask for
// the same measurement get the same id. The order in which options were written does not matter.
std::string point_id(const Point& point);

// The point in progress lines and messages: "training gpt2(layers=4) fsdp 2 ranks batch 4" or "all_reduce
// float32 sum 1 MiB 2 ranks".
std::string to_text(const Point& point);

}  // namespace shardmark
