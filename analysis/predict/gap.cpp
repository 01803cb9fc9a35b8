// Means over the middle half of the steps are robust like medians, and unlike them they add up.
#include "analysis/predict/gap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/frame/known.h"

namespace shardmark {
namespace {

struct Parts {
  double step_s, compute_s, skew_s, communication_s;
};

// Splits each step by its exposed times. The rank that waits least is the last to arrive, so it waits for
// the links alone; what the others wait longer than this rank is due to ranks that are slower. All parts
// are means over ranks.
std::vector<Parts> parts_of_steps(const MergedPoint& merged) {
  std::vector<Parts> parts;
  for (const Record* record : merged.records) {
    const Series* step = record->series("step");
    const Series* exposed = record->series("exposed");
    if (step == nullptr || exposed == nullptr || step->rows < 1 || step->rows != exposed->rows ||
        step->columns != exposed->columns)
      continue;
    const auto ranks = static_cast<double>(step->rows);
    for (int64_t column = 0; column < step->columns; ++column) {
      double whole = 0, waited = 0, least = exposed->at(0, column);
      for (int64_t rank = 0; rank < step->rows; ++rank) {
        whole += step->at(rank, column) / ranks;
        waited += exposed->at(rank, column) / ranks;
        least = std::min(least, exposed->at(rank, column));
      }
      if (std::isfinite(whole) && std::isfinite(waited))
        parts.push_back({whole, whole - waited, waited - least, least});
    }
  }
  return parts;
}

void add_measured(Gap& gap) {
  std::vector<Parts> parts = parts_of_steps(*gap.merged);
  if (parts.empty()) return;
  std::sort(parts.begin(), parts.end(), [](const Parts& a, const Parts& b) { return a.step_s < b.step_s; });
  // The steps are sorted by length, and a quarter is left out at each end.
  const size_t first = parts.size() / 4, last = parts.size() - first;
  const auto mean = [&](double Parts::*part) {
    double sum = 0;
    for (size_t i = first; i < last; ++i) sum += parts[i].*part;
    return sum / static_cast<double>(last - first);
  };
  gap.step_s = mean(&Parts::step_s);
  gap.compute_s = mean(&Parts::compute_s);
  gap.skew_s = mean(&Parts::skew_s);
  gap.communication_s = mean(&Parts::communication_s);
}

void add_caveat(Gap& gap, const std::string& caveat) {
  if (std::find(gap.caveat.begin(), gap.caveat.end(), caveat) == gap.caveat.end())
    gap.caveat.push_back(caveat);
}

// Says where the expectation is not a measured time of this operation, size and span.
void add_caveats(Gap& gap, const strategies::CollectiveCall& operation, const CollectiveCosts& costs) {
  const specs::Span span = span_of(operation, gap.merged->ranks_per_node);
  const auto basis = costs.basis(operation.what, operation.bytes, span);
  if (!basis || span.ranks < 2) return;
  if (basis->operation != operation.what)
    add_caveat(gap, operation.name() + " as " + specs::collective(basis->operation).name);
  if (!basis->within_sizes) add_caveat(gap, "sizes outside those measured");
  if (!(basis->span == span)) add_caveat(gap, "other ranks or nodes than measured");
}

void add_expected(Gap& gap, const strategies::Program& program, const Predictor& predictor) {
  const CollectiveCosts& costs = predictor.collectives();
  const std::vector<double> seconds = operation_times(program, costs, gap.merged->ranks_per_node);
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (!std::isfinite(seconds[i])) {
      gap.missing = "no measured times of " + program.calls[i].name() + " or a similar operation";
      return;
    }
    add_caveats(gap, program.calls[i], costs);
  }
  gap.operations_s = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  const auto point = known_point(gap.merged->point);
  const auto compute = point ? measured_compute(*gap.merged, *point) : std::nullopt;
  if (!compute) {
    gap.missing = "no per-block times";
    return;
  }
  gap.expected_exposed_s = simulate(program, compute->times, seconds, predictor.progress()).exposed_s;
}

}  // namespace

std::vector<Gap> gaps(const std::vector<MergedPoint>& points, const std::vector<Predictor>& predictors) {
  std::vector<Gap> all;
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || is_replicas(merged) || merged.point.ranks < 2 || merged.records.empty())
      continue;
    const Series* series = merged.records.front()->series("program");
    if (series == nullptr) continue;
    strategies::Program program = program_or_nothing(*series);
    if (program.calls.empty()) continue;
    // A series does not say what hides the calls inside blocks.
    if (merged.point.is_model_parallel())
      if (auto known = known_program(merged.point)) program = std::move(*known);
    Gap& gap = all.emplace_back();
    gap.merged = &merged;
    add_measured(gap);
    if (const Predictor* predictor = predictor_of(merged, predictors)) add_expected(gap, program, *predictor);
  }
  return all;
}

}  // namespace shardmark
