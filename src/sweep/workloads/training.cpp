// Set-up, steps and results of a training point. training_verify.cpp has its verification.
#include "sweep/workloads/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device/device.h"
#include "device/meter.h"
#include "sweep/workloads/reference.h"
#include "sweep/workloads/training_results.h"

namespace shardmark {

std::unique_ptr<Workload> make_training(const WorkloadContext& context) {
  return std::make_unique<Training>(context);
}

Training::Training(const WorkloadContext& context)
    : point_(context.point),
      group_(context.group),
      comm_(context.comm),
      resources_(context.resources),
      references_(context.references),
      heartbeat_(context.heartbeat),
      trace_(context.trace),
      before_(meter::read()),
      setup_(point_, comm_) {}

void Training::allocate() {
  const auto& t = point_.training;
  setup_.allocate();
  built_ = meter::read();
  source_ = make_source(t.data, {setup_.whole.sample, setup_.model->dtype(), point_.seed,
                                 /*holds_out=*/false, point_.folder});
  loader_ = std::make_unique<Loader>(
      *source_, DistributedSampler(point_, source_->size(), setup_.data_rank()), comm_.device(),
      prefetch_depth(resources_.num_cores, resources_.local_ranks, resources_.threads_per_rank));
  comm_.set_timeline(&setup_.executor->recorder().timeline());
  setup_.executor->set_heartbeat(&heartbeat_);
  meter::reset_peak();
}

Training::~Training() { comm_.set_timeline(nullptr); }  // the timeline's lifetime ends here

void Training::step() {
  if (num_steps_ == 0) {
    comm_.reset_traffic();
    between_nodes_before_ = comm_.bytes_between_nodes();
    if (setup_.model->expert_load.defined()) setup_.model->expert_load.zero_();
  }
  last_loss_ = setup_.executor->step([this] { return loader_->next(); }).loss;
  if (num_steps_++ == 0) first_loss_ = last_loss_;
}

void Training::close_window() { setup_.executor->recorder().end(); }

// The dimensions of the layout over which one copy of the model is distributed.
std::vector<specs::Dimension> Training::inside_copies() const {
  std::vector<specs::Dimension> all;
  const specs::Mesh mesh = specs::mesh_of(point_);
  for (const auto& [dimension, ranks] : {std::pair(specs::Dimension::tensor, mesh.tensor),
                                         {specs::Dimension::context, mesh.context},
                                         {specs::Dimension::pipeline, mesh.pipeline}})
    if (ranks > 1) all.push_back(dimension);
  return all;
}

std::vector<std::vector<double>> Training::end_window() {
  const std::vector<specs::Dimension> dimensions = inside_copies();
  // One row for the step, one for each of its phases, and one for each dimension's part of the exposed time.
  std::vector<std::vector<double>> rows(1 + kNumPhases + dimensions.size());
  for (const RecordedStep& step : setup_.executor->recorder().take()) {
    rows[0].push_back(step.seconds());
    const auto phases = step.phases();
    for (size_t phase = 0; phase < kNumPhases; ++phase) rows[1 + phase].push_back(phases[phase]);
    const auto exposed = step.exposed();
    for (size_t d = 0; d < dimensions.size(); ++d)
      rows[1 + kNumPhases + d].push_back(exposed[static_cast<size_t>(dimensions[d])]);
  }
  return rows;
}

std::vector<std::string> Training::phases() const {
  std::vector<std::string> names = {"step"};
  names.insert(names.end(), strategies::kPhaseNames.begin(), strategies::kPhaseNames.end());
  for (const specs::Dimension dimension : inside_copies())
    names.push_back(std::string("exposed_") + specs::kDimensionNames[static_cast<size_t>(dimension)]);
  return names;
}

void Training::derive(Record& record) const { derive_training(record, setup_.whole, resources_); }

std::string Training::collect(Record& record) {
  auto& m = record.measures;
  const auto mean_over_ranks = [&](const at::Tensor& loss) {
    return group_.sum(item<double>(loss)) / static_cast<double>(point_.ranks);
  };
  if (num_steps_ > 0) {
    m.loss_first = mean_over_ranks(first_loss_);
    m.loss_last = mean_over_ranks(last_loss_);
    m.num_skipped = setup_.guard->num_skipped();
    const Traffic& traffic = comm_.traffic();
    const auto steps = static_cast<double>(num_steps_);
    m.traffic_bytes = group_.sum(traffic.ring_bytes) / steps / static_cast<double>(point_.ranks);
    m.between_nodes_bytes = group_.max(comm_.bytes_between_nodes() - between_nodes_before_) / steps;
    m.num_operations = std::llround(static_cast<double>(traffic.num_operations) / steps);
  }
  collect_expert_load(record);
  collect_memory(record);
  if (num_steps_ > 0 && !std::isfinite(m.loss_last))
    return fmt::format(
        "the loss is not finite after {} steps: training diverges, and a smaller learning rate may help",
        num_steps_);
  return {};
}

std::vector<double> Training::expert_load_of_ranks(bool own) const {
  std::vector<double> load = expert_load(*setup_.model);
  if (load.empty() || own) return load;
  const std::vector<double> all = group_.gather(load);
  std::vector<double> sum(load.size());
  for (size_t i = 0; i < all.size(); ++i) sum[i % sum.size()] += all[i];
  return sum;
}

void Training::collect_expert_load(Record& record) const {
  std::vector<double> load = expert_load_of_ranks(/*own=*/false);
  if (load.empty() || num_steps_ == 0 || group_.rank() != 0) return;
  for (double& tokens : load) tokens /= static_cast<double>(num_steps_);
  const at::Tensor& shape = setup_.model->expert_load;
  record.samples.push_back({"expert_load", shape.size(0), shape.size(1), std::move(load)});
}

void Training::collect_memory(Record& record) {
  auto& m = record.measures;
  const MemoryReading now = meter::read();
  const auto peak = static_cast<double>(now.peak);
  m.peak_bytes = group_.max(peak);
  const auto peaks = group_.gather(std::vector<double>{peak});
  if (group_.rank() == 0) record.samples.push_back({"peak", point_.ranks, 1, peaks});
  // All values are those of one rank: stages of a pipeline hold different parts, so only values of the same
  // rank add up.
  const auto fullest = static_cast<int>(group_.broadcast(fullest_rank(record), 0));
  for (const auto& [use, measure] : {std::pair(MemoryUse::parameters, &Measures::parameter_bytes),
                                     {MemoryUse::gradients, &Measures::gradient_bytes},
                                     {MemoryUse::optimizer, &Measures::optimizer_bytes},
                                     {MemoryUse::transient, &Measures::transient_bytes},
                                     {MemoryUse::offloaded, &Measures::offloaded_bytes}})
    m.*measure = static_cast<double>(group_.broadcast(built_.of(use) - before_.of(use), fullest));
  if (meter::limit() > 0) m.memory_limit_bytes = static_cast<double>(meter::limit());
  if (comm_.device().is_cuda()) {
    m.reserved_bytes = group_.max(static_cast<double>(now.reserved_peak));
    m.device_bytes = group_.max(static_cast<double>(device_used_bytes(comm_.device())));
  }
}

}  // namespace shardmark
