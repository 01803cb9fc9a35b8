// Runs Kineto through the same calls as torch.profiler.
#include "device/profile.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

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

}  // namespace shardmark
