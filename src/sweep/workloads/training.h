// The training workload: a model, its data and a strategy, run and timed step by step.
#pragma once

#include "data/loader.h"
#include "device/meter.h"
#include "executor/training_setup.h"
#include "sweep/workloads/workload.h"

namespace shardmark {

class Training final : public Workload {
 public:
  explicit Training(const WorkloadContext& context);
  ~Training() override;

  void allocate() override;
  std::exception_ptr failure() const override { return setup_.executor->failure(); }
  Check verify() override;
  double first_step_s() const override { return first_step_s_; }
  void begin_window() override {}
  void step() override;
  void close_window() override;
  std::vector<std::vector<double>> end_window() override;
  std::vector<std::string> phases() const override;
  void derive(Record& record) const override;
  std::string collect(Record& record) override;
  Verdict measure_checkpoints(Record& record) override;
  void measure_ablations(Record& record) override;

 private:
  std::vector<specs::Dimension> inside_blocks() const;
  ReferenceRun shared_reference(int64_t replica);
  // Whether all of these ranks have the same number. The answer is the same on all ranks of the point.
  bool is_equal_within(const specs::ProcessGroup& ranks, int64_t sum) const;
  double loss_of_own_copy(double own) const;  // on rank 0
  std::string divergence(const std::vector<double>& losses, const std::vector<double>& norms,
                         const ReferenceRun& reference) const;  // the same on all ranks
  Check lossy_check(const std::vector<double>& losses, const std::vector<double>& expected) const;
  // Tokens that each expert was given since the model began to count, on rank 0: of all ranks, or with `own`
  // of rank 0 alone. Empty if the model has no experts.
  std::vector<double> expert_load_of_ranks(bool of_first_copy) const;
  void collect_expert_load(Record& record) const;
  void collect_memory(Record& record);
  void trace_steps(const std::function<void()>& train);
  std::vector<double> timed(int64_t times, const std::function<void()>& step,
                            StepRecorder* details = nullptr);
  std::vector<double> timed_compute(Record& record, int64_t times, const std::function<void()>& train);

  const Point& point_;
  const HostGroup& group_;
  Communicator& comm_;
  const Resources& resources_;
  ReferenceCache& references_;
  Heartbeat& heartbeat_;
  std::string trace_;

  MemoryReading before_;
  TrainingSetup setup_;
  MemoryReading built_;
  std::unique_ptr<DataSource> source_;
  std::unique_ptr<Loader> loader_;
  double between_nodes_before_ = 0;
  // First and last loss of the steps after verification: one number each, on the device.
  at::Tensor first_loss_, last_loss_;
  double first_step_s_ = Measures::kNone;
  int64_t num_steps_ = 0;
};

}  // namespace shardmark
