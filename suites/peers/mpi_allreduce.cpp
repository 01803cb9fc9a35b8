// Times plain MPI_Allreduce of floats in place. The time is the mean over the operations on the slowest rank.
//   mpirun -n 2 build/shardmark_mpi_allreduce ITERATIONS BYTES...      prints "BYTES SECONDS" for each size
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int iterations = argc > 1 ? std::atoi(argv[1]) : 20;
  for (int i = 2; i < argc; ++i) {
    const long bytes = std::atol(argv[i]);
    std::vector<float> values(static_cast<size_t>(bytes) / sizeof(float), 1.0F);
    const auto reduce = [&](int times) {
      for (int n = 0; n < times; ++n)
        MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
    };
    reduce(5);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    reduce(iterations);
    double seconds = (MPI_Wtime() - begin) / iterations;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) std::printf("%ld %.9f\n", bytes, seconds);
  }
  MPI_Finalize();
  return EXIT_SUCCESS;
}
