#include "analysis/bmwg/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "analysis/frame/slowest.h"
#include "analysis/frame/together.h"
#include "base/stats.h"
#include "specs/algorithms.h"

namespace shardmark {

double jain_index(const std::vector<double>& throughputs) {
  double sum = 0, squares = 0;
  for (const double x : throughputs) sum += x, squares += x * x;
  return sum * sum / (static_cast<double>(throughputs.size()) * squares);
}

double BmwgCollective::busbw_at(double share) const {
  std::vector<double> rates;
  for (const double time_s : times_s) rates.push_back(moved_bytes / time_s);
  return quantile(std::move(rates), share);
}

double BmwgCollective::mean_busbw() const { return moved_bytes / mean(times_s); }

namespace {

bool has_factor(const std::string& operation) {
  for (const char* known : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "all_to_all_v"})
    if (operation == known) return true;
  return false;
}

// A rank's time over all iterations stands for its throughput: the bytes are the same.
double fairness_of_ranks(const MergedPoint& merged) {
  std::vector<double> throughputs;
  for (int64_t rank = 0; rank < merged.point.ranks; ++rank) {
    double time_s = 0;
    for (const Record* record : merged.records)
      if (const Series* steps = record->series("step"); steps != nullptr && rank < steps->rows)
        for (int64_t step = 0; step < steps->columns; ++step) time_s += steps->at(rank, step);
    throughputs.push_back(1 / time_s);
  }
  return jain_index(throughputs);
}

std::string variable_of(const MergedPoint& merged, const char* name) {
  const auto& variables = *merged.environments.front()->variables;
  return variables.contains(name) ? variables[name].get<std::string>() : "";
}

// The algorithm of NCCL is its own choice, by size, unless a variable names it; neither was traced.
std::string algorithm_of(const MergedPoint& merged) {
  const CollectivePoint& c = merged.point.collective;
  if (merged.transport == "mpi")
    return "verified: " +
           specs::mpi_algorithm(specs::collective(c.operation).what, c.bytes, merged.point.ranks);
  const std::string asked = merged.environments.empty() ? "" : variable_of(merged, "NCCL_ALGO");
  return asked.empty() ? "not verified" : fmt::format("not verified: NCCL_ALGO={} was asked for", asked);
}

// Pieces go straight from every rank to every other one, so by how many of those are on other nodes.
double fabric_bytes_of(const MergedPoint& merged) {
  const Point& p = merged.point;
  if (merged.nodes == 1) return 0;
  if (merged.transport != "mpi" || merged.ranks_per_node == 0 || merged.nodes == 0 ||
      specs::is_short(p.collective.bytes, p.ranks))
    return Measures::kNone;
  const double others = static_cast<double>(p.ranks - 1),
               away = static_cast<double>(p.ranks - merged.ranks_per_node);
  return static_cast<double>(p.collective.bytes) *
         specs::ring_factor(specs::collective(p.collective.operation).what, p.ranks) * away / others;
}

double variation_of(const MergedPoint& merged) {
  std::vector<double> medians;
  for (const Record* record : merged.records)
    if (auto times = slowest_of(*record, "step"); !times.empty()) medians.push_back(median(std::move(times)));
  return medians.size() < 2 ? Measures::kNone : coefficient_of_variation(medians);
}

// Sums over iterations of what took place in each.
class JctSums {
 public:
  JctSums(const MergedPoint& merged, double line_bytes_per_s) : found_{&merged, {}, 0} {
    found_.mean.line_bytes_per_s = line_bytes_per_s;
  }

  // A round of a collective beside a load.
  void add_rounds(const Record& record) {
    const auto load = slowest_of(record, "load_alone"), alone = slowest_of(record, "collective_alone"),
               both = slowest_of(record, "together");
    add(load, alone, both, record.measures.busbw_gb_s * 1e9 * median(alone));
    found_.mean.sequential_s += total(load) + total(alone);
  }

  // Steps, and those that only compute or only communicate, which are fewer.
  void add_steps(const Record& record) {
    const auto steps = slowest_of(record, "step");
    const auto as_many = [&](const char* name) {
      const auto times = slowest_of(record, name);
      return std::vector<double>(steps.size(), times.empty() ? Measures::kNone : mean(times));
    };
    add(as_many("compute_only"), as_many("communication_only"), steps, record.measures.traffic_bytes);
    found_.mean.sequential_s = Measures::kNone;
  }

  BmwgJct mean_of_all() const {
    BmwgJct all = found_;
    const auto count = static_cast<double>(all.iterations);
    for (double* part : {&all.mean.compute_s, &all.mean.communication_s, &all.mean.sequential_s,
                         &all.mean.overlapped_s, &all.mean.moved_bytes})
      *part /= count;
    return all;
  }

 private:
  static double total(const std::vector<double>& times) {
    return std::accumulate(times.begin(), times.end(), 0.0);
  }
  void add(const std::vector<double>& compute, const std::vector<double>& communication,
           const std::vector<double>& overlapped, double moved_bytes) {
    found_.iterations += std::ssize(overlapped);
    found_.mean.compute_s += total(compute);
    found_.mean.communication_s += total(communication);
    found_.mean.overlapped_s += total(overlapped);
    found_.mean.moved_bytes += moved_bytes * static_cast<double>(overlapped.size());
  }
  BmwgJct found_;
};

}  // namespace

std::vector<BmwgCollective> bmwg_collectives(const std::vector<MergedPoint>& points, const BmwgQuery& query) {
  std::vector<BmwgCollective> found;
  for (const MergedPoint& merged : points) {
    if (!is_collective(merged) || merged.point.ranks < 2 || !has_factor(merged.point.collective.operation))
      continue;
    std::vector<double> times;
    for (const Record* record : merged.records)
      for (const double time_s : slowest_of(*record, "step")) times.push_back(time_s);
    if (times.empty()) continue;
    const Measures& m = merged.measures;
    found.push_back({&merged, std::move(times), m.busbw_gb_s * 1e9 * m.step_s, fairness_of_ranks(merged),
                     variation_of(merged), fabric_bytes_of(merged), algorithm_of(merged),
                     query.line_bytes_per_s});
  }
  return found;
}

bool is_interference(const MergedPoint& merged) {
  return is_together(merged) && merged.point.collective.beside.starts_with("collective");
}

std::vector<BmwgJct> bmwg_jcts(const std::vector<MergedPoint>& points, const BmwgQuery& query) {
  std::vector<BmwgJct> found;
  for (const MergedPoint& merged : points) {
    const bool has_step =
        is_training(merged) && merged.measures.compute_only_s > 0 && merged.measures.traffic_bytes > 0;
    if (!has_step && (!together_of(merged) || is_interference(merged))) continue;
    JctSums sums(merged, query.line_bytes_per_s);
    for (const Record* record : merged.records) has_step ? sums.add_steps(*record) : sums.add_rounds(*record);
    if (auto jct = sums.mean_of_all(); jct.iterations > 0) found.push_back(jct);
  }
  return found;
}

}  // namespace shardmark
