// Turns exceptions into verdicts, and the verdicts of all ranks into one decision.
#include "sweep/verdict.h"

#include <c10/util/Exception.h>

#include "base/error.h"
#include "base/log.h"
#include "comm/in_step.h"
#include "comm/nccl/lost_gpu.h"
#include "device/meter.h"
#include "specs/mesh.h"

namespace shardmark {
namespace {

// Messages of CUDA, cuBLAS and cuDNN about allocations outside LibTorch's allocator, such as workspaces and
// modules that are loaded at their first call.
bool is_out_of_memory(const std::string& text) {
  for (const char* said :
       {"CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"})
    if (text.find(said) != std::string::npos) return true;
  return false;
}

std::string rank_text(int rank) { return "rank " + std::to_string(rank); }

}  // namespace

Verdict attempt(const std::function<void()>& body) {
  try {
    body();
    meter::throw_on_excess();
    return {};
  } catch (const OutOfMemory& error) {
    return {Outcome::out_of_memory, error.what()};
  } catch (const c10::OutOfMemoryError& error) {
    return {Outcome::out_of_memory, first_line(error.what_without_backtrace())};
  } catch (const std::bad_alloc&) {
    return {Outcome::out_of_memory, "the system could not allocate memory"};
  } catch (const SystemError& error) {
    end_job_if_gpu_is_lost(error.what());
    throw;
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    end_job_if_gpu_is_lost(text);
    return {is_out_of_memory(text) ? Outcome::out_of_memory : Outcome::failed, first_line(text)};
  } catch (const std::exception& error) {
    end_job_if_gpu_is_lost(error.what());
    return {Outcome::failed, first_line(error.what())};
  }
}

Verdict agree(const HostGroup& group, const Verdict& mine) {
  const int64_t size = group.size();
  // The number orders verdicts by severity, then by the lowest rank, so one maximum finds both.
  const int64_t worst = group.max(static_cast<int64_t>(mine.outcome) * size + (size - 1 - group.rank()));
  const auto outcome = static_cast<Outcome>(worst / size);
  if (outcome == Outcome::ok) return {};
  const auto who = static_cast<int>(size - 1 - worst % size);
  return {outcome, rank_text(who) + ": " + group.broadcast(mine.reason, who), who};
}

std::string reason_of(const Verdict& verdict, const Point& point) {
  const specs::Mesh mesh = specs::mesh_of(point);
  if (verdict.rank < 0 || mesh.pipeline == 1) return verdict.reason;
  std::string reason = verdict.reason;
  return reason.insert(rank_text(verdict.rank).size(),
                       " (pipeline stage " + std::to_string(mesh.stage_of(verdict.rank)) + ")");
}

Verdict agreed(const HostGroup& group, Heartbeat& heartbeat, const char* stage,
               const std::function<void()>& body) {
  heartbeat.stage(stage);
  const Verdict mine = in_step(
      group.size(), [&] { return heartbeat.place(); }, [&] { return attempt(body); });
  heartbeat.meet(stage);
  return agree(group, mine);
}

Verdict agreed_in_step(const HostGroup& group, Heartbeat& heartbeat, const char* stage,
                       const std::function<void()>& body,
                       const std::function<std::exception_ptr()>& failure) {
  return agreed(group, heartbeat, stage, [&] {
    in_step(
        group.size(), [&] { return heartbeat.place(); }, body);
    if (const std::exception_ptr mine = failure()) std::rethrow_exception(mine);
  });
}

}  // namespace shardmark
