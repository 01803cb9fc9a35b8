// The collective workload: one operation with one message size, timed operation by operation.
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
  // The next operation, on the set of buffers that was used longest ago.
  const Call& next() { return calls_[static_cast<size_t>(num_started_++) % calls_.size()]; }
  // The message size that the suite asked for, rounded to whole elements and whole shards. With unequal parts
  // it is that of the busiest rank.
  double payload_bytes() const { return calls_.front().payload_bytes(comm_.rank(), comm_.size()); }
  // Runs an operation in the form that is timed.
  virtual void perform(const Call& call) { comm_.run(call); }
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
  int64_t num_started_ = 0;
  int64_t num_wrong_ = -1;
  double estimated_s_ = Measures::kNone;
};

}  // namespace shardmark
