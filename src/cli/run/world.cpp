// Chooses devices and threads for ranks, and prints errors once for all ranks.
#include "cli/run/world.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "base/node.h"
#include "base/text.h"
#include "comm/in_step.h"
#include "comm/mpi/watch.h"
#include "comm/transports.h"
#include "comm/watch/rendezvous.h"
#include "device/device.h"
#include "device/meter.h"
#include "plan/choice_axis.h"
#include "plan/plan.h"
#include "sweep/environment.h"

namespace shardmark {
namespace {

constexpr int kMostThreadsOfGpu = 4;
constexpr int kMostThreadsOfProcessor = 64;  // starting 4,096 on two takes longer than any timeout

// For messages: the variable because of which CUDA may show fewer GPUs than there are.
std::string by_list() {
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  return list == nullptr ? "" : " (CUDA_VISIBLE_DEVICES=" + quoted_line(list) + ")";
}

void leave_timed_out() { std::_Exit(kTimedOut); }

}  // namespace

Ranks::Ranks(const WorldFlags& flags, double most_s) : timeout_s_(flags.timeout_s) {
  const RendezvousGuard guard({"the ranks did not find each other", "run `shardmark doctor` on each node"},
                              timeout_s_, log_line, leave_timed_out);
  session = std::make_unique<const MpiSession>();
  world = std::make_unique<const HostGroup>(HostGroup::world());
  watchdog = make_watchdog(*world, host_name(), std::min(flags.timeout_s, most_s),
                           [] { MpiSession::abort_world(kTimedOut); });
  heartbeat().begin_point("the start of the ranks");
}

Ranks::~Ranks() {
  const RendezvousGuard guard({"not all ranks completed MPI_Finalize", "what is finished is kept"},
                              timeout_s_, log_line, leave_timed_out);
  watchdog.reset();
  world.reset();
  session.reset();
}

at::Device choose_device(const WorldFlags& flags, const MpiSession& session, const HostGroup& world,
                         bool judges_nodes) {
  at::Device device{at::kCPU};
  const int gpus = flags.device == "cpu" ? 0 : num_gpus();
  // A scheduler may show each rank one GPU of its own; the preflight checks whether they differ.
  const bool one_each = gpus == 1;
  const bool lacks_gpus = gpus > 0 && session.local_size() > gpus && !one_each;
  const bool all_lack_gpus = world.max(lacks_gpus ? int64_t{0} : int64_t{1}) == 0;
  together(world, [&] {
    if (lacks_gpus && (!judges_nodes || all_lack_gpus))
      throw UsageError(host_name() + " shows " + std::to_string(gpus) + " GPUs to a rank" + by_list() +
                       ", for " + std::to_string(session.local_size()) +
                       " ranks; start at most one rank per GPU, let each see all of them (srun "
                       "--gpu-bind=none), or use --device cpu");
    const int index = one_each ? 0 : session.local_rank();
    if (index < gpus) device = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
    try {
      use_device(device);
    } catch (const std::exception& error) {  // used exclusively, prohibited, or faulty
      if (judges_nodes) {
        log_warning(host_name() + ", GPU " + std::to_string(index) + ": " + first_line(error.what()));
        device = at::Device(at::kCPU);
        return;
      }
      throw SystemError(host_name() + ", GPU " + std::to_string(index) + ": " + first_line(error.what()) +
                        "; `nvidia-smi -q` and `dmesg | grep -i xid` there show more");
    }
  });
  meter::install(device.is_cuda() ? device.index() : -1);
  return device;
}

void set_threads(const WorldFlags& flags, int local_ranks, at::Device device) {
  const auto online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int mine = num_cores();  // fewer than online if this rank is bound
  const double quota = granted_cores();
  const int granted = quota > 0 ? std::max(1, static_cast<int>(quota / local_ranks)) : online;
  if (const int most = kMostThreadsOfProcessor * mine; flags.threads > most)
    throw UsageError(
        fmt::format("--threads {}: a rank of {} may run on {} processor(s), where more than {} threads "
                    "only wait for each other; give fewer",
                    flags.threads, host_name(), mine, most));
  if (flags.threads > 0)
    at::set_num_threads(flags.threads);
  else if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    const int share = std::min(mine < online ? mine : std::max(1, online / local_ranks), granted);
    // A rank on a GPU computes little on its cores; one of them is left for the data loader.
    at::set_num_threads(device.is_cuda() ? std::clamp(share - 1, 1, kMostThreadsOfGpu) : share);
  }
}

std::string transport_for(const WorldFlags& flags, at::Device device) {
  if (flags.transport != "auto")
    return to_text(choices_from_flag({flags.transport}, "--transport", transport_kind()).front());
  return default_transport(device);
}

int64_t limit_memory(int64_t asked, at::Device device, int local_ranks) {
  if (const std::string reason = gpu_memory_reason(asked); device.is_cuda() && !reason.empty())
    throw UsageError(reason);
  const auto share = static_cast<double>(device_memory_bytes(device)) / (device.is_cuda() ? 1 : local_ranks);
  // The rest is left for the system, libraries and page cache.
  const int64_t limit = asked > 0 ? asked : static_cast<int64_t>(0.8 * share);
  if (!device.is_cuda() || asked > 0) meter::set_limit(limit);
  return limit;
}

void together(const HostGroup& world, const std::function<void()>& body) {
  std::string trouble;
  int64_t status = kDone;
  try {
    body();
  } catch (const UsageError& error) {
    trouble = error.what();
    status = kUsage;
  } catch (const std::exception& error) {
    trouble = std::string("failed: ") + error.what();
    status = kSystem;
  }
  // One maximum tells all ranks the worst status and who prints. The status is the high digit of a number in
  // base `size`, and the rank, counted from the last one, is the low digit. So the maximum belongs to the
  // lowest of the ranks with the worst status.
  const int64_t size = world.size();
  const int64_t mine = status * size + (status == kDone ? 0 : size - 1 - world.rank());
  const int64_t worst = in_step(
      size, [] { return std::string("an agreement of all ranks"); }, [&] { return world.max(mine); });
  if (worst / size == kDone) return;
  if (worst % size == size - 1 - world.rank() && status != kDone) log_line(printable(trouble, ""));
  throw AlreadyReported{static_cast<int>(worst / size)};
}

}  // namespace shardmark
