// Runs Kineto through the same calls as torch.profiler, and begins and ends the traces between two steps.
#include "train/traces.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/log.h"
#include "device/device.h"

namespace shardmark {
namespace {

namespace kineto = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

// Kineto does not report a write that failed. A trace that was cut short lacks the closing brace on its last
// line.
bool is_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  if (size < 2) return false;
  file.seekg(-2, std::ios::end);
  std::string end(2, '\0');
  file.read(end.data(), 2);
  return end == "\n}";
}

}  // namespace

Profile::Profile() {
  std::set<ActivityType> activities = {ActivityType::CPU};
  if (num_gpus() > 0)
    activities.insert(ActivityType::CUDA);
  else
    // Silences errors, because Kineto reports a missing GPU as one.
    ::setenv("KINETO_LOG_LEVEL", "5", /*overwrite=*/0);
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO,
                                                     /*report_input_shapes=*/false, /*profile_memory=*/true);
  kineto::prepareProfiler(config, activities);
  kineto::enableProfiler(
      config, activities,
      {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE});
}

Profile::~Profile() {
  if (running_) kineto::disableProfiler();
}

// Kineto itself writes to path.tmp and renames that file.
std::string Profile::stop(const std::string& path) {
  running_ = false;
  std::string trouble;
  try {
    kineto::disableProfiler()->save(path);
    if (!is_whole(path)) trouble = path + ": could not be written completely; is the disk full?";
  } catch (const std::exception& error) {
    trouble = error.what();
  }
  std::error_code none;
  if (!trouble.empty())
    for (const char* ending : {"", ".tmp"}) std::filesystem::remove(path + ending, none);
  return trouble;
}

namespace {

constexpr int64_t kTracedSteps = 3, kStepsBefore = 5;

}  // namespace

Traces::Traces(std::string directory, int64_t first_step, int64_t num_steps, const HostGroup& group,
               TrainingSetup& setup, at::Device device, Lines& lines)
    : directory_(std::move(directory)), group_(group), setup_(setup), device_(device), lines_(lines) {
  // The profiler's steps come after kStepsBefore others, or at the end of a shorter run. The recorder's
  // steps lie right before them if there are any, so that the profiler does not slow them down.
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
