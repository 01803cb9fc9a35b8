// Announces every operation to all ranks, compares the announcements, and passes the operation on.
#include "comm/wrappers/checked.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/backoff.h"
#include "base/node.h"
#include "base/units.h"
#include "comm/watch/diagnosis.h"

namespace shardmark {
namespace {

struct Packed {
  int64_t rank = 0;
  std::array<char, 48> host{};
  std::array<char, 104> operation{};
};

constexpr const char* kReductions[] = {"sum", "average", "min", "max"};  // in the order of ReduceOp

// Describes a call, as in "reduce (sum) to 0 of 4,194,304 B Float". For send_recv only the name counts,
// because each pair of ranks may exchange something else.
std::string text_of(const Call& call, int rank, int size) {
  using Root = specs::CollectiveRow::Root;
  const specs::CollectiveRow& row = specs::collective(call.what);
  if (row.in == specs::Holds::pair) return row.name;
  std::string text = row.name;
  if (row.reduces) text += fmt::format(" ({})", kReductions[static_cast<size_t>(call.op)]);
  if (row.is_rooted()) text += fmt::format(" {} {}", row.root == Root::sends ? "from" : "to", call.root);
  const at::Tensor& side = call.uses_in(rank) ? call.in : call.out;
  return text + fmt::format(" of {} B {}", format_count(call.payload_bytes(rank, size)),
                            c10::toString(side.scalar_type()));
}

class Checked final : public Communicator {
 public:
  // The inner communicators of all Checked communicators that were split off each other. All of them make
  // progress while one compares.
  using Peers = std::shared_ptr<std::vector<Communicator*>>;
  Checked(std::unique_ptr<Communicator> inner, HostGroup group, int64_t world_rank, Peers peers)
      : inner_(std::move(inner)), group_(std::move(group)), peers_(std::move(peers)) {
    own_.rank = world_rank;
    host_name().copy(own_.host.data(), own_.host.size() - 1);
    peers_->push_back(inner_.get());
  }
  ~Checked() override { std::erase(*peers_, inner_.get()); }
  Checked(const Checked&) = delete;
  Checked& operator=(const Checked&) = delete;

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  at::Device device() const override { return inner_->device(); }
  std::string transport() const override { return inner_->transport(); }
  double estimate_s(const Call& call) override { return inner_->estimate_s(call); }
  at::Tensor allocate(int64_t numel, at::ScalarType dtype) override { return inner_->allocate(numel, dtype); }
  void group_begin() override { inner_->group_begin(); }
  void group_end() override { inner_->group_end(); }
  double bytes_between_nodes() const override { return inner_->bytes_between_nodes(); }
  void trim() override { inner_->trim(); }
  std::string take_copied() override { return inner_->take_copied(); }
  std::shared_ptr<void> in_order() override { return inner_->in_order(); }

 protected:
  std::unique_ptr<Communicator> do_split(int color, int key, SplitUse use) override {
    auto part = inner_->split(color, key, use);
    HostGroup group = group_.split(color, key);
    if (!part) return nullptr;
    return std::make_unique<Checked>(std::move(part), std::move(group), own_.rank, peers_);
  }
  std::unique_ptr<Operation> do_start(const Call& call) override {
    compare(call);
    return std::make_unique<HandedOn>(inner_->start(call));
  }
  std::unique_ptr<Operation> do_run(const Call& call) override {
    compare(call);
    return std::make_unique<Run>(*inner_, call);
  }
  void do_progress() override { inner_->progress(); }

 private:
  // Runs the operation when it is waited for, which Communicator::run does at once.
  class Run final : public Operation {
   public:
    Run(Communicator& inner, const Call& call) : inner_(inner), call_(call) {}
    bool poll() override {
      wait();
      return true;
    }
    void wait() override {
      if (!std::exchange(is_complete_, true)) inner_.run(call_);
    }

   private:
    Communicator& inner_;
    Call call_;
    bool is_complete_ = false;
  };

  class HandedOn final : public Operation {
   public:
    explicit HandedOn(Work work) : work_(std::move(work)) {}
    bool poll() override { return work_.poll(); }
    void wait() override { work_.wait(); }

   private:
    Work work_;
  };

  // The ends of a one-way message differ.
  void compare(const Call& call) {
    const bool is_one_way = !call.uses_in(rank()) || !call.uses_out(rank());
    if (call.what != Collective::send_recv || !is_one_way) announce(text_of(call, rank(), size()));
  }

  // Gathers what all ranks are about to start. Operations in flight go on meanwhile, because a rank that
  // comes late may be waiting for one of them.
  void announce(const std::string& operation) {
    ++num_operations_;
    own_.operation = {};
    operation.copy(own_.operation.data(), own_.operation.size() - 1);
    std::vector<Packed> all(static_cast<size_t>(size()));
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_CHECK(MPI_Iallgather(&own_, sizeof(Packed), MPI_BYTE, all.data(), sizeof(Packed), MPI_BYTE,
                             group_.mpi(), &request));
    int done = 0;
    for (Backoff backoff; done == 0; backoff.pause()) {
      for (Communicator* peer : *peers_) peer->progress();
      MPI_CHECK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    }
    std::vector<Announcement> announcements;
    announcements.reserve(all.size());
    for (const Packed& one : all) announcements.push_back({one.rank, one.host.data(), one.operation.data()});
    const std::string text = difference(announcements);
    if (!text.empty())
      throw MismatchedOperation(
          fmt::format("operation #{} differs between ranks: {}", num_operations_, text));
  }

  std::unique_ptr<Communicator> inner_;
  HostGroup group_;
  Peers peers_;
  Packed own_;
  int64_t num_operations_ = 0;
};

int64_t world_rank() {
  int rank = 0;
  MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  return rank;
}

}  // namespace

std::unique_ptr<Communicator> make_checked(std::unique_ptr<Communicator> inner, HostGroup group) {
  return std::make_unique<Checked>(std::move(inner), std::move(group), world_rank(),
                                   std::make_shared<std::vector<Communicator*>>());
}

std::string difference(const std::vector<Announcement>& announcements) {
  std::map<std::string, std::vector<const Announcement*>> kinds;
  for (const Announcement& one : announcements) kinds[one.operation].push_back(&one);
  if (kinds.size() == 1) return "";
  std::vector<std::vector<const Announcement*>> sorted;
  sorted.reserve(kinds.size());
  for (const auto& [operation, ranks] : kinds) sorted.push_back(ranks);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  constexpr size_t kMostKinds = 4;
  std::string text;
  for (size_t i = 0; i < std::min(sorted.size(), kMostKinds); ++i) {
    std::vector<int64_t> ranks;
    for (const Announcement* one : sorted[i]) ranks.push_back(one->rank);
    std::sort(ranks.begin(), ranks.end());
    const Announcement& first = *sorted[i].front();
    text += ranks.size() == 1 ? fmt::format("{}rank {} on {}", i == 0 ? "" : ", ", first.rank, first.host)
                              : fmt::format("{}ranks {}", i == 0 ? "" : ", ", ranges(ranks));
    text += (i > 0 ? " " : ranks.size() == 1 ? " starts " : " start ") + first.operation;
  }
  return sorted.size() <= kMostKinds ? text : text + ", and others";
}

}  // namespace shardmark
