// MpiSession starts and ends MPI. It detects a launcher that started N worlds of one rank instead of one
// world of N, and ranks that cover only a part of a heterogeneous job.
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "comm/host_group.h"
#include "comm/mpi/yielding.h"
#include "launch/heterogeneous_job.h"

namespace shardmark {
namespace {

struct Launcher {
  const char* variable;  // holds the number of ranks that the launcher started
  const char* name;
  const char* fix;
};

constexpr const char* kUseOurMpirun = "use the mpirun of the MPI that shardmark is linked with";

// mpirun comes first. Inside a Slurm step or a pod of PyTorch's operator it also sees the variables of those.
constexpr Launcher kMpirun = {"OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun", kUseOurMpirun};

// The launcher that promises the most ranks counts. For example, torchrun under `srun --ntasks-per-node=1`
// also sees a Slurm step with one task.
constexpr Launcher kOthers[] = {
    {"PMI_SIZE", "a PMI launcher (MPICH's mpiexec, or srun --mpi=pmi2)",
     "use the mpirun of the MPI that shardmark is linked with, or srun --mpi=pmix"},
    {"MV2_COMM_WORLD_SIZE", "MVAPICH's launcher", kUseOurMpirun},
    {"JSM_NAMESPACE_SIZE", "jsrun", kUseOurMpirun},
    {"PALS_NRANKS", "PALS (Cray's mpiexec)", kUseOurMpirun},
    {"PALS_LOCAL_SIZE", "PALS (Cray's mpiexec)", kUseOurMpirun},
    {"FLUX_JOB_SIZE", "flux run", "use flux run -o pmi=pmix where Flux has it, else mpirun inside the job"},
    {"SLURM_STEP_NUM_TASKS", "srun",
     "use srun --mpi=pmix where `srun --mpi=list` shows it, else mpirun inside the job"},
    {"WORLD_SIZE", "torchrun or a launcher like it",
     "shardmark's ranks are MPI's: use mpirun or srun --mpi=pmix instead of torchrun (and unset WORLD_SIZE "
     "if "
     "it is left from something else)"},
};

int size_in(const Launcher& launcher) {
  const char* const text = std::getenv(launcher.variable);
  return text == nullptr ? 0 : std::atoi(text);
}

const Launcher* launcher() {
  if (std::getenv(kMpirun.variable) != nullptr) return &kMpirun;
  const Launcher* most = nullptr;
  for (const Launcher& one : kOthers)
    if (size_in(one) > (most == nullptr ? 0 : size_in(*most))) most = &one;
  return most;
}

void check_launcher() {
  const int promised = promised_ranks();
  if (promised <= 1) return;
  const Launcher& by = *launcher();
  throw UsageError(std::string(by.name) + " started " + std::to_string(promised) + " ranks (" + by.variable +
                   "), but MPI sees a world of 1 rank each; " + by.fix);
}

// Checks that the ranks of a heterogeneous Slurm job cover all of its groups. Collective, because the
// variables may not be set on every node.
void check_groups(int local_rank) {
  const auto job = heterogeneous_job([](const std::string& name) {
    const char* const text = std::getenv(name.c_str());
    return std::string(text == nullptr ? "" : text);
  });
  int64_t promised = job ? job->nodes : 0, nodes = local_rank == 0 ? 1 : 0;
  MPI_CHECK(MPI_Allreduce(MPI_IN_PLACE, &promised, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD));
  MPI_CHECK(MPI_Allreduce(MPI_IN_PLACE, &nodes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
  if (nodes >= promised) return;
  throw UsageError(refusal_of(job.value_or(HeterogeneousJob{2, promised}),
                              "its ranks are on " + std::to_string(nodes) + " of them"));
}

// Returns whether every rank gets here within two seconds.
bool all_ranks_leave() {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return false;
  for (int i = 0; i < 2000; ++i) {
    int done = 0;
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done != 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

int promised_ranks() {
  const Launcher* const by = launcher();
  return by == nullptr ? 0 : size_in(*by);
}

MpiSession::MpiSession() : program_s_(process_age_s()) {
  const double begin = now_s();
  int provided = MPI_THREAD_SINGLE;
  MPI_CHECK(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  init_s_ = now_s() - begin;
  MPI_CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  int size = 0;
  MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  try {
    if (size == 1) check_launcher();
    if (provided < MPI_THREAD_MULTIPLE) {
      throw UsageError(
          "this MPI was built without MPI_THREAD_MULTIPLE; use one with it (Debian's libopenmpi-dev has it)");
    }
    MPI_Comm node = MPI_COMM_NULL;
    MPI_CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    MPI_CHECK(MPI_Comm_rank(node, &local_rank_));
    MPI_CHECK(MPI_Comm_size(node, &local_size_));
    MPI_CHECK(MPI_Comm_free(&node));
    check_groups(local_rank_);
  } catch (...) {
    MPI_Finalize();  // no destructor runs after a constructor throws
    throw;
  }
}

MpiSession::~MpiSession() {
  // A rank that fails alone must not wait in MPI_Finalize for ranks that wait for it. It leaves without
  // finalizing; its caller says why, and the launcher ends the other ranks.
  if (std::uncaught_exceptions() > 0 && !all_ranks_leave()) return;
  const YieldsInMpi yields;
  MPI_Finalize();
}

void MpiSession::abort_world(int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace shardmark
