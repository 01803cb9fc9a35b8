// MpiSession: starts and ends MPI, and notices a launcher that started N worlds of one rank instead of one of
// N.
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

#include "base/error.h"
#include "comm/host_group.h"
#include "comm/launcher.h"

namespace shardmark {
namespace {

struct Launcher {
  const char* variable;  // holds the number of ranks that the launcher started
  const char* name;
  const char* fix;
};

// In order of precedence: mpirun inside a Slurm step sees Slurm's variables too.
constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun", "use the mpirun of the MPI that shardmark is linked with"},
    {"PMI_SIZE", "a PMI launcher (MPICH's mpiexec, or srun --mpi=pmi2)",
     "use the mpirun of the MPI that shardmark is linked with, or srun --mpi=pmix"},
    {"SLURM_STEP_NUM_TASKS", "srun",
     "use srun --mpi=pmix where `srun --mpi=list` shows it, else mpirun inside the job"},
};

const Launcher* launcher() {
  for (const Launcher& one : kLaunchers)
    if (std::getenv(one.variable) != nullptr) return &one;
  return nullptr;
}

void check_launcher() {
  const int promised = promised_ranks();
  if (promised <= 1) return;
  const Launcher& by = *launcher();
  throw UsageError(std::string(by.name) + " started " + std::to_string(promised) + " ranks (" + by.variable +
                   "), but MPI sees a world of 1 rank each; " + by.fix);
}

// Whether every rank gets here within two seconds.
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
  return by == nullptr ? 0 : std::atoi(std::getenv(by->variable));
}

MpiSession::MpiSession() {
  int provided = MPI_THREAD_SINGLE;
  MPI_CHECK(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  MPI_CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  int size = 0;
  MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  try {
    if (size == 1) check_launcher();
    if (provided < MPI_THREAD_MULTIPLE) {
      throw UsageError(
          "this MPI was built without MPI_THREAD_MULTIPLE; use one with it (Debian's libopenmpi-dev has it)");
    }
  } catch (...) {
    MPI_Finalize();  // the destructor of an object that was never made does not run
    throw;
  }
  MPI_Comm node = MPI_COMM_NULL;
  MPI_CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  MPI_CHECK(MPI_Comm_rank(node, &local_rank_));
  MPI_CHECK(MPI_Comm_size(node, &local_size_));
  MPI_CHECK(MPI_Comm_free(&node));
}

MpiSession::~MpiSession() {
  // A rank that fails alone must not wait in MPI_Finalize for ranks that wait for it: it leaves without, its
  // caller says why, and the launcher ends the others.
  if (std::uncaught_exceptions() > 0 && !all_ranks_leave()) return;
  MPI_Finalize();
}

void MpiSession::abort_world(int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace shardmark
