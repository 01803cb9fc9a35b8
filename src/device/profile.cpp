// Kineto, through the same calls as torch.profiler.
#include "device/profile.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "device/device.h"

namespace shardmark {
namespace {

namespace kineto = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

}  // namespace

Profile::Profile() {
  std::set<ActivityType> activities = {ActivityType::CPU};
  if (num_gpus() > 0)
    activities.insert(ActivityType::CUDA);
  else
    ::setenv("KINETO_LOG_LEVEL", "5", /*overwrite=*/0);  // beyond errors: it takes a missing GPU for one
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

std::string Profile::stop(const std::string& path) {
  running_ = false;
  try {
    const std::string beside = path + ".part";  // Kineto names no error of a file
    kineto::disableProfiler()->save(beside);
    std::filesystem::rename(beside, path);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace shardmark
