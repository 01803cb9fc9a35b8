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
      row_(specs::operation(point_.collective.operation)),
      dtype_(element_type(point_.collective.dtype)),
      timeline_(comm_.device()) {}

void CollectiveWorkload::allocate() {
  meter::reset_peak();
  const int64_t numel = point_.collective.bytes / static_cast<int64_t>(at::elementSize(dtype_));
  const int64_t cache = last_level_cache_bytes(comm_.device());
  add_set(numel);
  // One set more than fits into the cache: when a set is used again, it has been evicted.
  num_sets_ = std::clamp(cache / std::max<int64_t>(static_cast<int64_t>(moved().payload), 1) + 2, int64_t{2},
                         kMostSets);
  for (int64_t i = 1; i < num_sets_; ++i) add_set(numel);
  comm_.reset_traffic();
}

void CollectiveWorkload::add_set(int64_t numel) {
  std::shared_ptr<const specs::Parts> parts = calls_.empty() ? nullptr : calls_.front().parts;
  if (row_.has_parts && parts == nullptr)
    parts = std::make_shared<specs::Parts>(specs::share_out(choice_from_text(point_.collective.parts),
                                                            comm_.size(), numel / comm_.size() * comm_.size(),
                                                            point_.folder));
  calls_.push_back(prepare(comm_, row_.what, numel, dtype_, reduce_op(point_.collective.reduction),
                           point_.collective.in_place, std::move(parts)));
}

CollectiveWorkload::Moved CollectiveWorkload::moved() const {
  const Call& call = calls_.front();
  const double payload = call.payload_bytes(comm_.rank(), comm_.size());
  const double sent = call.parts == nullptr
                          ? payload * specs::ring_factor(row_.what, comm_.size())
                          : call.parts->moved() * static_cast<double>(at::elementSize(dtype_));
  return {payload, call.bus_bytes(comm_.rank(), comm_.size()), sent};
}

void CollectiveWorkload::fill(size_t set, int64_t round) { ::shardmark::fill(comm_, calls_[set], round); }

int64_t CollectiveWorkload::num_wrong(size_t set, int64_t round) {
  return ::shardmark::num_wrong(comm_, calls_[set], round);
}

void CollectiveWorkload::clear(size_t set) {
  for (const at::Tensor& side : {calls_[set].in, calls_[set].out})
    if (side.defined()) side.zero_();
}

Check CollectiveWorkload::verify() {
  int64_t wrong = 0;
  for (int64_t round = 0; round < kVerifyRounds; ++round) {
    const size_t set = static_cast<size_t>(round % num_sets_);
    fill(set, round);
    perform(set);
    wrong += num_wrong(set, round);
    clear(set);
  }
  estimated_s_ = estimate_s();
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
  in_order_ = in_order();
  timeline_.mark();
}

void CollectiveWorkload::step() {
  heartbeat_.step();
  perform(next_set());
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
  const Moved bytes = moved();
  m.algbw_gb_s = bytes.payload / operation_s / 1e9;
  m.busbw_gb_s = bytes.bus / operation_s / 1e9;
  m.predicted_traffic_bytes = bytes.sent;
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
  const auto operations = static_cast<double>(std::max<int64_t>(num_started_, 1));
  m.traffic_bytes = group_.sum(traffic.ring_bytes / operations) / group_.size();
  m.num_operations = 1;
  return {};
}

std::unique_ptr<Workload> make_collective(const WorkloadContext& context) {
  const CollectivePoint& point = context.point.collective;
  if (specs::operation(point.operation).moves_tokens) return make_token_exchange(context);
  return std::make_unique<CollectiveWorkload>(context);
}

}  // namespace shardmark
