// Two things at once: a collective, and what its ranks do beside it (load.h). Each round measures three
// things one after the other, so that all meet the same state of the machine: the load alone, the collective
// alone, both together. Both sides are repeated until they take about as long as each other alone, and so
// that neither is short: what is measured is how long each takes while the other is there, not a corner of
// it. From a round come the slow-down of each side (together / alone) and the gain over doing one after the
// other.
//
// On a CPU the computing thread moves messages between two units of its load, or a thread of the transport's
// does; on a GPU both are on queues of their own, marked there. Where they do not end together the longer one
// runs its rest alone, so a slow-down is at least what is shown. Source of the three numbers: ConCCL, arXiv
// 2412.14335.
#include <algorithm>
#include <cmath>

#include "base/stats.h"
#include "comm/verification.h"
#include "sweep/workloads/collective.h"
#include "sweep/workloads/load.h"

namespace shardmark {
namespace {

constexpr int64_t kLeastUnits = 16;       // of a load: a collective's end is seen between two of them
constexpr double kMostOfSideS = 0.3;      // a side of a round
constexpr int64_t kMostOperations = 200;  // of a round
constexpr size_t kInFlight = 2;           // collectives, where the host starts them one after the other

enum Moment : int64_t { kBegin, kLoadEnd, kCollectiveEnd, kEnd };

class TogetherWorkload final : public CollectiveWorkload {
 public:
  explicit TogetherWorkload(const WorkloadContext& context)
      : CollectiveWorkload(context), load_(make_load(context)) {}

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
    rate(record.measures, median(std::move(worst)) / static_cast<double>(num_operations_));
  }

  std::string collect(Record& record) override {
    CollectiveWorkload::collect(record);
    Measures& m = record.measures;
    m.num_operations = num_operations_;
    const auto aligns = static_cast<double>(num_aligns_);
    const double token_bytes =
        token_.element_size() * specs::ring_factor(Collective::all_reduce, comm_.size());
    const auto operations = static_cast<double>(comm_.traffic().num_operations) - aligns;
    m.traffic_bytes =
        group_.sum((comm_.traffic().ring_bytes - aligns * token_bytes) / operations) / group_.size();
    return {};
  }

 private:
  // No rank begins before the others have come; on a GPU on the device.
  void align() {
    comm_.all_reduce(token_, ReduceOp::sum).wait();
    ++num_aligns_;
    timeline_.mark(kBegin);
  }

  void run_load() {
    for (int64_t i = 0; i < num_units_; ++i) load_->unit();
  }

  void run_collectives() {
    Works works(*this);
    while (!works.all_done()) works.wait_for_one();
    works.wait();
  }

  void run_both() {
    Works works(*this);
    for (int64_t i = 0; i < num_units_; ++i) {
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

  // The collectives of a round, a few in flight; all of them on a GPU, where they wait for each other by
  // themselves.
  class Works {
   public:
    explicit Works(TogetherWorkload& owner) : owner_(owner) { fill(); }
    bool all_done() const { return num_done_ == owner_.num_operations_; }
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
      const auto most = static_cast<size_t>(owner_.num_operations_);
      while (works_.size() < most && works_.size() < static_cast<size_t>(num_done_) + kInFlight)
        works_.push_back(owner_.start_next());
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

  // As many units and operations as take as long as each other; the same on all ranks.
  void balance() {
    num_units_ = num_operations_ = 1;
    std::vector<double> unit, operation;
    for (int i = 0; i < 7; ++i) {
      timeline_.clear();
      run_each_alone();
      const auto marks = timeline_.resolve();
      const auto at = [&](Moment what, int which) {
        for (const auto& mark : marks)
          if (mark.what == what && which-- == 0) return mark.at_s;
        return 0.0;
      };
      unit.push_back(at(kEnd, 0) - at(kBegin, 0));
      operation.push_back(at(kEnd, 1) - at(kBegin, 1));
    }
    const double unit_s = std::max(group_.max(median(unit)), 1e-9);
    const double operation_s = std::max(group_.max(median(operation)), 1e-9);
    double side_s = std::max(static_cast<double>(kLeastUnits) * unit_s, operation_s);
    side_s = std::max({std::min(side_s, kMostOfSideS), unit_s, operation_s});
    num_units_ = std::max<int64_t>(std::llround(side_s / unit_s), 1);
    num_operations_ = std::clamp<int64_t>(std::llround(side_s / operation_s), 1, kMostOperations);
    timeline_.clear();
  }

  std::unique_ptr<SideLoad> load_;
  at::Tensor token_;
  int64_t num_units_ = 1, num_operations_ = 1, num_aligns_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_together(const WorkloadContext& context) {
  return std::make_unique<TogetherWorkload>(context);
}

}  // namespace shardmark
