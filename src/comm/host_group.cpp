// HostGroup: MPI collectives on plain values. mpi_failure translates MPI's error codes for the whole program.
#include "comm/host_group.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/backoff.h"
#include "base/error.h"
#include "comm/mpi/yielding.h"

namespace shardmark {
namespace {

bool mpi_is_usable() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

// Waits for a collective. MPI's blocking calls keep their core busy until the last rank arrives, and take it
// from that rank where both run on one core.
void finish(MPI_Request request) {
  int done = 0;
  for (Backoff backoff;; backoff.pause()) {
    MPI_CHECK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) return;
  }
}

template <class T>
T all_reduced(T value, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_CHECK(MPI_Iallreduce(MPI_IN_PLACE, &value, 1, type, op, comm, &request));
  finish(request);
  return value;
}

void broadcast_from(int root, void* data, int64_t count, MPI_Datatype type, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_CHECK(MPI_Ibcast(data, static_cast<int>(count), type, root, comm, &request));
  finish(request);
}

}  // namespace

void mpi_failure(int code, const char* call, const char* file, int line) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw SystemError(std::string(call) + " failed: " + text + " (" + file + ":" + std::to_string(line) + ")");
}

HostGroup::HostGroup(MPI_Comm comm, bool owned) : comm_(comm), owned_(owned) {
  if (comm_ == MPI_COMM_NULL) return;
  MPI_CHECK(MPI_Comm_rank(comm_, &rank_));
  MPI_CHECK(MPI_Comm_size(comm_, &size_));
}

HostGroup::HostGroup(HostGroup&& other) noexcept
    : comm_(std::exchange(other.comm_, MPI_COMM_NULL)),
      owned_(other.owned_),
      rank_(other.rank_),
      size_(std::exchange(other.size_, 0)) {}

HostGroup& HostGroup::operator=(HostGroup&& other) noexcept {
  std::swap(comm_, other.comm_);
  std::swap(owned_, other.owned_);
  std::swap(rank_, other.rank_);
  std::swap(size_, other.size_);
  return *this;
}

HostGroup::~HostGroup() {
  // MPI_Finalize has already freed the communicator. A failing free must not terminate a process that is
  // unwinding, so the result is ignored.
  if (!owned_ || comm_ == MPI_COMM_NULL || !mpi_is_usable()) return;
  const YieldsInMpi yields;
  MPI_Comm_free(&comm_);
}

// A duplicate of MPI_COMM_WORLD has messages of its own, which other users of MPI in this process do not
// see. MPI's errors are returned, so that MPI_CHECK can throw them.
HostGroup HostGroup::world() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  yield_only_where_mpi_blocks();
  MPI_CHECK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  return {comm, true};
}

HostGroup HostGroup::split(int color, int key) const {
  const YieldsInMpi yields;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_CHECK(MPI_Comm_split(comm_, color < 0 ? MPI_UNDEFINED : color, key, &comm));
  return {comm, true};
}

int HostGroup::first_rank_on_node() const {
  const YieldsInMpi yields;
  MPI_Comm node = MPI_COMM_NULL;
  MPI_CHECK(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node));
  const int first = all_reduced(rank_, MPI_INT, MPI_MIN, node);
  MPI_CHECK(MPI_Comm_free(&node));
  return first;
}

int64_t HostGroup::even_ranks_per_node() const {
  const int64_t first = first_rank_on_node();
  const HostGroup node = split(static_cast<int>(first), rank());
  const int64_t here = node.size();
  // The ranks of this node must be a whole block of `here` consecutive ranks. The smallest number of ranks
  // on a node is minus the maximum of the negative numbers.
  const bool fits = first % here == 0 && rank() / here == first / here;
  const bool is_even = max(here) == -max(-here) && max(static_cast<int64_t>(!fits)) == 0;
  return is_even && here < size() ? here : 0;
}

void HostGroup::barrier() const {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_CHECK(MPI_Ibarrier(comm_, &request));
  finish(request);
}

void HostGroup::sleep_barrier() const {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_CHECK(MPI_Ibarrier(comm_, &request));
  auto pause = std::chrono::microseconds(50);
  for (int done = 0;;) {
    MPI_CHECK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) return;
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(pause * 2, std::chrono::milliseconds(10));
  }
}

int64_t HostGroup::max(int64_t value) const { return all_reduced(value, MPI_INT64_T, MPI_MAX, comm_); }
double HostGroup::max(double value) const { return all_reduced(value, MPI_DOUBLE, MPI_MAX, comm_); }

std::vector<double> HostGroup::max(std::vector<double> values) const {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_CHECK(MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX,
                           comm_, &request));
  finish(request);
  return values;
}

double HostGroup::sum(double value) const { return all_reduced(value, MPI_DOUBLE, MPI_SUM, comm_); }

int64_t HostGroup::broadcast(int64_t value, int root) const {
  broadcast_from(root, &value, 1, MPI_INT64_T, comm_);
  return value;
}

// The length goes first, because only the root knows it.
std::string HostGroup::broadcast(const std::string& text, int root) const {
  const int64_t length = broadcast(static_cast<int64_t>(text.size()), root);
  std::string received = rank_ == root ? text : std::string(static_cast<size_t>(length), '\0');
  broadcast_from(root, received.data(), length, MPI_CHAR, comm_);
  return received;
}

std::vector<double> HostGroup::broadcast(const std::vector<double>& values, int root) const {
  const int64_t count = broadcast(std::ssize(values), root);
  std::vector<double> received = rank_ == root ? values : std::vector<double>(static_cast<size_t>(count));
  broadcast_from(root, received.data(), count, MPI_DOUBLE, comm_);
  return received;
}

std::vector<double> HostGroup::gather(const std::vector<double>& values) const {
  const int count = static_cast<int>(values.size());
  std::vector<double> all(rank_ == 0 ? values.size() * static_cast<size_t>(size_) : 0);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_CHECK(MPI_Igather(values.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, 0, comm_, &request));
  finish(request);
  return all;
}

// Rank 0 first learns the length of each text, and thereby where each lies in what it receives.
std::vector<std::string> HostGroup::gather(const std::string& text) const {
  const int length = static_cast<int>(text.size());
  std::vector<int> lengths(rank_ == 0 ? size_ : 0);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_CHECK(MPI_Igather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, comm_, &request));
  finish(request);
  std::vector<int> offsets;
  int total = 0;
  for (int part : lengths) {
    offsets.push_back(total);
    total += part;
  }
  std::string all(static_cast<size_t>(total), '\0');
  MPI_CHECK(MPI_Igatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), offsets.data(), MPI_CHAR,
                         0, comm_, &request));
  finish(request);
  std::vector<std::string> parts;
  for (size_t i = 0; i < lengths.size(); ++i) {
    parts.push_back(all.substr(static_cast<size_t>(offsets[i]), static_cast<size_t>(lengths[i])));
  }
  return parts;
}

}  // namespace shardmark
