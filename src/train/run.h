// A training run: steps at a scheduled learning rate, progress lines, evaluations, checkpoints, and a clean
// end.
#pragma once

#include "comm/communicator.h"
#include "data/loader.h"
#include "executor/optim/lr_scheduler.h"
#include "plan/training_run.h"
#include "sweep/verdict.h"
#include "sweep/workloads/workload.h"
#include "train/checkpoints.h"
#include "train/evaluation.h"
#include "train/run_study.h"
#include "train/traces.h"

namespace shardmark {

struct TrainingOptions {
  Point point;  // workload "train"
  LRScheduler schedule;
  int64_t num_steps = 0;
  TrainingRun run = {};
  RunIdentity identity = {};
};

// Where a run begins. Only rank 0 reads the file.
struct Start {
  // The directory of checkpoints, locked against other runs; on rank 0 only.
  File directory = File();
  std::optional<SafetensorsFile> file;
  State what = State::weights;
  bool loads = false;  // on every rank: whether rank 0 has a file
  int64_t step = 0;
  double checked_s = 0;  // time it took to find and check the file
};

class Run {
 public:
  // Allocates the memory of the run, that of `setup` first, and tries out what reading and writing a state
  // needs for a moment; here a rank may throw alone. All arguments must outlive the run. `study` is given on
  // the rank that writes one.
  Run(const TrainingOptions& options, const Start& start, const HostGroup& group, TrainingSetup& setup,
      const Resources& resources, const DataSource& source, Heartbeat& heartbeat, RunStudy* study = nullptr);

  // Call once before train(). Takes over the state that `start` holds, if any. Collective; after that rank 0
  // may throw alone.
  void load(const Start& start);

  // Trains to the end, or until a signal or a failure ends the run, on all ranks after the same step. The
  // record is complete on rank 0; its outcome is the same on all ranks.
  Record train();

  // On rank 0: the checkpoints and weights that could not be written, and why; empty if there are none.
  std::string unwritten() const;

 private:
  // What has happened on this rank since the last settle(). Until then a GPU is not waited for.
  struct Pending {
    // A norm that was not asked for is undefined.
    std::vector<at::Tensor> losses, norms;
    std::vector<double> rates;
  };
  void step(bool wants_norm);
  // Collects the pending steps. A verdict that is not ok ends the run.
  Verdict settle();
  Verdict check_losses(const std::vector<double>& losses, int64_t count) const;
  void keep(const std::vector<double>& all, int64_t count);
  Verdict evaluate();
  Verdict check_state();
  void write_checkpoint();
  void write_weights();
  void finish(Record& record, const Verdict& verdict);

  const TrainingOptions& options_;
  const HostGroup& group_;
  Communicator& comm_;
  const DataSource& source_;
  Heartbeat& heartbeat_;
  RunStudy* study_;
  TrainingSetup& setup_;
  const Resources& resources_;
  Loader loader_;
  Lines lines_;
  int64_t first_step_, num_done_;  // steps
  // The number of steps done at the last attempt to write a checkpoint; the same on all ranks.
  int64_t checkpoint_at_ = -1;
  struct Unwritten {
    int64_t num_tried = 0, num_checkpoints = 0, last_step = 0;  // of checkpoints
    std::string checkpoint_trouble, weights_trouble;            // the latest
  };
  Unwritten unwritten_;
  Traces traces_;
  Pending pending_;
  Curves curves_;  // on rank 0
};

// Checks what a run is going to write before it computes anything. Call this on the rank that writes.
// first_step is that of this launch. Throws UsageError if a place cannot be written, or if a disk has no room
// for the checkpoints and weights of the run, as far as the system reports it.
void check_outputs(const TrainingOptions& options, int64_t first_step);

// Requests to stop a run: Ctrl-C, SIGTERM from a scheduler, and SIGUSR1 (which mpirun and srun pass on to
// ranks). From now on the first of these signals is only recorded; a second one ends the process at once.
void catch_stop_signals();
bool stop_requested();  // whether this rank got a signal

}  // namespace shardmark
