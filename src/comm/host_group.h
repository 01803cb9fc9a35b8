// Values that ranks exchange on the host, apart from tensors: agreement, barriers, gathers of samples. It
// uses MPI.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace shardmark {

class HostGroup {
 public:
  // Duplicates MPI_COMM_WORLD. The destructor is not collective if MPI has been finalized.
  static HostGroup world();
  HostGroup(HostGroup&&) noexcept;
  HostGroup& operator=(HostGroup&&) noexcept;
  ~HostGroup();

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm mpi() const { return comm_; }

  // A rank with color < 0 takes no part and gets a group of size 0.
  HostGroup split(int color, int key) const;
  // The lowest rank of this group that shares memory with this one. Collective.
  int first_rank_on_node() const;
  // The number of ranks per node if there are several nodes that hold equally many consecutive ranks,
  // otherwise 0. Collective.
  int64_t even_ranks_per_node() const;
  void barrier() const;  // ends as soon as it can, for the start of a window (base/backoff.h)
  // Always sleeps between polls, for ranks that take no part in a configuration.
  void sleep_barrier() const;
  // The maximum over all ranks: how all ranks agree on the worst verdict.
  int64_t max(int64_t value) const;
  double max(double value) const;
  // The maximum at each index. All ranks must pass equally many values.
  std::vector<double> max(std::vector<double> values) const;
  double sum(double value) const;
  int64_t broadcast(int64_t value, int root) const;
  std::string broadcast(const std::string& text, int root) const;
  // Sends the bits unchanged, so NaN and infinity arrive intact. The values passed on other ranks are
  // ignored.
  std::vector<double> broadcast(const std::vector<double>& values, int root) const;
  // Returns the values of all ranks on rank 0, one row per rank, and nothing elsewhere. All ranks must pass
  // equally many values.
  std::vector<double> gather(const std::vector<double>& values) const;
  // On rank 0 one text per rank; empty elsewhere.
  std::vector<std::string> gather(const std::string& text) const;

 private:
  HostGroup(MPI_Comm comm, bool owned);
  MPI_Comm comm_ = MPI_COMM_NULL;
  bool owned_ = false;
  int rank_ = 0;
  int size_ = 0;
};

// Holds MPI between MPI_Init_thread and MPI_Finalize. It is the first object in main, so that it is destroyed
// last.
class MpiSession {
 public:
  // Throws UsageError if the environment promises more ranks than MPI sees (the launcher started N separate
  // worlds of one rank), or more nodes (a heterogeneous Slurm job).
  MpiSession();
  // While an exception unwinds, this finalizes MPI only if all other ranks leave, too. So a rank that fails
  // alone does not hang.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // The rank's position on its node. A node is a set of ranks that share memory.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  // Seconds from the start of this process to MPI_Init, and in MPI_Init.
  double program_s() const { return program_s_; }
  double init_s() const { return init_s_; }
  // Ends every rank of the world with this exit status and never returns.
  [[noreturn]] static void abort_world(int status);

 private:
  int local_rank_ = 0;
  int local_size_ = 1;
  double program_s_ = 0, init_s_ = 0;
};

// The number of ranks that the launcher's environment variables say it started; 0 if they say nothing.
int promised_ranks();

[[noreturn]] void mpi_failure(int code, const char* call, const char* file, int line);

}  // namespace shardmark

#define MPI_CHECK(call)                                                                           \
  do {                                                                                            \
    const int mpi_code_ = (call);                                                                 \
    if (mpi_code_ != MPI_SUCCESS) ::shardmark::mpi_failure(mpi_code_, #call, __FILE__, __LINE__); \
  } while (false)
