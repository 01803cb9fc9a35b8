// The checkpoints of a training point (axis `save`): how long ranks take to write and to read one, how large
// it is, and how long training stops for it. What was read is compared, bit by bit, with what was written.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/state_file.h"
#include "comm/host_group.h"
#include "comm/watch/heartbeat.h"
#include "executor/training_setup.h"
#include "schema/record.h"
#include "sweep/verdict.h"

namespace shardmark {

class Saving {
 public:
  // `step` trains one step. The arguments must outlive this.
  Saving(const HostGroup& group, TrainingSetup& setup, Heartbeat& heartbeat, std::function<void()> step);

  // Before anything is trained: throws UsageError if the folder cannot be written, or has no room for the
  // state. A rank may throw alone.
  static void check(const Point& point, int rank);

  // Writes and reads a few checkpoints. Fills in the series checkpoint_write, checkpoint_stall and
  // checkpoint_read and the measures of the same names on rank 0. Removes its files. Collective; all ranks
  // return the same verdict: `failed` with what the disk or a file did not accept, `wrong` if the state that
  // was read is not the one that was written.
  Verdict measure(Record& record);

 private:
  Verdict write_all();
  Verdict write_once();
  Verdict write_beside_steps(double begin_s, std::unique_ptr<StateFile> file);
  int64_t train_while(const std::function<bool(int64_t steps)>& wants_more);
  std::unique_ptr<StateFile> open() const;
  void visit(bool copies, const StateVisitor& visitor);
  Verdict read_all();
  Verdict read_once();
  Verdict read_whole();
  Verdict read_shards();
  bool goes_on(double begin_s, int64_t done) const;
  std::vector<TrainingState::Own> compared() const;
  uint64_t hash_of_state();
  void beat(const char* stage);
  void with_beats(const char* stage, const std::function<void()>& body);
  void forget_cached() const;
  std::string file_of(int rank) const;
  void remove_files() const;

  const HostGroup& group_;
  TrainingSetup& setup_;
  Heartbeat& heartbeat_;
  std::function<void()> step_;
  bool sharded_, sync_, async_;
  std::string folder_;
  double usual_step_s_ = 0;  // of a step beside which nothing is written; async only
  std::vector<double> write_s_, stall_s_, read_s_;
  uint64_t hash_written_ = 0;  // of the last checkpoint, on this rank
  double bytes_ = 0;           // of all files of a checkpoint
};

}  // namespace shardmark
