// The collective workload: one operation with one message size, timed operation by operation; and dispatch
// and combine, which are a collective with work around it.
#pragma once

#include <vector>

#include "device/timeline.h"
#include "specs/collectives.h"
#include "sweep/workloads/workload.h"

namespace shardmark {

class CollectiveWorkload : public Workload {
 public:
  explicit CollectiveWorkload(const WorkloadContext& context);

  void allocate() override;
  Check verify() override;  // every element, with several patterns and buffers
  void begin_window() override;
  void step() override;
  std::vector<std::vector<double>> end_window() override;
  std::vector<std::string> phases() const override { return {"step"}; }
  void derive(Record& record) const override;
  std::string collect(Record& record) override;

 protected:
  // What an operation moves, in bytes: the message as it is rated, what goes over the busiest link, and what
  // a rank sends to others, as the mean over ranks.
  struct Moved {
    double payload, bus, sent;
  };
  // With parts of different sizes the message is that of the busiest rank; it is rounded to whole elements
  // and whole shards.
  virtual Moved moved() const;
  // Makes one more set of buffers for a message of `numel` elements.
  virtual void add_set(int64_t numel);
  // Runs an operation on a set of buffers, in the form that is timed.
  virtual void perform(size_t set) { comm_.run(calls_[set]); }
  // Writes the pattern of a round of verification to the input, counts the elements of the output that then
  // are wrong, and sets both to zero: sums in place would grow from step to step.
  virtual void fill(size_t set, int64_t round);
  virtual int64_t num_wrong(size_t set, int64_t round);
  virtual void clear(size_t set);
  virtual double estimate_s() { return comm_.estimate_s(calls_.front()); }
  // What is held while operations are timed, so that they need no events (Communicator::in_order).
  virtual std::shared_ptr<void> in_order() { return comm_.in_order(); }

  // The set of buffers that was used longest ago.
  size_t next_set() { return static_cast<size_t>(num_started_++) % static_cast<size_t>(num_sets_); }
  const Call& call(size_t set) const { return calls_[set]; }
  void rate(Measures& measures, double operation_s) const;

  const Point& point_;
  const HostGroup& group_;
  Communicator& comm_;
  Heartbeat& heartbeat_;
  const specs::CollectiveRow& row_;
  at::ScalarType dtype_;
  Timeline timeline_;
  std::shared_ptr<void> in_order_;  // held during a window

 private:
  std::vector<Call> calls_;  // each with its own buffers
  int64_t num_sets_ = 0, num_started_ = 0;
  int64_t num_wrong_ = -1;
  double estimated_s_ = Measures::kNone;
};

}  // namespace shardmark
