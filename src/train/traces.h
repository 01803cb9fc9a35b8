// Traces of some steps of a training run, as train --trace asks for them.
#pragma once

#include <optional>
#include <string>

#include "comm/host_group.h"
#include "device/profile.h"
#include "executor/training_setup.h"
#include "train/lines.h"

namespace shardmark {

// Three steps instruction by instruction, of all ranks in DIR/steps.json; then three as PyTorch's profiler
// sees them, which slows them down, a file for each rank: DIR/rank-0.json. In a run of fewer steps they are
// the same.
class Traces {
 public:
  // Everything must outlive this. directory: empty: no traces. first_step, num_steps: of the run.
  Traces(std::string directory, int64_t first_step, int64_t num_steps, const HostGroup& group,
         TrainingSetup& setup, at::Device device, Lines& lines);

  void between_steps(int64_t num_done);  // begins and ends what it is time for. Collective
  // What could not be written; the same on all ranks.
  const std::string& trouble() const { return trouble_; }

 private:
  void end_recorder(int64_t num_done);
  void end_profile(int64_t num_done);

  std::string directory_;
  int64_t record_from_, record_to_, profile_from_, profile_to_;  // steps done
  const HostGroup& group_;
  TrainingSetup& setup_;
  at::Device device_;
  Lines& lines_;
  std::optional<StepRecorder> recorder_;
  std::optional<Profile> profile_;
  std::string trouble_;
};

}  // namespace shardmark
