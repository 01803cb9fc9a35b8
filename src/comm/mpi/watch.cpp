// The pages are POSIX shared memory. Unlike an MPI window it is freed when its last process ends, without a
// collective call that a rank might not reach.
#include "comm/mpi/watch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <new>

#include "base/log.h"
#include "comm/mpi/yielding.h"
#include "launch/leftovers.h"
#include "schema/file.h"

namespace shardmark {
namespace {

std::shared_ptr<HeartbeatPage[]> map(const File& file, size_t count) {
  const size_t bytes = count * sizeof(HeartbeatPage);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  return {static_cast<HeartbeatPage*>(memory), [bytes](HeartbeatPage* pages) { ::munmap(pages, bytes); }};
}

// Creates the shared memory with its bytes reserved; otherwise, if /dev/shm is full, writing to it would kill
// the process. The file stays locked until its name is removed, which tells other jobs that it is not a
// leftover.
File create(const std::string& name, size_t bytes) {
  remove_leftovers();
  File file(::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
  if (file) ::flock(file.get(), LOCK_EX);
  if (file && ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)) != 0) file.reset();
  return file;
}

std::vector<std::string> all_gather(const HostGroup& world, const std::string& text) {
  std::vector<char> mine(64), all(64 * static_cast<size_t>(world.size()));
  text.copy(mine.data(), mine.size() - 1);
  const YieldsInMpi yields;
  MPI_CHECK(MPI_Allgather(mine.data(), 64, MPI_CHAR, all.data(), 64, MPI_CHAR, world.mpi()));
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < static_cast<size_t>(world.size()); ++rank) texts.emplace_back(&all[rank * 64]);
  return texts;
}

std::vector<int> all_gather(const HostGroup& world, int value) {
  std::vector<int> all(static_cast<size_t>(world.size()));
  const YieldsInMpi yields;
  MPI_CHECK(MPI_Allgather(&value, 1, MPI_INT, all.data(), 1, MPI_INT, world.mpi()));
  return all;
}

// MPI messages between watchdogs. Nothing here waits or throws. Several receives are always posted, so that
// answers that are too large for MPI's eager protocol arrive side by side. A message that is being sent is
// kept until MPI no longer needs it; if the receiver has stopped, that may be for ever. A message that fails
// is lost.
class MpiChannel : public Channel {
 public:
  MpiChannel(const HostGroup& world, size_t most_bytes)
      : group_(world.split(0, world.rank())),
        most_bytes_(most_bytes),
        received_(new char[kReceives * most_bytes]) {  // touched only when something arrives
    for (size_t slot = 0; slot < kReceives; ++slot) post(slot);
  }
  ~MpiChannel() override {
    for (MPI_Request& receiving : receiving_) MPI_Cancel(&receiving);
    MPI_Waitall(kReceives, receiving_.data(), MPI_STATUSES_IGNORE);
    forget_sent();
    if (!sent_.empty())
      static_cast<void>(new (std::nothrow)
                            std::list<Sent>(std::move(sent_)));  // leaked: MPI may still read it
  }
  MpiChannel(const MpiChannel&) = delete;
  MpiChannel& operator=(const MpiChannel&) = delete;

  void send(int rank, const std::string& bytes) override {
    Sent& sent = sent_.emplace_back(Sent{bytes.substr(0, most_bytes_), MPI_REQUEST_NULL});
    MPI_Isend(sent.bytes.data(), static_cast<int>(sent.bytes.size()), MPI_CHAR, rank, 0, group_.mpi(),
              &sent.request);
  }

  std::optional<Message> receive() override {
    forget_sent();
    const size_t slot = oldest_;  // messages fill them in order
    int done = 0;
    MPI_Status status;
    if (MPI_Test(&receiving_[slot], &done, &status) != MPI_SUCCESS || done == 0) return {};
    oldest_ = (slot + 1) % kReceives;
    int count = 0;
    MPI_Get_count(&status, MPI_CHAR, &count);
    Message message{status.MPI_SOURCE, std::string(buffer(slot), static_cast<size_t>(count))};
    post(slot);
    return message;
  }

 private:
  struct Sent {
    std::string bytes;
    MPI_Request request;
  };

  static constexpr int kReceives = 8;
  char* buffer(size_t slot) const { return received_.get() + slot * most_bytes_; }
  void post(size_t slot) {
    MPI_Irecv(buffer(slot), static_cast<int>(most_bytes_), MPI_CHAR, MPI_ANY_SOURCE, 0, group_.mpi(),
              &receiving_[slot]);
  }
  void forget_sent() {
    sent_.remove_if([](Sent& sent) {
      int done = 0;
      return MPI_Test(&sent.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
    });
  }

  HostGroup group_;
  size_t most_bytes_;
  std::unique_ptr<char[]> received_;
  std::array<MPI_Request, kReceives> receiving_{};
  size_t oldest_ = 0;  // of the posted receives
  std::list<Sent> sent_;
};

}  // namespace

NodeMap gather_node_map(const HostGroup& world, const std::string& host) {
  return make_node_map(all_gather(world, host), all_gather(world, world.first_rank_on_node()));
}

// The first rank creates the memory under a name that no other job uses, and the others open it after the
// barrier. The name is removed when all ranks have tried to map the memory, which the maximum tells. From
// then on the kernel frees it with its last process.
std::shared_ptr<HeartbeatPage[]> share_pages(const HostGroup& node) {
  const auto count = static_cast<size_t>(node.size());
  const std::string name = "/" + shared_name_prefix() +
                           std::to_string(node.broadcast(static_cast<int64_t>(::getpid()), 0)) + "-" +
                           std::to_string(node.broadcast(static_cast<int64_t>(watch_clock_s() * 1e9), 0));
  File file;
  if (node.rank() == 0) file = create(name, count * sizeof(HeartbeatPage));
  node.barrier();
  if (node.rank() != 0) file = File(::shm_open(name.c_str(), O_RDWR, 0));
  auto pages = file ? map(file, count) : nullptr;
  const bool all_have_them = node.max(static_cast<int64_t>(pages == nullptr)) == 0;
  if (node.rank() == 0) ::shm_unlink(name.c_str());
  return all_have_them ? pages : nullptr;
}

std::unique_ptr<Channel> make_mpi_channel(const HostGroup& world, size_t most_bytes) {
  return std::make_unique<MpiChannel>(world, most_bytes);
}

std::unique_ptr<Watchdog> make_watchdog(const HostGroup& world, const std::string& host, double timeout_s,
                                        std::function<void()> end_job) {
  NodeMap node_map = gather_node_map(world, host);
  const int node = node_map.node_of[static_cast<size_t>(world.rank())];
  auto pages = share_pages(world.split(node, world.rank()));
  // Then every rank counts as a node of its own.
  if (world.max(static_cast<int64_t>(pages == nullptr)) != 0) {
    std::vector<int> alone(static_cast<size_t>(world.size()));
    for (int rank = 0; rank < world.size(); ++rank) alone[static_cast<size_t>(rank)] = rank;
    node_map = make_node_map(all_gather(world, host), alone);
    pages.reset(new HeartbeatPage[1]());
  }
  std::vector<int> ranks =
      node_map.ranks_of[static_cast<size_t>(node_map.node_of[static_cast<size_t>(world.rank())])];
  size_t most_ranks = 0;
  for (const auto& of_node : node_map.ranks_of) most_ranks = std::max(most_ranks, of_node.size());
  WatchdogOptions options;
  options.monitor.timeout_s = timeout_s;
  options.say = log_line;
  options.end_job = std::move(end_job);
  return std::make_unique<Watchdog>(
      world.rank(), NodeHeartbeats(std::move(pages), std::move(ranks), world.rank()), std::move(node_map),
      make_mpi_channel(world, 1024 + most_ranks * sizeof(RankState)), std::move(options));
}

}  // namespace shardmark
