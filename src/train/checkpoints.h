// The checkpoints of a run: a directory of files step-000000100.safetensors, of which the last two are kept.
// Each holds the whole training state, so that it can go on under another strategy and on other ranks.
#pragma once

#include <optional>

#include "train/state_file.h"

namespace shardmark {

// What must agree for a run to go on with the same losses; stored in the file's metadata as JSON. Files of
// earlier versions hold neither content nor settings: then they are not compared.
struct RunIdentity {
  std::string model, data, optimizer;
  int64_t optimizer_state = 0;  // tensors per parameter
  int64_t seed = 0;
  int64_t global_batch = 0;
  int64_t num_samples = 0;   // to train on
  std::string content = {};  // DataSource::content(), on rank 0
  // What may change, and then is said: rates, clipping, precision; by the name that a message calls it.
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
};

class Checkpoints {
 public:
  explicit Checkpoints(std::string directory) : directory_(std::move(directory)) {}

  static bool is_name(const std::string& name);  // of a file in such a directory: that of a checkpoint

  // Makes the directory, and keeps other runs out of it as long as the file is open; what a killed run left
  // half written goes. UsageError: it cannot be made, or another run is in it.
  File claim() const;
  // Of a new run. UsageError: there are checkpoints already.
  void start() const;
  // The newest checkpoint that is whole, all of its bytes checked; damaged ones are named and passed over.
  // UsageError: there are some, but none is whole.
  std::optional<SafetensorsFile> newest() const;

  // Collective. Returns what kept it from being written, on rank 0; the earlier ones then stay.
  std::string write(int64_t step, const RunIdentity& identity, const TrainingSetup& setup, bool writes) const;

  // How many more files there will be, if this many are written: at the worst moment, and at the end.
  struct Growth {
    int64_t most, last;
  };
  Growth growth(int64_t num_writes) const;

 private:
  struct Found {
    int64_t step;
    std::string path;
  };
  std::vector<Found> found() const;     // newest first
  void remove_old(int64_t step) const;  // older than the last ones up to this step

  std::string directory_;
};

int64_t step_of(const SafetensorsFile& checkpoint);          // UsageError: no checkpoint of a run
int64_t global_batch_of(const SafetensorsFile& checkpoint);  // the same
// UsageError names what differs; a warning, each setting that does.
void check_identity(const SafetensorsFile& checkpoint, const RunIdentity& identity);

}  // namespace shardmark
