// Counts the communicators that a rank has created and not freed. The library is preloaded into a program and
// keeps the count in the file that COUNT_COMMUNICATORS names, with the rank appended to its name.
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace {

int open_count() {
  const char* path = std::getenv("COUNT_COMMUNICATORS");
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (path == nullptr || rank == nullptr) return -1;
  return ::open((std::string(path) + rank).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

void count(int change) {
  static const int file = open_count();
  static std::atomic<int> num_alive{0};
  std::string text = std::to_string(num_alive += change);
  text.resize(8, ' ');
  text.back() = '\n';
  if (file >= 0 && ::pwrite(file, text.data(), text.size(), 0) < 0) std::abort();
}

// A rank that takes no part gets the null communicator, which is not counted.
int made(int status, const MPI_Comm* comm) {
  if (status == MPI_SUCCESS && *comm != MPI_COMM_NULL) count(+1);
  return status;
}

}  // namespace

extern "C" {

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* part) {
  return made(PMPI_Comm_split(comm, color, key, part), part);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* part) {
  return made(PMPI_Comm_split_type(comm, type, key, info, part), part);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) { return made(PMPI_Comm_dup(comm, copy), copy); }

int MPI_Comm_free(MPI_Comm* comm) {
  count(-1);
  return PMPI_Comm_free(comm);
}

}  // extern "C"
