// Traces of some steps of a training run: `train --trace DIR`.
#pragma once

#include <optional>
#include <string>

#include "comm/host_group.h"
#include "executor/training_setup.h"
#include "train/lines.h"

namespace shardmark {

// A trace of some steps of this process as PyTorch's profiler records it: operators, GPU kernels and copies,
// and memory, in Chrome's trace format (Perfetto and chrome://tracing show it).
//
// Records from construction to stop(). There can be one at a time in a process. Without a GPU it records
// operators and memory.
class Profile {
 public:
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  // Ends the recording and writes it. Returns an empty text, or what went wrong. The device must be idle.
  std::string stop(const std::string& path);

 private:
  bool running_ = true;
};

// First three steps are recorded instruction by instruction on all ranks and written to DIR/steps.json. Then
// three steps are recorded with PyTorch's profiler, which slows them down, in one file per rank:
// DIR/rank-0.json. If the run is too short, both cover the same steps.
class Traces {
 public:
  // All arguments must outlive this object. If `directory` is empty, nothing is traced. first_step and
  // num_steps are the run's.
  Traces(std::string directory, int64_t first_step, int64_t num_steps, const HostGroup& group,
         TrainingSetup& setup, at::Device device, Lines& lines);

  // Begins and ends traces that are due. Collective.
  void between_steps(int64_t num_done);
  // What could not be written; the same on all ranks.
  const std::string& trouble() const { return trouble_; }

 private:
  void end_recorder(int64_t num_done);
  void end_profile(int64_t num_done);

  std::string directory_;
  int64_t record_from_, record_to_, profile_from_, profile_to_;  // in steps done
  const HostGroup& group_;
  TrainingSetup& setup_;
  at::Device device_;
  Lines& lines_;
  std::optional<StepRecorder> recorder_;
  std::optional<Profile> profile_;
  std::string trouble_;
};

}  // namespace shardmark
