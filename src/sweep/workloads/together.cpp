// Measures how much a collective and a load of its ranks (load.h) slow each other down when they run at the
// same time. Each round measures three things one after the other, so that all meet the same state of the
// machine: the load alone, the collective alone, and both together. Before the first round, both are repeated
// so often that they take equally long alone (sweep/round_counts.h). The time of both together, divided by
// the longer of the two alone, is 1 if one hides the other completely, and about 2 if nothing overlaps. A
// higher value means that they slow each other down.
//
// On a CPU, messages are moved by the computing thread between two units of its load, or by a thread of the
// transport. On a GPU, both run on queues of their own, and times are taken there. Source: ConCCL, arXiv
// 2412.14335.
#include <algorithm>
#include <utility>

#include "base/stats.h"
#include "comm/verification.h"
#include "sweep/workloads/collective.h"
#include "sweep/workloads/load.h"

namespace shardmark {
namespace {

constexpr size_t kInFlight = 2;  // collectives in flight if the host starts each
constexpr int kMostCorrections = 5;

enum Moment : int64_t { kBegin, kLoadEnd, kCollectiveEnd, kEnd };

class TogetherWorkload final : public CollectiveWorkload {
 public:
  explicit TogetherWorkload(const WorkloadContext& context)
      : CollectiveWorkload(context), load_(make_load(context)), round_(context.round) {}

  void allocate() override {
    CollectiveWorkload::allocate();
    load_->allocate();
    token_ = comm_.allocate(1, at::kFloat);
  }

  Check verify() override {
    Check check = CollectiveWorkload::verify();
    if (!check.wrong) balance();
    return check;
  }

  void begin_window() override {
    timeline_.clear();
    timeline_.mark(kEnd);
  }

  void step() override {
    heartbeat_.step();
    run_each_alone();
    align();
    run_both();
    timeline_.mark(kEnd);
  }

  // A round has three parts: the load alone, the collective alone, and both together. Each lies between a
  // mark kBegin and a mark kEnd. In the third part, kLoadEnd and kCollectiveEnd mark the ends of the two
  // sides. The rows are as in phases().
  std::vector<std::vector<double>> end_window() override {
    const auto marks = timeline_.resolve();
    std::vector<std::vector<double>> phases(6);
    double round_s = marks.front().at_s, begin_s = 0;
    size_t part = 0;
    for (size_t i = 1; i < marks.size(); ++i) {
      const double at_s = marks[i].at_s;
      if (marks[i].what == kBegin) begin_s = at_s;
      if (marks[i].what == kLoadEnd) phases[3].push_back(at_s - begin_s);
      if (marks[i].what == kCollectiveEnd && part == 2) phases[4].push_back(at_s - begin_s);
      if (marks[i].what != kEnd) continue;
      constexpr size_t kOfPart[] = {1, 2, 5};
      phases[kOfPart[part]].push_back(at_s - begin_s);
      part = (part + 1) % 3;
      if (part > 0) continue;
      phases[0].push_back(at_s - round_s);
      round_s = at_s;
    }
    return phases;
  }

  std::vector<std::string> phases() const override {
    return {"step", "load_alone", "collective_alone", "load_together", "collective_together", "together"};
  }

  void derive(Record& record) const override {
    const Series* alone = record.series("collective_alone");
    std::vector<double> worst(static_cast<size_t>(alone->columns));
    for (int64_t rank = 0; rank < alone->rows; ++rank)
      for (int64_t round = 0; round < alone->columns; ++round)
        worst[static_cast<size_t>(round)] =
            std::max(worst[static_cast<size_t>(round)], alone->at(rank, round));
    rate(record.measures, median(std::move(worst)) / static_cast<double>(round_.operations));
  }

  std::string collect(Record& record) override {
    CollectiveWorkload::collect(record);
    Measures& m = record.measures;
    m.num_operations = round_.operations;
    m.num_load_units = round_.units;
    const auto aligns = static_cast<double>(num_aligns_);
    const double token_bytes =
        token_.element_size() * specs::ring_factor(Collective::all_reduce, comm_.size());
    const auto operations = static_cast<double>(comm_.traffic().num_operations) - aligns;
    m.traffic_bytes =
        group_.sum((comm_.traffic().ring_bytes - aligns * token_bytes) / operations) / group_.size();
    return {};
  }

 private:
  void perform(size_t set) override { comm_.start(call(set)).wait(); }

  // Waits until all ranks have arrived, so that they begin together; on a GPU the device waits.
  void align() {
    comm_.all_reduce(token_, ReduceOp::sum).wait();
    ++num_aligns_;
    timeline_.mark(kBegin);
  }

  void run_load() {
    for (int64_t i = 0; i < round_.units; ++i) load_->unit();
  }

  void run_collectives() {
    Works works(*this);
    while (!works.all_done()) works.wait_for_one();
    works.wait();
  }

  void run_both() {
    Works works(*this);
    for (int64_t i = 0; i < round_.units; ++i) {
      load_->unit();
      works.look();
    }
    {
      const auto queue = load_->queue();
      timeline_.mark(kLoadEnd);
    }
    while (!works.all_done()) works.wait_for_one();
    works.wait();
  }

  // The collectives of a round. On a CPU only a few are in flight. On a GPU poll() returns true as soon as an
  // operation is enqueued, so all of them are enqueued at once and run in the order of their queue.
  class Works {
   public:
    explicit Works(TogetherWorkload& owner) : owner_(owner) { fill(); }
    bool all_done() const { return num_done_ == owner_.round_.operations; }
    void look() {
      owner_.comm_.progress();
      while (num_done_ < std::ssize(works_) && works_[static_cast<size_t>(num_done_)].poll()) one_is_done();
    }
    void wait_for_one() {
      works_[static_cast<size_t>(num_done_)].wait();
      one_is_done();
    }
    void wait() {
      for (Work& work : works_) work.wait();
    }

   private:
    void one_is_done() {
      ++num_done_;
      fill();
      if (!all_done()) return;
      const auto queue = owner_.comm_.in_order();
      owner_.timeline_.mark(kCollectiveEnd);
    }
    void fill() {
      const auto most = static_cast<size_t>(owner_.round_.operations);
      while (works_.size() < most && works_.size() < static_cast<size_t>(num_done_) + kInFlight)
        works_.push_back(owner_.comm_.start(owner_.call(owner_.next_set())));
    }
    TogetherWorkload& owner_;
    std::vector<Work> works_;
    int64_t num_done_ = 0;
  };

  void run_each_alone() {
    align();
    run_load();
    timeline_.mark(kEnd);
    align();
    run_collectives();
    timeline_.mark(kEnd);
  }

  // Chooses numbers of units and operations that take equally long alone. They are estimated from one of each
  // and then corrected with the measured times of whole sides, because several collectives in flight are
  // faster than the same number one by one. All ranks use the times of the slowest rank and so get the same
  // counts. The counts of an earlier repetition are kept, so that all repetitions measure the same.
  void balance() {
    if (!round_.are_known()) {
      round_ = {1, 1};
      for (int i = 0; i < kMostCorrections; ++i) {
        const auto [load_s, collective_s] = sides_alone(i == 0 ? 7 : 3);
        if (i > 0 && are_equally_long(load_s, collective_s)) break;
        round_ = round_counts(load_s / static_cast<double>(round_.units),
                              collective_s / static_cast<double>(round_.operations));
      }
    }
    timeline_.clear();
  }

  // The shortest time of the load and of the collectives alone, over some rounds, on the slowest rank. Other
  // processes can only make a round longer, so the minimum is the best estimate.
  std::pair<double, double> sides_alone(int rounds) {
    std::vector<double> load, collective;
    for (int i = 0; i < rounds; ++i) {
      timeline_.clear();
      run_each_alone();
      const auto marks = timeline_.resolve();
      const auto at = [&](Moment what, int which) {
        for (const auto& mark : marks)
          if (mark.what == what && which-- == 0) return mark.at_s;
        return 0.0;
      };
      load.push_back(at(kEnd, 0) - at(kBegin, 0));
      collective.push_back(at(kEnd, 1) - at(kBegin, 1));
    }
    return {group_.max(*std::min_element(load.begin(), load.end())),
            group_.max(*std::min_element(collective.begin(), collective.end()))};
  }

  std::unique_ptr<SideLoad> load_;
  at::Tensor token_;
  RoundCounts round_;
  int64_t num_aligns_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_together(const WorkloadContext& context) {
  return std::make_unique<TogetherWorkload>(context);
}

}  // namespace shardmark
