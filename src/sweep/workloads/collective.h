// The collective workload: one operation, one message size, timed operation by operation.
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
  Check verify() override;  // every element, several patterns, each on another set of buffers
  void begin_window() override;
  void step() override;
  std::vector<std::vector<double>> end_window() override;
  std::vector<std::string> phases() const override { return {"step"}; }
  void derive(Record& record) const override;
  std::string collect(Record& record) override;

 protected:
  // The next operation, on the buffers that were used longest ago.
  Work start_next() { return comm_.start(calls_[static_cast<size_t>(num_started_++) % calls_.size()]); }
  // What the suite asked for, in whole elements of whole shards; of uneven parts the busiest rank's.
  double payload_bytes() const { return calls_.front().payload_bytes(comm_.rank(), comm_.size()); }
  void rate(Measures& measures, double operation_s) const;

  const Point& point_;
  const HostGroup& group_;
  Communicator& comm_;
  Heartbeat& heartbeat_;
  const specs::CollectiveRow& row_;
  at::ScalarType dtype_;
  Timeline timeline_;
  std::shared_ptr<void> in_order_;  // as long as a window lasts

 private:
  std::vector<Call> calls_;  // on other buffers each
  int64_t num_started_ = 0;
  int64_t num_wrong_ = -1;
};

}  // namespace shardmark
