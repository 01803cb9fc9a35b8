// The checkpoints of a run: a directory of files named step-000000100.safetensors, of which the last two are
// kept. Each holds the whole unsharded training state, so a run can continue with another strategy and
// another number of ranks.
#pragma once

#include <optional>

#include "checkpoint/state_file.h"

namespace shardmark {

// What must be equal for a run to continue with the same losses. It is stored in the file's metadata as JSON.
// Files of earlier versions have neither content nor settings; these are not compared then.
struct RunIdentity {
  std::string model, data, optimizer;
  int64_t optimizer_state = 0;  // tensors per parameter
  int64_t seed = 0;
  int64_t global_batch = 0;
  int64_t num_samples = 0;   // to train on
  std::string content = {};  // DataSource::content(), on rank 0
  // Settings that may change, with a warning: learning rates, clipping, precision. The keys are the names
  // that the warning uses.
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
};

class Checkpoints {
 public:
  explicit Checkpoints(std::string directory) : directory_(std::move(directory)) {}

  static bool is_name(const std::string& name);  // whether this is a checkpoint's file name

  // Creates the directory and locks it against other runs for as long as the file is open. Removes what a
  // killed run left half written. Throws UsageError if the directory cannot be created, or if another run
  // uses it.
  File claim() const;
  // For a new run: throws UsageError if there are checkpoints already.
  void start() const;
  // Returns the newest undamaged checkpoint; all of its bytes have been checked. Damaged ones are skipped
  // with a warning. Throws UsageError if there are checkpoints but all are damaged.
  std::optional<SafetensorsFile> newest() const;

  // Collective. If writing fails, rank 0 returns the reason, and earlier checkpoints stay.
  std::string write(int64_t step, const RunIdentity& identity, const TrainingSetup& setup, bool writes) const;

  // How many more files there will be after num_writes writes: at the worst moment, and at the end.
  struct Growth {
    int64_t most, last;
  };
  Growth growth(int64_t num_writes) const;

 private:
  struct Found {
    int64_t step;
    std::string path;
  };
  std::vector<Found> found() const;  // newest first
  // Keeps the last checkpoints up to `step` and removes the others.
  void remove_old(int64_t step) const;

  std::string directory_;
};

int64_t step_of(const SafetensorsFile& checkpoint);          // UsageError: not a run's checkpoint
int64_t global_batch_of(const SafetensorsFile& checkpoint);  // likewise
// Throws UsageError that names the first difference; warns about each setting that differs.
void check_identity(const SafetensorsFile& checkpoint, const RunIdentity& identity);

}  // namespace shardmark
