// Requests to stop a run, checks of what it will write, its steps, and what happens between them.
#include "train/run.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "base/node.h"
#include "base/units.h"
#include "base/utc.h"
#include "comm/in_step.h"
#include "device/device.h"
#include "device/meter.h"
#include "device/timeline.h"
#include "schema/step_statistics.h"
#include "sweep/environment.h"
#include "sweep/workloads/training_results.h"

namespace shardmark {
namespace {

// The signal handler does nothing but set this.
volatile std::sig_atomic_t requested = 0;

void note(int) { requested = 1; }

}  // namespace

void catch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) ::sigaction(signal, &action, nullptr);
}

bool stop_requested() { return requested != 0; }

namespace {

namespace fs = std::filesystem;

// Checks the name of the temporary file, too, which is written first.
void require_short_name(const std::string& file, const std::string& flag) {
  if (fs::path(path_beside(file)).filename().string().size() > NAME_MAX)
    throw UsageError(fmt::format("{}: {}", flag, std::strerror(ENAMETOOLONG)));
}

bool same_disk(const std::string& a, const std::string& b) {
  struct stat of_a, of_b;
  return ::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0 && of_a.st_dev == of_b.st_dev;
}

// One checkpoint is written after the last step, whatever the interval.
int64_t num_checkpoints(const TrainingOptions& options, int64_t first_step) {
  const int64_t every = options.run.checkpoint_every, last = options.num_steps;
  if (first_step >= last) return 0;
  return every == 0 ? 1 : (last + every - 1) / every - first_step / every;
}

}  // namespace

void check_outputs(const TrainingOptions& options, int64_t first_step) {
  const std::string& checkpoints = options.run.checkpoint;
  int64_t kept_bytes = 0;  // growth of the checkpoints until the weights are written
  if (!checkpoints.empty()) {
    require_writable_directory(checkpoints, "--checkpoint");
    const auto growth = Checkpoints(checkpoints).growth(num_checkpoints(options, first_step));
    const int64_t bytes = state_bytes(options.point, State::all);
    require_room(checkpoints, growth.most * bytes, "--checkpoint", "the checkpoints");
    kept_bytes = growth.last * bytes;
  }
  if (!options.run.trace.empty()) require_writable_directory(options.run.trace, "--trace");
  if (options.run.save_weights.empty()) return;
  require_regular(options.run.save_weights);
  require_short_name(options.run.save_weights, "--save-weights");
  const std::string weights = follow_links(options.run.save_weights), directory = directory_of(weights);
  require_writable_directory(directory, "--save-weights");
  remove_abandoned(weights);  // it takes up space
  const bool shared = !checkpoints.empty() && same_disk(checkpoints, directory);
  require_room(directory, state_bytes(options.point, State::weights) + (shared ? kept_bytes : 0),
               "--save-weights", shared ? "checkpoints and weights" : "the weights");
}

namespace {

// The largest number of elements that ranks move at once when they read or write a state.
int64_t largest_moved(const TrainingSetup& setup) {
  int64_t largest = 0;
  for (const auto& group : setup.whole.groups) largest = std::max(largest, group.numel());
  for (const auto& entry : setup.state->carried()) largest = std::max(largest, entry.own.numel());
  return largest;
}

TrainingSetup& allocated(TrainingSetup& setup, int64_t first_step) {
  setup.allocate(first_step);
  return setup;
}

double datasheet_flops(const Point& point, const Resources& resources) {
  const auto found = resources.datasheet_flops.find(point.training.product_type());
  return found == resources.datasheet_flops.end() ? Measures::kNone : found->second;
}

bool every(int64_t steps, int64_t done) { return steps > 0 && done % steps == 0; }

}  // namespace

Run::Run(const TrainingOptions& options, const Start& start, const HostGroup& group, TrainingSetup& setup,
         const Resources& resources, const DataSource& source, Heartbeat& heartbeat, RunStudy* study)
    : options_(options),
      group_(group),
      comm_(setup.comm),
      source_(source),
      heartbeat_(heartbeat),
      study_(study),
      setup_(allocated(setup, start.step)),
      resources_(resources),
      loader_(source, DistributedSampler(options.point, source.size(), setup.data_rank()), comm_.device(),
              prefetch_depth(resources.num_cores, resources.local_ranks, resources.threads_per_rank),
              start.step),
      lines_(group.rank() == 0, options_.point, setup_.whole.sample.tokens(),
             flops_per_step(options.point, setup_.whole), datasheet_flops(options.point, resources),
             setup_.guard->loss_scale().defined()),
      first_step_(start.step),
      num_done_(start.step),
      traces_(options.run.trace, start.step, options.num_steps, group, setup_, comm_.device(), lines_) {
  // Allocates once what reading or writing a state will need for a moment. If memory is short, the run fails
  // here, where a rank may throw alone.
  if (start.loads || !options.run.checkpoint.empty() || !options.run.save_weights.empty())
    at::empty({largest_moved(setup_)},
              at::TensorOptions(comm_.device())
                  .dtype(options.point.training.precision == "fp64" ? at::kDouble : at::kFloat));
  curves_.first_step = first_step_;
  if (study_ != nullptr) curves_ = study_->before();
  curves_.step_s.resize(static_cast<size_t>(group.size()));
  setup_.executor->set_heartbeat(&heartbeat);
  meter::reset_peak();
}

void Run::load(const Start& start) {
  const auto place = [this] { return heartbeat_.place(); };
  if (!start.loads) return in_step(group_.size(), place, [this] { setup_.state->publish(); });
  const meter::Strict lenient(false);  // groups move in collectives, so nothing may throw
  const double begin_s = now_s();
  load_state(setup_, comm_, start.what, start.file ? &*start.file : nullptr);
  if (start.what == State::all) curves_.checkpoint_read_s.push_back(start.checked_s + now_s() - begin_s);
}

Record Run::train() {
  Record record;
  record.point = options_.point;
  record.id = point_id(options_.point);
  record.started = utc_now();
  if (study_ != nullptr) record = study_->record();
  const double begin_s = now_s();
  const int64_t switches_before = involuntary_switches();
  if (first_step_ < options_.num_steps) lines_.head();
  Verdict verdict;
  bool stopped = false;
  traces_.between_steps(num_done_);
  while (verdict.ok() && num_done_ < options_.num_steps) {
    stopped = group_.max(static_cast<int64_t>(stop_requested())) != 0;  // one decision of all ranks
    if (stopped) break;
    // What follows the step is decided from numbers that are the same on all ranks, because settling,
    // evaluating and writing are collective.
    const int64_t done = num_done_ + 1;
    const bool last = done == options_.num_steps;
    const bool evaluates = options_.run.eval_batches != 0 && (last || every(options_.run.eval_every, done));
    const bool saves = last || every(options_.run.checkpoint_every, done);
    const bool settles = evaluates || saves || every(options_.run.log_every, done);
    step(settles);
    traces_.between_steps(num_done_);
    if (!settles) continue;
    verdict = settle();
    if (verdict.ok() && (evaluates || saves)) verdict = check_state();
    if (verdict.ok() && evaluates) verdict = evaluate();
    if (verdict.ok() && saves) write_checkpoint();
  }
  if (stopped && !pending_.losses.empty()) verdict = settle();
  if (stopped && verdict.ok()) verdict = check_state();
  if (stopped && verdict.ok()) {
    write_checkpoint();
    verdict.reason = fmt::format("stopped by a signal after step {} of {}", num_done_, options_.num_steps);
  } else if (verdict.ok()) {
    write_weights();
  }
  record.duration_s = now_s() - begin_s;
  record.measures.preemptions_per_s =
      group_.max(static_cast<double>(involuntary_switches() - switches_before) /
                 (record.duration_s * static_cast<double>(resources_.threads_per_rank)));
  finish(record, verdict);
  return record;
}

// A step of a GPU is only enqueued here. Losses and norms stay on the device until settle(), so that the
// host does not wait for each step.
void Run::step(bool wants_norm) {
  comm_.set_timeline(&setup_.executor->recorder().timeline());
  const double rate = options_.schedule.at(num_done_);
  setup_.state->optimizer().set_learning_rate(rate);
  const StepResult result = setup_.executor->step([this] { return loader_.next(); }, wants_norm);
  pending_.losses.push_back(result.loss);
  pending_.norms.push_back(result.gradient_norm);
  pending_.rates.push_back(rate);
  ++num_done_;
}

Verdict Run::settle() {
  heartbeat_.stage("waiting for the device");
  setup_.executor->recorder().end();
  const auto steps = setup_.executor->recorder().take();
  comm_.set_timeline(nullptr);  // what follows does not belong to a step
  Verdict computed = agree(group_, attempt([this] {
                             if (setup_.executor->failure())
                               std::rethrow_exception(setup_.executor->failure());
                           }));
  if (!computed.ok()) return computed;

  const auto count = std::ssize(pending_.losses);
  const at::Tensor on_host = at::stack(pending_.losses).to(at::kCPU, at::kDouble);
  // Each rank sends the losses of its pending steps and then their durations: keep() takes them apart. A
  // rank's loss is the mean over its own samples.
  std::vector<double> values(on_host.data_ptr<double>(), on_host.data_ptr<double>() + count);
  Verdict verdict = check_losses(values, count);
  for (const RecordedStep& step : steps) values.push_back(step.seconds());
  const auto all = group_.gather(values);
  const double peak_bytes = group_.max(static_cast<double>(meter::read().peak));
  if (group_.rank() == 0) {
    keep(all, count);
    if (const at::Tensor& scale = setup_.guard->loss_scale(); scale.defined()) {
      curves_.loss_scale = scale.item<double>();
      curves_.num_skipped = setup_.guard->num_skipped();
    }
    lines_.step(num_done_, curves_, static_cast<size_t>(count), peak_bytes);
    if (study_ != nullptr) study_->follow(curves_);
  }
  pending_ = {};
  return verdict;
}

// Finds the first step with a loss that is not finite, and the lowest rank on which it occurred. After that
// step the losses of all ranks are wrong.
Verdict Run::check_losses(const std::vector<double>& losses, int64_t count) const {
  const int64_t before = num_done_ - count;
  int64_t first = num_done_;
  for (int64_t i = count - 1; i >= 0; --i)
    if (!std::isfinite(losses[static_cast<size_t>(i)])) first = before + i;
  const int64_t size = group_.size();
  // Step and rank are packed into one number, so that one maximum of negative numbers finds the earliest
  // step and, for that step, the lowest rank. Ranks without such a loss send a step behind the last one.
  const int64_t worst = -group_.max(-(first * size + group_.rank()));
  const int64_t step = worst / size;
  if (step < num_done_)
    return {Outcome::failed,
            fmt::format("the loss is not finite: step {}, first on rank {}", step + 1, worst % size)};
  const at::Tensor& norm = pending_.norms.back();
  const bool recovers = setup_.guard->loss_scale().defined();  // fp16 skips such a step
  if (norm.defined() && !recovers && !std::isfinite(norm.item<double>()))
    return {Outcome::failed, fmt::format("the gradient norm is not finite: step {}", num_done_)};
  return {};
}

// Checks the parameters themselves, because a step's loss and gradient do not show what its own update did.
Verdict Run::check_state() {
  return agreed(group_, heartbeat_, "looking for a NaN", [&] {
    if (!setup_.state->is_finite())
      throw UsageError(
          fmt::format("parameters or optimizer state are not finite after step {}: they are not "
                      "written; choose a smaller learning rate or weight decay",
                      num_done_));
  });
}

// `all` has a row for each rank: the losses of the steps, then their durations. Ranks have equally many
// samples in a step, so that the loss of a step is the plain mean over ranks.
void Run::keep(const std::vector<double>& all, int64_t count) {
  const auto ranks = static_cast<size_t>(group_.size());
  const auto steps = static_cast<size_t>(count);
  for (size_t i = 0; i < steps; ++i) {
    double sum = 0;
    for (size_t rank = 0; rank < ranks; ++rank) {
      sum += all[rank * 2 * steps + i];
      curves_.step_s[rank].push_back(all[rank * 2 * steps + steps + i]);
    }
    curves_.loss.push_back(sum / static_cast<double>(ranks));
    const at::Tensor& norm = pending_.norms[i];
    curves_.gradient_norm.push_back(norm.defined() ? norm.item<double>() : Measures::kNone);
  }
  curves_.learning_rate.insert(curves_.learning_rate.end(), pending_.rates.begin(), pending_.rates.end());
}

Verdict Run::evaluate() {
  Evaluation result;
  const auto evaluate = [&] {
    result = shardmark::evaluate(*setup_.model, *setup_.executor, comm_, group_, source_,
                                 options_.point.training.batch_size,
                                 options_.run.eval_batches.value_or(std::numeric_limits<int64_t>::max()));
  };
  const auto failure = [this] { return setup_.executor->failure(); };
  Verdict verdict = agreed_in_step(group_, heartbeat_, "evaluation", evaluate, failure);
  if (!verdict.ok()) return verdict;
  if (!std::isfinite(result.loss))  // the same on all ranks
    return {Outcome::failed, fmt::format("the held-out loss is not finite: step {}", num_done_)};
  curves_.held_out_at.push_back(static_cast<double>(num_done_));
  curves_.held_out_loss.push_back(result.loss);
  curves_.accuracy.push_back(result.accuracy);
  lines_.evaluation(num_done_, curves_);
  return {};
}

// A step gets one checkpoint, and none is written before a step was done. The study is written first and
// durably: a later launch may go on from this checkpoint, and then needs the curves up to here. An error is
// known to rank 0 alone. It is only reported, because the run itself is not impaired.
void Run::write_checkpoint() {
  if (options_.run.checkpoint.empty() || checkpoint_at_ == num_done_ || num_done_ == first_step_) return;
  heartbeat_.stage("checkpoint");
  if (study_ != nullptr) study_->secure(curves_);
  const double begin_s = now_s();
  const std::string trouble =
      Checkpoints(options_.run.checkpoint).write(num_done_, options_.identity, setup_, group_.rank() == 0);
  checkpoint_at_ = num_done_;
  ++unwritten_.num_tried;
  if (!trouble.empty()) {
    ++unwritten_.num_checkpoints;
    unwritten_.last_step = num_done_;
    unwritten_.checkpoint_trouble = trouble;
    return log_warning(
        fmt::format("the checkpoint of step {} was not written, earlier ones stay: {}", num_done_, trouble));
  }
  curves_.checkpoint_write_s.push_back(now_s() - begin_s);
  lines_.note(fmt::format("step {}: checkpoint written in {}", num_done_,
                          format_seconds(curves_.checkpoint_write_s.back())));
}

void Run::write_weights() {
  if (options_.run.save_weights.empty()) return;
  heartbeat_.stage("writing the weights");
  unwritten_.weights_trouble =
      write_state(options_.run.save_weights, setup_, State::weights, {{"format", "pt"}}, group_.rank() == 0);
}

std::string Run::unwritten() const {
  const auto& [tried, failed, last_step, checkpoint_trouble, weights_trouble] = unwritten_;
  std::string text;
  if (failed > 0)
    text = failed == 1
               ? fmt::format("the checkpoint of step {} was not written: {}", last_step, checkpoint_trouble)
               : fmt::format("{} of {} checkpoints were not written, the last of them at step {}: {}", failed,
                             tried, last_step, checkpoint_trouble);
  if (!weights_trouble.empty())
    text += (text.empty() ? "" : "; ") + ("the weights were not written: " + weights_trouble);
  if (!traces_.trouble().empty()) text += (text.empty() ? "" : "; ") + traces_.trouble();
  return text;
}

void Run::finish(Record& record, const Verdict& verdict) {
  record.outcome = verdict.outcome;
  record.reason = reason_of(verdict, options_.point);
  auto& m = record.measures;
  m.peak_bytes = group_.max(static_cast<double>(meter::read().peak));
  m.first_step = curves_.first_step;
  m.num_skipped = setup_.guard->num_skipped();
  if (group_.rank() != 0 || curves_.loss.empty()) return;
  lines_.end(num_done_, curves_);
  m.loss_first = curves_.loss.front();
  m.loss_last = curves_.loss.back();
  m.gradient_norm = curves_.gradient_norm.back();
  if (!curves_.accuracy.empty()) {
    m.held_out_loss = curves_.held_out_loss.back();
    m.accuracy = curves_.accuracy.back();
  }
  record.samples = curves_.series();
  summarize(record);
  derive_speed(record, setup_.whole, resources_, curves_.num_steps(), curves_.slowest_s(curves_.loss.size()));
}

}  // namespace shardmark
