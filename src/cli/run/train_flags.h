// The flags of shardmark train, and the run that they describe.
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
  // The axes of the run. Choices are stored as text by key, other axes in the point, and the transport in
  // `world`.
  std::map<std::string, std::string> choices = {{"strategy", "ddp"}, {"optimizer", "adamw"}};
  Point point;
  WorldFlags world;
  std::exception_ptr file_error;  // reported by check_train_flags(), once for all ranks
};

void add_train_flags(CLI::App& app, TrainFlags& flags);

// Throws UsageError for a flag that is wrong regardless of the others.
void check_train_flags(const TrainFlags& flags);
// Returns the point that the flags describe on these ranks. global_batch is that of the checkpoint from which
// the run resumes, and sets the batch size if no flag does. Throws a UsageError that names the flag.
Point train_point(const TrainFlags& flags, int ranks, const std::string& transport,
                  std::optional<int64_t> global_batch);
// Returns the options of the run for a point from train_point. Throws UsageError if there are more steps than
// can be counted.
TrainingOptions run_options(const TrainFlags& flags, const Point& point, const DataSource& source);

// Checks the files that the run writes; called on the rank that reads and writes. Throws UsageError if a file
// cannot be written without --overwrite, is also read, or is also written for another flag.
void check_paths(const TrainFlags& flags, const Point& point);

}  // namespace shardmark
