// The flags of shardmark train, and the run they describe.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <map>
#include <optional>
#include <string>

#include "cli/run/world.h"
#include "schema/axes.h"
#include "train/run.h"

namespace shardmark {

struct TrainFlags : TrainingRun {
  // The axes of the run: choices as text, by key; the others in the point; the transport is the world's.
  std::map<std::string, std::string> choices = {{"strategy", "ddp"}, {"optimizer", "adamw"}};
  Point point;
  WorldFlags world;
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

}  // namespace shardmark
