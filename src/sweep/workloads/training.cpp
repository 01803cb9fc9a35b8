// Set-up, steps and results of a training point.
//
// A point is verified before it is timed: its first steps against training on one device (reference.h), and
// the replicated state of ranks against each other, bit by bit. The losses show wrong forward passes and
// data, the gradient norms show wrong reductions, and the second step shows wrong updates.
//
// The ablations of a point are its steps without communication, and its communication without computing.
// Together with the time of a normal step they show how much of the communication is hidden behind computing:
// overlap = 1 - (step - compute only) / communication only. This does not depend on how a step is divided
// into phases.
#include "sweep/workloads/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "base/log.h"
#include "device/device.h"
#include "device/meter.h"
#include "strategies/program_series.h"
#include "sweep/workloads/reference.h"
#include "sweep/workloads/saving.h"
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
  if (t.save.name != "none") Saving::check(point_, group_.rank());
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

// The dimensions of the layout over which ranks exchange inside blocks or between stages.
std::vector<specs::Dimension> Training::inside_blocks() const {
  std::vector<specs::Dimension> all;
  const specs::Mesh mesh = specs::mesh_of(point_);
  for (const auto& [dimension, ranks] : {std::pair(specs::Dimension::tensor, mesh.tensor),
                                         {specs::Dimension::context, mesh.context},
                                         {specs::Dimension::expert, mesh.expert},
                                         {specs::Dimension::pipeline, mesh.pipeline}})
    if (ranks > 1) all.push_back(dimension);
  return all;
}

std::vector<std::vector<double>> Training::end_window() {
  const std::vector<specs::Dimension> dimensions = inside_blocks();
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
  for (const specs::Dimension dimension : inside_blocks())
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

// Adds up the loads of all ranks, or of those that have the first copy of the model.
std::vector<double> Training::expert_load_of_ranks(bool of_first_copy) const {
  const std::vector<double> load = expert_load(*setup_.model);
  if (load.empty()) return load;
  const specs::Mesh mesh = specs::mesh_of(point_);
  const std::vector<double> all = group_.gather(load);
  std::vector<double> sum(load.size());
  for (size_t i = 0; i < all.size(); ++i)
    if (!of_first_copy || mesh.data_index_of(static_cast<int64_t>(i / sum.size())) == 0)
      sum[i % sum.size()] += all[i];
  return sum;
}

void Training::collect_expert_load(Record& record) const {
  std::vector<double> load = expert_load_of_ranks(/*of_first_copy=*/false);
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

namespace {

// Most steps of an ablation, which should not take longer than the measurement itself.
constexpr int64_t kMostSteps = 10;

// fp32 sums in another order differ by rounding, and batch norm amplifies the difference. Low precision is
// compared with fp32. Ranks that have a part of a matrix find other scales for it in fp8. A wrong scale of
// gradients or a missing reduction makes a much larger difference than these bounds.
double tolerance(const TrainingPoint& t) {
  if (t.products.name == "fp8" && t.tensor * t.context * t.expert > 1) return 5e-2;
  return t.precision == "fp64" ? 1e-8 : t.precision == "fp32" ? 1e-3 : 3e-2;
}

double relative_difference(double value, double expected) {
  return std::abs(value - expected) / std::max(std::abs(expected), 1e-300);
}

// A lower bound of the share of tokens that went to other experts than on one device. Only the load of each
// expert is compared, so tokens that changed places are not seen.
double moved_share(const std::vector<double>& load, const std::vector<double>& expected) {
  double moved = 0, all = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    moved += std::abs(load[i] - expected[i]) / 2;
    all += expected[i];
  }
  return all > 0 ? moved / all : 0;
}

// The first value that is not finite: 2 x step for a loss, 2 x step + 1 for a gradient norm, 2 x
// kReferenceSteps if all are finite.
int64_t first_not_finite(const std::vector<double>& losses, const std::vector<double>& norms) {
  for (size_t step = 0; step < losses.size(); ++step) {
    if (!std::isfinite(losses[step])) return 2 * static_cast<int64_t>(step);
    if (!std::isfinite(norms[step])) return 2 * static_cast<int64_t>(step) + 1;
  }
  return 2 * kReferenceSteps;
}

std::string not_finite_text(int64_t where) {
  return fmt::format("the {} is not finite at step {}", where % 2 == 0 ? "loss" : "gradient norm",
                     where / 2 + 1);
}

// The sum of all bits of the replicated state. It is equal on all ranks if the state is, and almost surely
// differs if the state differs.
int64_t checksum(const std::vector<at::Tensor>& tensors) {
  int64_t sum = 0;
  for (const auto& tensor : tensors) sum += item<int64_t>(tensor.view(at::kInt).sum(at::kLong));
  return sum;
}

}  // namespace

Check Training::verify() {
  const bool replicas = setup_.state->program().strategy == "single" && point_.data_ranks() > 1;
  setup_.state->publish();
  const ReferenceRun reference = shared_reference(replicas ? 0 : -1);
  meter::reset_peak();  // the memory of the reference does not count

  // Dropout is off: ranks would drop other elements than one device does.
  const bool draws = std::exchange(setup_.model->draws, false);
  std::vector<double> losses, norms;
  if (setup_.model->expert_load.defined()) setup_.model->expert_load.zero_();
  for (int64_t step = 0; step < kReferenceSteps; ++step) {
    const double begin = now_s();
    const StepResult result = setup_.executor->step([this] { return loader_->next(); }, /*wants_norm=*/true);
    const double own = item<double>(result.loss);
    losses.push_back(replicas ? loss_of_own_copy(own) : group_.sum(own) / static_cast<double>(point_.ranks));
    norms.push_back(item<double>(result.gradient_norm));
    if (step == 0) first_step_s_ = now_s() - begin;  // the values above have waited for the device
  }
  setup_.model->draws = draws;
  setup_.executor->recorder().take();  // these steps belong to no window
  if (group_.max(static_cast<int64_t>(failure() != nullptr)) != 0) return {};

  const std::vector<double> load = expert_load_of_ranks(replicas);

  // This comes before any comparison: a difference from NaN is NaN, and the bits of NaNs may differ between
  // ranks.
  if (const std::string trouble = divergence(losses, norms, reference); !trouble.empty())
    return {true, "wrong: " + trouble, Measures::kNone};

  const specs::Mesh mesh = specs::mesh_of(point_);
  const bool replicas_are_equal =
      is_equal_within(mesh.copies(), checksum(setup_.state->replicated())) &&
      is_equal_within(mesh.expert_copies(), checksum(setup_.state->of_own_experts()));
  // The temporary copies for the checksum do not count as the point's memory either. A graph was captured
  // during these steps, and its replays allocate nothing, so then the peak stays.
  if (!point_.training.graph) meter::reset_peak();
  if (!replicas_are_equal) return {true, "wrong: replicas differ between ranks", Measures::kNone};
  if (!reference.impossible.empty())
    return {false, "unverified: " + reference.impossible, Measures::kNone, reference.is_too_large};

  Check check{false, "equal to one device", 0};
  for (size_t step = 0; step < losses.size(); ++step) {
    for (const double difference : {relative_difference(losses[step], reference.losses[step]),
                                    relative_difference(norms[step], reference.norms[step])})
      check.error = std::max(check.error, difference);
  }
  // With independent replicas only rank 0 trained on the data of the reference.
  check.error = group_.max(group_.rank() == 0 ? check.error : 0.0);
  if (setup_.state->program().lossy) return lossy_check(losses, reference.losses);
  const double moved = group_.max(group_.rank() == 0 ? moved_share(load, reference.expert_load) : 0);
  if (moved > tolerance(point_.training))
    return {true,
            fmt::format("wrong: {:.2g} of the choices of experts differ from one device (allowed {:.0e})",
                        moved, tolerance(point_.training)),
            moved};
  if (moved > 0) check.text += fmt::format(", but for {:.2g} of the choices of experts", moved);
  if (check.error > tolerance(point_.training)) {
    check.wrong = true;
    check.text =
        fmt::format("wrong: loss or gradient norm differs from one device by {:.2g} (allowed {:.0e})",
                    check.error, tolerance(point_.training));
  }
  return check;
}

// Says where the first steps are not finite, here or on one device; empty if all are finite. The same on all
// ranks.
std::string Training::divergence(const std::vector<double>& losses, const std::vector<double>& norms,
                                 const ReferenceRun& reference) const {
  constexpr int64_t kNowhere = 2 * kReferenceSteps;
  const int64_t here = -group_.max(-first_not_finite(losses, norms));
  const int64_t there = first_not_finite(reference.losses, reference.norms);
  if (here == kNowhere && there == kNowhere) return {};
  if (here == kNowhere) return "on one device " + not_finite_text(there) + ", but it is here";
  const char* const advice = "training diverges, and a smaller learning rate may help";
  if (!reference.impossible.empty()) return fmt::format("{}: {}", not_finite_text(here), advice);
  if (there == here) return fmt::format("{}, as on one device: {}", not_finite_text(here), advice);
  return fmt::format("{}; on one device {}", not_finite_text(here),
                     there == kNowhere ? "it is finite" : not_finite_text(there));
}

// With a lossy reduction, results differ from the reference by design. Only the first loss, which no
// reduction has affected yet, must be equal. The difference of the last loss is reported, however large it
// is.
Check Training::lossy_check(const std::vector<double>& losses, const std::vector<double>& expected) const {
  if (relative_difference(losses.front(), expected.front()) > tolerance(point_.training))
    return {true, "wrong: the first loss differs from one device", Measures::kNone};
  const double error = relative_difference(losses.back(), expected.back());
  return {false,
          fmt::format("lossy: the loss differs from one device by {:.2g} after {} step{}", error,
                      losses.size() - 1, losses.size() == 2 ? "" : "s"),
          error};
}

// Compares checksums among the ranks that hold the same part of the model.
bool Training::is_equal_within(const specs::ProcessGroup& ranks, int64_t sum) const {
  const HostGroup own = group_.split(static_cast<int>(ranks.number_of(comm_.rank())), comm_.rank());
  const bool differs = own.max(sum) != -own.max(-sum);
  return group_.max(static_cast<int64_t>(differs)) == 0;
}

double Training::loss_of_own_copy(double own) const {
  const std::vector<double> all = group_.gather(std::vector<double>{own});
  double sum = 0;
  for (size_t rank = 0; rank < all.size(); ++rank)  // only the copy of rank 0 counts
    if (specs::mesh_of(point_).data_index_of(static_cast<int64_t>(rank)) == 0) sum += all[rank];
  return sum / static_cast<double>(point_.ranks_per_copy());
}

// Rank 0 trains the reference unless an earlier point needed the same one; the other ranks wait for the
// result.
ReferenceRun Training::shared_reference(int64_t replica) {
  const std::string key = reference_key(point_, replica);
  heartbeat_.stage(kReferenceStage);
  if (group_.rank() == 0 && !references_.contains(key)) {
    references_[key] = run_reference(point_, *source_, comm_.device(), replica, heartbeat_);
    // LibTorch's allocator would keep the memory of the reference, which NCCL could not use.
    empty_caches(comm_.device());
  }
  heartbeat_.meet(kReferenceStage);
  group_.sleep_barrier();
  heartbeat_.stage("verification");
  const ReferenceRun run = group_.rank() == 0 ? references_[key] : ReferenceRun();
  return {group_.broadcast(run.losses, 0), group_.broadcast(run.norms, 0),
          group_.broadcast(run.expert_load, 0), group_.broadcast(run.impossible, 0),
          group_.broadcast(static_cast<int64_t>(run.is_too_large), 0) != 0};
}

// Returns the seconds of `times` steps on this rank; one more before them is not counted. `details` records
// all steps, including that one.
std::vector<double> Training::timed(int64_t times, const std::function<void()>& step, StepRecorder* details) {
  Executor& executor = *setup_.executor;
  executor.set_details(details);
  group_.barrier();
  for (int64_t i = 0; i <= times; ++i) step();
  executor.recorder().end();
  executor.set_details(nullptr);
  std::vector<double> seconds;
  for (const RecordedStep& one : executor.recorder().take()) seconds.push_back(one.seconds());
  seconds.erase(seconds.begin());
  return seconds;
}

// Writes a trace of three steps, instruction by instruction, of all ranks into one file.
void Training::trace_steps(const std::function<void()>& train) {
  constexpr int64_t kTracedSteps = 3;
  StepRecorder recorder(comm_.device(), StepRecorder::Detail::instructions);
  static_cast<void>(timed(kTracedSteps - 1, train, &recorder));
  const std::string trouble = write_trace(group_, setup_.model->table(), recorder, to_text(point_), trace_);
  if (group_.rank() == 0 && !trouble.empty()) log_warning("the trace was not written: " + trouble);
}

// Times steps without communication, also block by block.
std::vector<double> Training::timed_compute(Record& record, int64_t times,
                                            const std::function<void()>& train) {
  StepRecorder recorder(comm_.device(), StepRecorder::Detail::blocks);
  setup_.executor->set_ablation(Ablation::compute_only);
  std::vector<double> seconds = timed(times, train, &recorder);
  setup_.executor->set_ablation(Ablation::none);
  const std::vector<RecordedStep> steps = recorder.take();
  const auto keep = [&](const char* name, const std::vector<double>& own) {
    const auto all = group_.gather(own);
    const auto columns = static_cast<int64_t>(all.size()) / point_.ranks;
    if (group_.rank() == 0 && columns > 0) record.samples.push_back({name, point_.ranks, columns, all});
  };
  keep("block_time", block_medians(steps, setup_.whole.blocks.size()));
  keep("parameter_backward_time", parameter_medians(steps, setup_.whole.blocks.size()));
  return seconds;
}

Verdict Training::measure_checkpoints(Record& record) {
  if (point_.training.save.name == "none") return {};
  Saving saving(group_, setup_, heartbeat_,
                [this] { setup_.executor->step([this] { return loader_->next(); }); });
  Verdict verdict;
  const Verdict computed = agreed_in_step(
      group_, heartbeat_, "checkpoints", [&] { verdict = saving.measure(record); },
      [this] { return failure(); });
  return computed.ok() ? verdict : computed;
}

// The learning rate is 0, so parameters keep their values, and steps without communication compute on values
// of the usual size: a group that would have been gathered still holds what was gathered last. Nothing trains
// after this.
void Training::measure_ablations(Record& record) {
  Executor& executor = *setup_.executor;
  setup_.state->optimizer().set_learning_rate(0);
  const auto train = [&] { executor.step([this] { return loader_->next(); }); };
  const strategies::Program& program = setup_.state->step(setup_.guard->needs_norm()).program();
  if (group_.rank() == 0 && point_.training.pipeline == 1)
    record.samples.push_back(strategies::to_series(program));
  if (!point_.training.graph) static_cast<void>(timed(0, train));
  if (!trace_.empty()) trace_steps(train);
  // A CUDA graph is replayed as a whole. It cannot be measured block by block, and its captured learning rate
  // stays what it was. A point that uses graphs does not communicate either.
  if (point_.training.graph) return;
  const int64_t times = std::clamp<int64_t>(point_.sampling.min_steps, 1, kMostSteps);
  const auto compute = group_.gather(timed_compute(record, times, train));
  // All ranks must take the same decision here, because operations are collective.
  const bool communicates = !program.calls.empty() && comm_.size() > 1;
  std::vector<double> communication;
  executor.set_ablation(Ablation::communication_only);
  if (communicates) communication = group_.gather(timed(times, train));
  executor.set_ablation(Ablation::none);
  if (group_.rank() != 0 || !communicates) return;
  record.samples.push_back({"compute_only", point_.ranks, times, compute});
  record.samples.push_back({"communication_only", point_.ranks, times, communication});
}

}  // namespace shardmark
