// Turns an exception into the last line of a job.
#include "comm/in_step.h"

#include <c10/util/Exception.h>

#include "base/exit_status.h"
#include "base/log.h"
#include "base/node.h"
#include "base/text.h"
#include "comm/host_group.h"
#include "comm/nccl/lost_gpu.h"

namespace shardmark {
namespace {

[[noreturn]] void end_job(const std::string& where, const std::string& error) {
  end_job_if_gpu_is_lost(error);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  log_line(printable("failed: rank " + std::to_string(rank) + " on " + host_name() + " in " + where + ": " +
                         first_line(error) + "; the others wait for it, so the job ends",
                     ""));
  MpiSession::abort_world(kSystem);
}

}  // namespace

// Throws the current exception again, to tell its kinds apart. If all ranks throw it together, no rank
// waits for another one, and the caller may go on throwing it.
void end_job_for_exception(const std::string& where) {
  try {
    throw;
  } catch (const OnAllRanks&) {
  } catch (const c10::Error& error) {
    end_job(where, error.what_without_backtrace());
  } catch (const std::exception& error) {
    end_job(where, error.what());
  }
}

}  // namespace shardmark
