// Times a collective operation by operation. Several sets of buffers are used in turn, so that a message has
// left the last-level cache by the time its buffers are used again.
#include "sweep/workloads/collective.h"

#include <ATen/cuda/CUDAContext.h>
#include <unistd.h>

#include <algorithm>

#include "comm/verification.h"
#include "device/meter.h"
#include "specs/collectives.h"

namespace shardmark {
namespace {

// Most sets of buffers. Messages below 1/16 of the cache stay cached, as in any benchmark of small messages.
constexpr int64_t kMostSets = 16;
constexpr int64_t kVerifyRounds = 3;

int64_t last_level_cache_bytes(at::Device device) {
  if (device.is_cuda()) return at::cuda::getDeviceProperties(device.index())->l2CacheSize;
  return std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 1 << 20);  // 0 if the system does not know it
}

}  // namespace

CollectiveWorkload::CollectiveWorkload(const WorkloadContext& context)
    : point_(context.point),
      group_(context.group),
      comm_(context.comm),
      heartbeat_(context.heartbeat),
      row_(specs::collective(point_.collective.operation)),
      dtype_(element_type(point_.collective.dtype)),
      timeline_(comm_.device()) {}

void CollectiveWorkload::allocate() {
  meter::reset_peak();
  const int64_t numel = point_.collective.bytes / static_cast<int64_t>(at::elementSize(dtype_));
  const int64_t cache = last_level_cache_bytes(comm_.device());
  // One set more than fits into the cache: when a set is used again, it has been evicted.
  const int64_t num_sets =
      std::clamp(cache / std::max<int64_t>(point_.collective.bytes, 1) + 2, int64_t{2}, kMostSets);
  const ReduceOp op = reduce_op(point_.collective.reduction);
  std::shared_ptr<const specs::Parts> parts;
  if (row_.has_parts)
    parts = std::make_shared<specs::Parts>(specs::share_out(choice_from_text(point_.collective.parts),
                                                            comm_.size(), numel / comm_.size() * comm_.size(),
                                                            point_.folder));
  for (int64_t i = 0; i < num_sets; ++i) {
    calls_.push_back(prepare(comm_, row_.what, numel, dtype_, op, point_.collective.in_place, parts));
  }
}

Check CollectiveWorkload::verify() {
  int64_t wrong = 0;
  for (int64_t round = 0; round < kVerifyRounds; ++round) {
    const Call& call = calls_[static_cast<size_t>(round) % calls_.size()];
    fill(comm_, call, round);
    perform(call);
    wrong += ::shardmark::num_wrong(comm_, call, round);
    // Sums in place would grow from step to step; zeros stay zero.
    for (const at::Tensor& side : {call.in, call.out}) {
      if (side.defined()) side.zero_();
    }
  }
  estimated_s_ = comm_.estimate_s(calls_.front());
  num_wrong_ = static_cast<int64_t>(group_.sum(static_cast<double>(wrong)));
  comm_.reset_traffic();
  Check check;
  check.wrong = num_wrong_ > 0;
  check.text = check.wrong
                   ? "wrong: " + std::to_string(num_wrong_) + " elements differ from the expected value"
                   : "every element as expected";
  return check;
}

void CollectiveWorkload::begin_window() {
  timeline_.clear();
  in_order_ = comm_.in_order();
  timeline_.mark();
}

void CollectiveWorkload::step() {
  heartbeat_.step();
  perform(next());
  timeline_.mark();
}

std::vector<std::vector<double>> CollectiveWorkload::end_window() {
  const auto marks = timeline_.resolve();
  in_order_.reset();
  std::vector<double> steps;
  for (size_t i = 1; i < marks.size(); ++i) steps.push_back(marks[i].at_s - marks[i - 1].at_s);
  return {steps};
}

void CollectiveWorkload::rate(Measures& m, double operation_s) const {
  m.algbw_gb_s = payload_bytes() / operation_s / 1e9;
  m.busbw_gb_s = calls_.front().bus_bytes(comm_.rank(), comm_.size()) / operation_s / 1e9;
  const auto& parts = calls_.front().parts;
  m.predicted_traffic_bytes = parts == nullptr
                                  ? payload_bytes() * specs::ring_factor(row_.what, comm_.size())
                                  : parts->moved() * static_cast<double>(at::elementSize(dtype_));
}

void CollectiveWorkload::derive(Record& record) const { rate(record.measures, record.measures.step_s); }

std::string CollectiveWorkload::collect(Record& record) {
  Measures& m = record.measures;
  m.num_wrong = num_wrong_;
  m.estimated_s = estimated_s_;
  const auto peak = static_cast<double>(meter::read().peak);
  m.peak_bytes = group_.max(peak);
  const std::vector<double> peaks = group_.gather(std::vector<double>{peak});
  record.samples.push_back({"peak", static_cast<int64_t>(peaks.size()), 1, peaks});
  const Traffic& traffic = comm_.traffic();
  const auto operations = static_cast<double>(std::max<int64_t>(traffic.num_operations, 1));
  m.traffic_bytes = group_.sum(traffic.ring_bytes / operations) / group_.size();
  m.num_operations = 1;
  return {};
}

std::unique_ptr<Workload> make_collective(const WorkloadContext& context) {
  return std::make_unique<CollectiveWorkload>(context);
}

}  // namespace shardmark
