// A library that is preloaded into the ranks. On one rank, the n-th call of one kind that the program itself
// makes fails, as if memory ran out or the network broke. FAIL_A_CALL="KIND RANK N", where KIND is an MPI
// function below, or `memory` for allocations of PyTorch and the transport. Calls are counted once the file
// FAIL_AFTER exists. If FAIL_ONCE is set, it names a file that must exist for the failure to happen and that
// the failure removes.
#include <dlfcn.h>
#include <mpi.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

struct Plan {
  char kind[32] = "";
  int rank = -1;
  long number = 0;
};

Plan read_plan() {
  Plan plan;
  const char* const text = std::getenv("FAIL_A_CALL");
  const char* const own = std::getenv("OMPI_COMM_WORLD_RANK");
  if (text == nullptr || own == nullptr) return plan;
  if (std::sscanf(text, "%31s %d %ld", plan.kind, &plan.rank, &plan.number) != 3) std::abort();
  if (plan.rank != std::atoi(own)) plan.number = 0;
  return plan;
}

// Returns false for calls that MPI or PyTorch make themselves.
bool is_of_program(const void* caller) {
  static const void* const base = [] {
    Dl_info program;
    return ::dladdr(reinterpret_cast<void*>(::getauxval(AT_ENTRY)), &program) == 0 ? nullptr
                                                                                   : program.dli_fbase;
  }();
  Dl_info info;
  return ::dladdr(caller, &info) != 0 && info.dli_fbase == base;
}

bool has_begun() {
  static std::atomic<bool> begun{false};
  const char* const after = std::getenv("FAIL_AFTER");
  if (!begun && (after == nullptr || ::access(after, F_OK) == 0)) begun = true;
  return begun;
}

bool fails(std::string_view kind, const void* caller) {
  if (std::getenv("FAIL_A_CALL") == nullptr)
    return false;  // fork_server.cpp: the rank is told after it is loaded
  static const Plan plan = read_plan();
  static std::atomic<long> count{0};
  if (plan.number == 0 || kind != plan.kind || !has_begun() || !is_of_program(caller)) return false;
  if (++count != plan.number) return false;
  const char* const once = std::getenv("FAIL_ONCE");
  return once == nullptr || ::unlink(once) == 0;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

#define FAILS(kind) fails(kind, __builtin_return_address(0))

extern "C" {

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return FAILS("MPI_Isend") ? MPI_ERR_OTHER : PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return FAILS("MPI_Irecv") ? MPI_ERR_OTHER : PMPI_Irecv(data, count, type, from, tag, comm, request);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* part) {
  return FAILS("MPI_Comm_split") ? MPI_ERR_OTHER : PMPI_Comm_split(comm, color, key, part);
}

int MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  return FAILS("MPI_Iallreduce") ? MPI_ERR_OTHER : PMPI_Iallreduce(in, out, count, type, op, comm, request);
}

int MPI_Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return FAILS("MPI_Ibcast") ? MPI_ERR_OTHER : PMPI_Ibcast(data, count, type, root, comm, request);
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
  if (FAILS("memory")) return ENOMEM;
  static auto* const call = next<int(void**, size_t, size_t)>("posix_memalign");
  return call(memory, alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  if (FAILS("memory")) return nullptr;
  static auto* const call = next<void*(size_t, size_t)>("aligned_alloc");
  return call(alignment, size);
}

}  // extern "C"
