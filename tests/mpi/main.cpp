// Runs tests on all ranks of an MPI job: those of the files that are named ("strategies_test.cpp"), or all
// tests. A failure on any rank fails the run on all ranks.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

// Returns a GoogleTest filter for the tests of `file`.
std::string filter_of(const std::string& file) {
  const auto& all = *::testing::UnitTest::GetInstance();
  std::string filter;
  for (int suite = 0; suite < all.total_test_suite_count(); ++suite) {
    const auto& tests = *all.GetTestSuite(suite);
    for (int test = 0; test < tests.total_test_count(); ++test) {
      const auto& info = *tests.GetTestInfo(test);
      if (std::string(info.file()).ends_with("/" + file))
        filter += std::string(info.test_suite_name()) + "." + info.name() + ":";
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  ::testing::InitGoogleTest(&argc, argv);
  std::string filter;
  for (int i = 1; i < argc; ++i) {
    const std::string of_file = filter_of(argv[i]);
    if (of_file.empty()) {
      std::fprintf(stderr, "rank_tests: no test stands in a file %s\n", argv[i]);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    filter += of_file;
  }
  if (!filter.empty()) ::testing::GTEST_FLAG(filter) = filter;
  // Only one rank prints the progress. Failures on other ranks are printed, too.
  if (rank != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
  }
  int failed = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  std::fflush(nullptr);
  // Skips the destructors of LibTorch's registries, which take a quarter of a second on each rank.
  std::quick_exit(failed);
}
