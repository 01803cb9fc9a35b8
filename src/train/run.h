// A training run: steps at a scheduled learning rate, progress lines, evaluations, checkpoints,
// and a clean end.
#pragma once

#include "comm/communicator.h"
#include "data/loader.h"
#include "executor/optim/rate_schedule.h"
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
  RateSchedule schedule;
  int64_t num_steps = 0;
  TrainingRun run = {};
  RunIdentity identity = {};
};

// Where a run begins: the file is read by rank 0 alone.
struct Start {
  File directory = File();  // of checkpoints, kept from other runs; on rank 0
  std::optional<SafetensorsFile> file;
  State what = State::weights;
  bool loads = false;  // on every rank: whether rank 0 has a file
  int64_t step = 0;
  double checked_s = 0;  // what finding and checking the file took
};

class Run {
 public:
  // Takes the memory of the run, setup's first of all, and asks for what reading and writing a state takes
  // for a moment: a rank may throw alone. Everything must outlive it.
  // study: of the rank that writes one.
  Run(const TrainingOptions& options, const Start& start, const HostGroup& group, TrainingSetup& setup,
      const Resources& resources, const DataSource& source, Heartbeat& heartbeat, RunStudy* study = nullptr);

  // Once, before train(): takes over what the start holds, if anything. Collective, then rank 0 may throw
  // alone.
  void load(const Start& start);

  // Trains to the end, or until a signal or a failure ends it, on all ranks after the same step. The record
  // is whole on rank 0; its outcome is the same on all.
  Record train();

  // The checkpoints and weights that could not be written, and why; empty: none. On rank 0.
  std::string unwritten() const;

 private:
  // What happened since the last settlement, on this rank; a GPU is not waited for before.
  struct Pending {
    std::vector<at::Tensor> losses, norms;  // a norm that nobody asked for is undefined
    std::vector<double> rates;
  };
  void step(bool wants_norm);
  Verdict settle();  // collects the pending steps; not ok: what ends the run
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
  int64_t checkpoint_at_ = -1;     // steps done at the last attempt; the same on all ranks
  struct Unwritten {
    int64_t num_tried = 0, num_checkpoints = 0, last_step = 0;  // of checkpoints
    std::string checkpoint_trouble, weights_trouble;            // the latest
  };
  Unwritten unwritten_;
  Traces traces_;
  Pending pending_;
  Curves curves_;  // on rank 0
};

}  // namespace shardmark
