// Each metric of the draft: those of its appendix A and of section 4.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "analysis/bmwg/tables.h"
#include "analysis/frame/slowest.h"
#include "analysis/frame/together.h"
#include "analysis/stats/sustained.h"
#include "base/stats.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

constexpr const char* kNoPoint = "no such point was measured";
constexpr const char* kNoLine = "needs --line-rate: what the NICs of a rank carry, 50GB/s for 400 Gbit/s";
constexpr const char* kGenerator = "needs a traffic generator: rates and time stamps at the NICs (3.4)";
constexpr const char* kUet = "needs NICs with Ultra Ethernet Transport";
constexpr const char* kSwitches = "needs counters or settings of the switches";
constexpr const char* kNics = "needs counters of the NICs";
constexpr const char* kFailure = "needs a link that is taken down during the run";

struct Unsaid {
  const char *section, *name, *unit, *why_not;
};
constexpr Unsaid kUnsaid[] = {
    {"5.1", "throughput of RDMA Write", "Tbit/s", kGenerator},
    {"5.2", "one-way latency, P99 and P99.9", "us", kGenerator},
    {"5.3", "burst absorption", "frames", kGenerator},
    {"6.1", "UET throughput", "Gbit/s", kUet},
    {"6.2", "UET first-packet latency", "us", kUet},
    {"6.3", "UET spray efficacy", "", kUet},
    {"6.4", "UET loss without PFC", "%", kUet},
    {"6.5", "link-layer retry latency", "ns", kUet},
    {"6.5", "packet trimming savings", "%", kUet},
    {"6.5", "blocking, CBFC against PFC", "us", kUet},
    {"6.6", "UET collective BusBW", "Gbit/s", kUet},
    {"6.7", "PDC establishment rate", "1/s", kUet},
    {"6.7", "largest number of PDCs", "", kUet},
    {"4.1", "packet drop rate", "ppm", kSwitches},
    {"4.2", "ECN marking ratio", "%", kSwitches},
    {"4.2", "PFC pause count and duration", "1/s, us", kSwitches},
    {"4.2", "queue depth, P95 and largest", "bytes", kSwitches},
    {"4.3", "CPU, memory and power of the switches", "%, W", kSwitches},
    {"4.3", "link flaps, CRC errors", "", kSwitches},
    {"7.1", "ECN accuracy", "%", kSwitches},
    {"7.2", "PFC behavior under incast", "1/s", kSwitches},
    {"7.4", "PFC deadlock", "", kSwitches},
    {"8.1", "ECMP imbalance (MMR), JFI of links", "", kSwitches},
    {"8.2", "DLB efficacy", "%", kSwitches},
    {"8.3", "spray efficacy", "", kSwitches},
    {"11.1", "route convergence", "ms", kSwitches},
    {"12.2", "memory by time, slope", "MB/h",
     "needs memory of the switches' processes by time; of ranks a study has the peak alone"},
    {"4.2", "RDMA retransmissions, out-of-order packets", "1/s", kNics},
    {"7.3", "DCQCN convergence", "us", kNics},
    {"10.2", "MLPerf JCT", "min", "needs MLPerf's workloads; the models here are others"},
    {"11.2", "failover time", "us", kFailure},
    {"11.3", "JCT of the iteration with a failure", "ms", kFailure}};

// Of the rows for which `holds` is true the one on most ranks with the largest message; nullptr: none.
template <class Row, class Holds>
const Row* most_telling(const std::vector<Row>& rows, Holds holds) {
  const Row* found = nullptr;
  const auto size = [](const Row& row) {
    return std::tuple(row.merged->point.ranks, row.merged->point.collective.bytes);
  };
  for (const Row& row : rows)
    if (holds(row) && (found == nullptr || size(*found) < size(row))) found = &row;
  return found;
}

class Metrics {
 public:
  Metrics(const std::vector<MergedPoint>& points, const BmwgQuery& query)
      : collectives_(bmwg_collectives(points, query)), jcts_(bmwg_jcts(points, query)) {}

  // A value that is a NaN has its reason.
  void add(const char* section, const char* name, const char* unit, double value, const MergedPoint* of,
           int64_t samples, const char* why_not) {
    BmwgMetric metric{section, name, unit};
    if (std::isnan(value)) {
      metric.why_not = of == nullptr ? kNoPoint : why_not;
    } else {
      metric.value = value;
      metric.samples = samples;
      metric.of = of == nullptr ? "" : brief_text(of->point);
    }
    found_.push_back(std::move(metric));
  }

  void add_collective(const char* section, const char* operation, const char* name, const char* unit,
                      double (*value_of)(const BmwgCollective&), const char* why_not = "") {
    const BmwgCollective* row = largest(operation);
    if (row == nullptr) return add(section, name, unit, Measures::kNone, nullptr, 0, kNoPoint);
    add(section, name, unit, value_of(*row), row->merged, std::ssize(row->times_s), why_not);
  }

  void add_jct(const char* name, const char* unit, bool of_training,
               double (*value_of)(const JctIteration&)) {
    const BmwgJct* row =
        most_telling(jcts_, [&](const BmwgJct& jct) { return is_training(*jct.merged) == of_training; });
    if (row == nullptr) return add("10.1", name, unit, Measures::kNone, nullptr, 0, kNoPoint);
    add("10.1", name, unit, value_of(row->mean), row->merged, row->iterations, kNoLine);
  }

  const BmwgCollective* largest(const std::string& operation) const {
    return most_telling(collectives_, [&](const BmwgCollective& row) {
      return row.merged->point.collective.operation == operation;
    });
  }
  // The same message on the same ranks of two operations.
  void add_gather_ratio() {
    const BmwgCollective *gather = largest("all_gather"), *reduce = largest("all_reduce");
    const bool alike = gather != nullptr && reduce != nullptr &&
                       gather->merged->point.ranks == reduce->merged->point.ranks &&
                       gather->merged->point.collective.bytes == reduce->merged->point.collective.bytes;
    add("9.3", "BusBW ratio AllGather / AllReduce", "",
        alike ? gather->busbw_at(0.5) / reduce->busbw_at(0.5) : Measures::kNone,
        gather == nullptr ? nullptr : gather->merged, gather == nullptr ? 0 : std::ssize(gather->times_s),
        "needs both at one size on as many ranks");
  }

  void add_variation() {
    const BmwgCollective* worst = nullptr;
    for (const BmwgCollective& row : collectives_)
      if (row.variation >= 0 && (worst == nullptr || row.variation > worst->variation)) worst = &row;
    const MergedPoint* any = collectives_.empty() ? nullptr : collectives_.front().merged;
    add("13", "largest CV of repeats", "%", worst == nullptr ? Measures::kNone : 100 * worst->variation,
        worst == nullptr ? any : worst->merged, worst == nullptr ? 0 : worst->merged->repeats,
        "needs repeats");
  }

  void add_interference(const std::vector<MergedPoint>& points) {
    const MergedPoint* worst = nullptr;
    double factor = Measures::kNone;
    int64_t rounds = 0;
    for (const MergedPoint& merged : points)
      if (const auto found = together_of(merged);
          found && is_interference(merged) && !(found->collective_slowdown <= factor)) {
        worst = &merged, factor = found->collective_slowdown, rounds = 0;
        for (const Record* record : merged.records) rounds += record->measures.num_steps;
      }
    add("10.3", "largest interference factor of two collectives", "", factor, worst, rounds, kNoPoint);
  }

  // The roofline of a collective alone is a constant: the JCT ratio varies as the JCT does.
  void add_soak(const std::vector<MergedPoint>& points) {
    const MergedPoint* worst = nullptr;
    double most = Measures::kNone;
    int64_t intervals = 0;
    for (const Sustained& run : sustained_runs(points)) {
      const auto times = slowest_of(*run.record, "interval_time");
      const double variation = times.size() < 2 ? Measures::kNone : coefficient_of_variation(times);
      if (variation <= most || std::isnan(variation)) continue;
      worst = run.about, most = variation, intervals = std::ssize(times);
    }
    add("12.1", "soak: standard deviation of the JCT ratio / its mean", "%", 100 * most, worst, intervals,
        kNoPoint);
  }

  std::vector<BmwgMetric> found() && {
    for (const Unsaid& unsaid : kUnsaid)
      found_.push_back(
          {.section = unsaid.section, .name = unsaid.name, .unit = unsaid.unit, .why_not = unsaid.why_not});
    std::vector<std::string> reasons = {""};  // what has a value comes first
    for (const BmwgMetric& metric : found_)
      if (std::find(reasons.begin(), reasons.end(), metric.why_not) == reasons.end())
        reasons.push_back(metric.why_not);
    std::stable_sort(found_.begin(), found_.end(), [&](const BmwgMetric& a, const BmwgMetric& b) {
      const auto place = [&](const BmwgMetric& metric) {
        return std::find(reasons.begin(), reasons.end(), metric.why_not);
      };
      return place(a) < place(b);
    });
    return std::move(found_);
  }

 private:
  std::vector<BmwgCollective> collectives_;
  std::vector<BmwgJct> jcts_;
  std::vector<BmwgMetric> found_;
};

double busbw_gbit(const BmwgCollective& row) { return 8 * row.busbw_at(0.5) / 1e9; }
double aggregate_tbit(const BmwgCollective& row) {
  const double bytes = row.fabric_bytes * static_cast<double>(row.merged->point.ranks);
  return bytes > 0 ? 8 * bytes / quantile(row.times_s, 0.5) / 1e12 : Measures::kNone;
}

}  // namespace

std::vector<BmwgMetric> bmwg_metrics(const std::vector<MergedPoint>& points, const BmwgQuery& query) {
  Metrics metrics(points, query);
  const BmwgCollective* const reduce = metrics.largest("all_reduce");
  metrics.add_collective("4.1", "all_reduce", "aggregate throughput, AllReduce", "Tbit/s", aggregate_tbit,
                         reduce != nullptr && reduce->fabric_bytes == 0
                             ? "needs several nodes: within one nothing crosses the fabric"
                             : "needs the algorithm, for S_fabric");
  metrics.add_collective("8.4", "all_to_all", "JFI of ranks, AllToAll", "",
                         [](const BmwgCollective& row) { return row.rank_fairness; });
  metrics.add_collective("9.1", "all_reduce", "AllReduce BusBW, P50", "Gbit/s", busbw_gbit);
  metrics.add_collective(
      "9.1", "all_reduce", "AllReduce BusBW efficiency", "%",
      [](const BmwgCollective& row) { return 100 * row.efficiency(); }, kNoLine);
  metrics.add_collective("9.2", "all_to_all", "AllToAll BusBW, P50", "Gbit/s", busbw_gbit);
  metrics.add_collective("9.2", "all_to_all", "AllToAll JCT, P99", "ms",
                         [](const BmwgCollective& row) { return 1e3 * quantile(row.times_s, 0.99); });
  metrics.add_collective("9.3", "all_gather", "AllGather BusBW, P50", "Gbit/s", busbw_gbit);
  metrics.add_gather_ratio();
  metrics.add_jct("JCT, synthetic", "ms", false,
                  [](const JctIteration& jct) { return 1e3 * jct.sequential_s; });
  metrics.add_jct("JCT ratio, synthetic", "", false,
                  [](const JctIteration& jct) { return jct.sequential_ratio(); });
  metrics.add_jct("overlap fraction, synthetic", "", false,
                  [](const JctIteration& jct) { return jct.overlap_fraction(); });
  metrics.add_jct("JCT ratio, training step", "", true,
                  [](const JctIteration& jct) { return jct.overlapped_ratio(); });
  metrics.add_jct("overlap fraction, training step", "", true,
                  [](const JctIteration& jct) { return jct.overlap_fraction(); });
  metrics.add_interference(points);
  metrics.add_collective(
      "11.1", "all_reduce", "most ranks measured, AllReduce", "",
      [](const BmwgCollective& row) { return static_cast<double>(row.merged->point.ranks); });
  metrics.add_soak(points);
  metrics.add_variation();
  return std::move(metrics).found();
}

}  // namespace shardmark
