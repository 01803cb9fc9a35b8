// A library that is preloaded into a program. Rank 1 stops itself when it enters MPI_Finalize.
#include <mpi.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

extern "C" int MPI_Finalize() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank != nullptr && std::string_view(rank) == "1") std::raise(SIGSTOP);
  return PMPI_Finalize();
}
