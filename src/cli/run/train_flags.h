// The flags of shardmark train, and the run they describe.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <map>
#include <optional>
#include <string>

#include "cli/run/world.h"
#include "schema/axes.h"
#include "training/run.h"

namespace shardmark {

struct TrainFlags {
  // The axes of the run: choices as text, by key; the others in the point; the batch and the transport below.
  std::map<std::string, std::string> choices = {{"strategy", "ddp"}, {"optimizer", "adamw"}};
  Point point;
  std::optional<double> lr, momentum, weight_decay, beta1, beta2, eps;  // of the optimizer
  bool scale_lr = false;
  std::string schedule = "constant";
  int64_t warmup = 0;
  std::optional<int64_t> steps, epochs;  // one of them, or neither: 100 steps
  std::optional<int64_t> batch_size;
  std::optional<int64_t> global_batch;  // of a file alone; --batch-size goes before it
  int64_t seed = 1;
  int64_t log_every = 1;
  int64_t eval_every = 0;
  std::optional<int64_t> eval_batches;
  std::string checkpoint;
  int64_t checkpoint_every = 0;
  bool resume = false;
  std::string weights, save_weights, trace;
  bool overwrite = false;
  int64_t memory_limit_bytes = 0;  // 0: of the device
  std::string output;
  bool deterministic = false;
  WorldFlags world;
  std::string file, file_text;    // a training run in YAML, which the flags override
  std::exception_ptr file_error;  // reported by check_train_flags(), once for all ranks
};

void add_train_flags(CLI::App& app, TrainFlags& flags);

// What is wrong with a flag whatever the others say. UsageError.
void check_train_flags(const TrainFlags& flags);
// The point that they describe on these ranks. global_batch: of the checkpoint that the run goes on from,
// which sets the batch size where no flag does. UsageError names the flag.
Point train_point(const TrainFlags& flags, int ranks, const std::string& transport,
                  std::optional<int64_t> global_batch);
// For a point from train_point. UsageError: more steps than can be counted.
TrainingOptions run_options(const TrainFlags& flags, const Point& point, const DataSource& source);

// On the rank that reads and writes. UsageError: a place that cannot be written without --overwrite, or that
// is read here, or written for another flag, too.
void check_paths(const TrainFlags& flags, const Point& point);

// What the file, a training run in YAML, says instead of what the flags say. UsageError: the file's mistake,
// with its place.
void read_train_file(const std::string& path, TrainFlags& flags);

}  // namespace shardmark
