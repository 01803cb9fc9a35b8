// Begins and ends the traces between two steps.
#include "train/traces.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "device/device.h"

namespace shardmark {
namespace {

constexpr int64_t kTracedSteps = 3, kStepsBefore = 5;

}  // namespace

Traces::Traces(std::string directory, int64_t first_step, int64_t num_steps, const HostGroup& group,
               TrainingSetup& setup, at::Device device, Lines& lines)
    : directory_(std::move(directory)), group_(group), setup_(setup), device_(device), lines_(lines) {
  profile_to_ = std::min(first_step + kStepsBefore + kTracedSteps, num_steps);
  profile_from_ = std::max(first_step, profile_to_ - kTracedSteps);
  record_to_ = profile_from_ > first_step ? profile_from_ : profile_to_;
  record_from_ = std::max(first_step, record_to_ - kTracedSteps);
}

// The profiler waits for the device before and after, so that its trace holds whole steps.
void Traces::between_steps(int64_t num_done) {
  if (directory_.empty()) return;
  if (num_done == record_to_ && recorder_) end_recorder(num_done);
  if (num_done == profile_to_ && profile_) end_profile(num_done);
  if (num_done == record_from_ && record_from_ < record_to_) {
    group_.barrier();
    setup_.executor->set_details(&recorder_.emplace(device_, StepRecorder::Detail::instructions));
  }
  if (num_done == profile_from_ && profile_from_ < profile_to_) {
    synchronize(device_);
    profile_.emplace();
  }
}

void Traces::end_recorder(int64_t num_done) {
  setup_.executor->set_details(nullptr);
  const std::string path = directory_ + "/steps.json";
  const std::string trouble =
      write_trace(group_, setup_.model->table(), *recorder_, setup_.state->program().strategy, path);
  recorder_.reset();
  if (!trouble.empty())
    trouble_ = "the trace of the steps was not written: " + trouble;
  else
    lines_.note(fmt::format("steps {} to {}: all ranks in {}", record_from_ + 1, num_done, path));
}

void Traces::end_profile(int64_t num_done) {
  synchronize(device_);
  const std::string trouble = profile_->stop(fmt::format("{}/rank-{}.json", directory_, group_.rank()));
  profile_.reset();
  if (!trouble.empty()) log_warning("the trace was not written: " + trouble);
  const int64_t failed = group_.max(trouble.empty() ? int64_t{-1} : group_.rank());
  if (failed >= 0)
    trouble_ = fmt::format("the trace of rank {} was not written", failed);
  else
    lines_.note(fmt::format("steps {} to {}: traces written to {}", profile_from_ + 1, num_done, directory_));
}

}  // namespace shardmark
