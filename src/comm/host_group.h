// Values that the hosts of ranks exchange beside the tensors: agreement, barriers, gathers of samples. Over
// MPI.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace shardmark {

class HostGroup {
 public:
  static HostGroup world();  // a duplicate of MPI_COMM_WORLD; not collective to destroy after finalize
  HostGroup(HostGroup&&) noexcept;
  HostGroup& operator=(HostGroup&&) noexcept;
  ~HostGroup();

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm mpi() const { return comm_; }

  HostGroup split(int color, int key) const;  // color < 0: takes no part; then size() is 0
  int first_rank_on_node()
      const;                   // the lowest rank of this group that shares memory with this one. Collective
  void barrier() const;        // spins: for the start of a window
  void sleep_barrier() const;  // sleeps between polls: for ranks that are left out of a point
  int64_t max(int64_t value) const;  // of all ranks: the worst verdict, one decision of all
  double max(double value) const;
  std::vector<double> max(std::vector<double> values) const;  // of each place; all ranks give equally many
  double sum(double value) const;
  int64_t broadcast(int64_t value, int root) const;
  std::string broadcast(const std::string& text, int root) const;
  // Bit by bit, so that a NaN or an infinity arrives as what it was. Other ranks' values are ignored.
  std::vector<double> broadcast(const std::vector<double>& values, int root) const;
  // On rank 0 the values of all ranks, one row each (all ranks give equally many); empty elsewhere.
  std::vector<double> gather(const std::vector<double>& values) const;
  std::vector<std::string> gather(const std::string& text) const;  // on rank 0, one per rank; empty elsewhere

 private:
  HostGroup(MPI_Comm comm, bool owned);
  MPI_Comm comm_ = MPI_COMM_NULL;
  bool owned_ = false;
  int rank_ = 0;
  int size_ = 0;
};

// MPI_Init_thread .. MPI_Finalize. The first object in main, so that it is destroyed last.
class MpiSession {
 public:
  // UsageError when the environment promises more ranks than MPI sees (N worlds of one rank), or more nodes
  // (a heterogeneous Slurm job).
  MpiSession();
  ~MpiSession();  // while an exception unwinds: finalizes only if all ranks leave too, so that a lone failure
                  // cannot hang
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // Where ranks are. A node: ranks that share memory.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  // Ends every rank of the world with this exit status. Never returns.
  [[noreturn]] static void abort_world(int status);

 private:
  int local_rank_ = 0;
  int local_size_ = 1;
};

[[noreturn]] void mpi_failure(int code, const char* call, const char* file, int line);

}  // namespace shardmark

#define MPI_CHECK(call)                                                                           \
  do {                                                                                            \
    const int mpi_code_ = (call);                                                                 \
    if (mpi_code_ != MPI_SUCCESS) ::shardmark::mpi_failure(mpi_code_, #call, __FILE__, __LINE__); \
  } while (false)
