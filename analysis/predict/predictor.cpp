// Calibration, prediction, and the check on points that were left out.
#include "analysis/predict/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "analysis/frame/known.h"
#include "analysis/frame/together.h"
#include "base/stats.h"
#include "specs/collectives.h"
#include "strategies/program_series.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

constexpr int kDraws = 40;
constexpr double kMostError = 0.5;  // counted of a point, so that none decides alone

// What has to be given, because no collective was measured there.
std::string unknown_link(const CollectiveCosts& costs, const Cluster& cluster, int64_t ranks) {
  const auto is_known = [&](specs::Span span) {
    return std::isfinite(costs.time_s(specs::Collective::all_reduce, 1024, span));
  };
  if (cluster.ranks_per_node > 1 && !is_known({cluster.ranks_per_node, 1}))
    return "no link within a node was measured; give --node-link";
  if (ranks > cluster.ranks_per_node && !is_known({ranks, ranks}))
    return "no link between nodes was measured; give --network";
  return "no collective was measured";
}

// The program of the step that was measured, which another version of this program may have written. Layouts
// are simulated by today's: a record does not say what its calls wait for.
std::optional<strategies::Program> recorded_program(const MergedPoint& merged) {
  if (merged.point.is_model_parallel()) return std::nullopt;
  const Series* series = merged.records.front()->series("program");
  if (series == nullptr) return std::nullopt;
  strategies::Program program = program_or_nothing(*series);
  return program.instructions.empty() ? std::nullopt : std::optional(std::move(program));
}

std::string why_impossible(const Point& point) {
  if (std::string why = strategies::layout_impossible(point); !why.empty()) return why;
  const strategies::RankStep first(point);
  return strategies::strategy(point.training.strategy.name).impossible(first.input());
}

// How much of a second's communication gets done in a second of computing, where it was measured: median of
// the points that have a collective beside a matrix product or a block.
std::optional<double> progress_in(const std::vector<MergedPoint>& points, const std::string& machine,
                                  const std::string& transport) {
  std::vector<double> measured;
  for (const MergedPoint& merged : points) {
    const std::string& beside = merged.point.collective.beside;
    if (merged.machine != machine || merged.transport != transport || is_unreliable(merged) ||
        !(beside.starts_with("matmul") || beside.starts_with("block")))
      continue;
    if (const auto found = together_of(merged)) measured.push_back(found->progress());
  }
  return measured.empty() ? std::nullopt : std::optional(median(std::move(measured)));
}

double total(const OperationCounts& counts) { return std::accumulate(counts.begin(), counts.end(), 0.0); }

int64_t nodes_of(int64_t ranks, int64_t ranks_per_node) {
  ranks_per_node = std::max<int64_t>(ranks_per_node, 1);
  return (ranks + ranks_per_node - 1) / ranks_per_node;
}
int64_t nodes_of(const MergedPoint& merged) {
  return merged.nodes > 0 ? merged.nodes : nodes_of(merged.point.ranks, merged.ranks_per_node);
}

// Waiting, for whatever the operations are for.
void add_growth(SimulatedStep& step, const Growth& growth, int64_t nodes, const OperationCounts& across) {
  for (size_t dimension = 0; dimension < across.size(); ++dimension) {
    const double added_s = growth.added_s(nodes, across[dimension]).value;
    step.waited_s[dimension] += added_s;
    step.exposed_s += added_s;
    step.step_s += added_s;
  }
}

void set_memory(Prediction& prediction, const Stages& stages, double activation_bytes_per_sample) {
  const auto samples = static_cast<double>(prediction.point.training.batch_size);
  const strategies::StagesCost cost = strategies::cost_of(stages, samples);
  prediction.cost = cost.cost;
  prediction.memory_bytes =
      cost.cost.state_bytes() +
      (prediction.point.is_model_parallel() ? cost.activation_bytes : samples * activation_bytes_per_sample);
}

}  // namespace

strategies::Program program_or_nothing(const Series& series) {
  try {
    return strategies::program_of(series);
  } catch (const UsageError&) {
    return {};
  }
}

Predictor::Predictor(const std::vector<MergedPoint>& points, const std::string& machine,
                     const std::string& transport)
    : machine_(machine), transport_(transport), costs_(timed_collectives(points, machine, transport)) {
  // First everything that is measured is collected: computing by family, and the replays of measured steps,
  // which calibrate stretch and progress. Only then are points held out, because each of them is predicted
  // from all the others. Growth comes last, because it is fitted to the errors of the held-out points.
  std::map<std::string, std::vector<MeasuredCompute>> families;
  std::vector<std::pair<const MergedPoint*, Point>> communicating;
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || is_unreliable(merged) || merged.machine != machine ||
        merged.transport != transport)
      continue;
    auto point = known_point(merged.point);
    const auto measured = point ? measured_compute(merged, *point) : std::nullopt;
    if (!measured) continue;
    families[computing_family(merged.point)].push_back(*measured);
    if (auto replayed = replay(*measured)) {
      for (size_t i = 0; i < kNumProgress; ++i) errors_[i] += replayed->error[i];
      for (const std::string& key : {replayed->strategy, std::string()})
        stretches_[key].push_back(replayed->stretch);
      replayed_.emplace(&merged, std::move(*replayed));
    }
    if (communicates(*point)) communicating.emplace_back(&merged, std::move(*point));
  }
  measured_progress_ = progress_in(points, machine, transport);
  for (auto& [key, stretches] : stretches_) std::sort(stretches.begin(), stretches.end());
  for (auto& [family, measured] : families) families_.emplace(family, std::move(measured));
  for (const auto& [merged, point] : communicating) hold_out(*merged, point);
  fit_growth_with_nodes();
}

void Predictor::hold_out(const MergedPoint& merged, const Point& point) {
  const Cluster cluster{std::max<int64_t>(merged.ranks_per_node, 1)};
  const Prediction prediction = predict(merged, point, cluster, &merged, /*with_interval=*/false);
  if (prediction.unknown.empty()) held_out_.push_back({&merged, prediction.parts, prediction.across_nodes});
}

// Each held-out point then has the growth that the others say.
void Predictor::fit_growth_with_nodes() {
  std::vector<GrowthRow> rows;
  for (const HeldOut& held : held_out_)
    rows.push_back({nodes_of(*held.merged), total(held.across_nodes), held.predicted.step_s,
                    held.merged->measures.step_s});
  growth_ = fit_growth(rows);
  if (!growth_ || !growth_->is_seen()) return;
  for (size_t i = 0; i < rows.size(); ++i) {
    Growth of_others = *growth_;
    of_others.operation_s.value = std::max(0.0, growth_without(rows, i));
    add_growth(held_out_[i].predicted, of_others, rows[i].nodes, held_out_[i].across_nodes);
  }
}

// It was fitted on the network that was measured.
bool Predictor::uses_growth(const Cluster& cluster) const {
  return growth_ && growth_->is_seen() && !cluster.network;
}

// Plays a measured step again with its own program, its own computing and the study's collectives.
// Operations of a step may take longer than the same collectives by themselves (`stretch`: the step's
// operations, measured without its computing, over what the collectives say). With that taken out, the
// length of the simulated step depends only on how much communication goes on while computing; it is
// simulated for each value of progress.
std::optional<Predictor::Replayed> Predictor::replay(const MeasuredCompute& measured) const {
  const MergedPoint& merged = *measured.merged;
  const auto program = recorded_program(merged);
  if (merged.point.ranks < 2 || !program || program->calls.empty()) return std::nullopt;
  auto seconds = operation_times(*program, costs_, merged.ranks_per_node);
  if (!all_known(seconds)) return std::nullopt;
  const double alone_s = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  const double stretch = merged.measures.communication_only_s / alone_s;
  Replayed replayed{measured.strategy, stretch > 0 ? stretch : 1, {}};
  for (double& one : seconds) one *= replayed.stretch;
  for (size_t i = 0; i < kNumProgress; ++i) {
    const SimulatedStep step = simulate(*program, measured.times, seconds, progress_at(i));
    replayed.error[i] = std::min(kMostError, std::abs(std::log(step.step_s / merged.measures.step_s)));
  }
  return replayed;
}

std::string Predictor::growth_text(const Cluster& cluster) const {
  if (uses_growth(cluster)) return growth_->text();
  std::string why = "that takes 6 points across nodes or more, on several numbers of nodes";
  if (growth_)
    why = fmt::format("{} points on {} to {} nodes show none", growth_->num_rows, growth_->least_nodes,
                      growth_->most_nodes);
  if (cluster.network) why = "--network names links that were not measured";
  return "No growth of steps with nodes counts in: " + why + ".";
}

double Predictor::stretch_of(const std::string& strategy, const MergedPoint* without) const {
  const auto left_out = replayed_.find(without);
  for (const std::string& key : {strategy, std::string()}) {
    const auto found = stretches_.find(key);
    if (found == stretches_.end()) continue;
    std::vector<double> stretches = found->second;
    if (left_out != replayed_.end() && (key.empty() || left_out->second.strategy == key))
      stretches.erase(std::lower_bound(stretches.begin(), stretches.end(), left_out->second.stretch));
    if (!stretches.empty()) return median(std::move(stretches));
  }
  return 1;
}

// One value for all points, as progress belongs to the machine and transport. If it was measured, that
// counts. Else it is the value with which replayed steps are off least, in the mean of their logarithms.
// For a point that is held out, its own error is taken off the sums first. Without any replayed step the
// result is 0.
double Predictor::progress_of(const MergedPoint* without) const {
  if (measured_progress_) return *measured_progress_;
  auto errors = errors_;
  if (const auto left_out = replayed_.find(without); left_out != replayed_.end())
    for (size_t i = 0; i < kNumProgress; ++i) errors[i] -= left_out->second.error[i];
  return progress_at(static_cast<size_t>(std::min_element(errors.begin(), errors.end()) - errors.begin()));
}

CollectiveCosts Predictor::collectives_on(const Cluster& cluster) const {
  CollectiveCosts costs = cluster.node_link ? costs_.within(*cluster.node_link) : costs_;
  return cluster.network ? costs.over(*cluster.network) : costs;
}

size_t Predictor::num_measured() const {
  size_t num = 0;
  for (const auto& [family, computing] : families_) num += computing.num_measured();
  return num;
}

Prediction Predictor::predict(const MergedPoint& like, const Point& point, const Cluster& cluster) const {
  return predict(like, point, cluster, nullptr, /*with_interval=*/true);
}

Prediction Predictor::estimate(const MergedPoint& like, const Point& point, const Cluster& cluster) const {
  return predict(like, point, cluster, nullptr, /*with_interval=*/false);
}

Prediction Predictor::predict(const MergedPoint& like, const Point& point, const Cluster& cluster,
                              const MergedPoint* without, bool with_interval) const {
  Prediction prediction{point};
  const auto found = families_.find(computing_family(like.point));
  const auto table = known_table(point.training.model);
  if (!table || found == families_.end()) {
    prediction.unknown = "no training point has per-block times";
    return prediction;
  }
  if (prediction.unknown = why_impossible(point); !prediction.unknown.empty()) return prediction;

  // Ranks of a node share its memory and its cores, so computing depends on how many of them there are: on
  // a full node of the cluster, or all ranks if they are fewer.
  const ComputeCosts& computing = found->second;
  const int64_t ranks_here = std::min(point.ranks, cluster.ranks_per_node);
  const auto times = computing.times(point, ranks_here, *table, without);
  if (!times) {
    prediction.unknown = "no other training point gives the time of its computing";
    return prediction;
  }
  // Stretch was measured on the study's own links. It does not apply to links that the user names.
  const bool as_measured = !cluster.network && !cluster.node_link;
  const std::optional<CollectiveCosts> other =
      as_measured ? std::nullopt : std::optional(collectives_on(cluster));
  const CollectiveCosts& costs = other ? *other : costs_;
  Stages stages(point);
  // A held-out point is simulated by the program that was measured, as it is the measured step that is to
  // be predicted. All other predictions use the programs of this version.
  if (const auto recorded = without == nullptr ? std::nullopt : recorded_program(*without))
    stages.programs = {*recorded};
  const double stretch = as_measured ? stretch_of(to_text(point.training.strategy), without) : 1;
  prediction.stages = simulated(stages, *times);
  if (!set_operations(prediction.stages, stages, costs, cluster.ranks_per_node, stretch)) {
    prediction.unknown = unknown_link(costs, cluster, point.ranks);
    return prediction;
  }
  prediction.progress = progress_of(without);
  prediction.parts = simulate(prediction.stages, prediction.progress);
  prediction.step_s = {prediction.parts.step_s, Measures::kNone, Measures::kNone};
  prediction.by_flops = !computing.has_measured(strategies::split_of(point));
  if (with_interval) prediction.step_s = interval(prediction, stages, costs, cluster.ranks_per_node, stretch);
  prediction.across_nodes = operations_across(stages, cluster.ranks_per_node);
  if (without == nullptr && uses_growth(cluster)) {
    const int64_t nodes = nodes_of(point.ranks, cluster.ranks_per_node);
    const Estimate added = growth_->added_s(nodes, total(prediction.across_nodes));
    add_growth(prediction.parts, *growth_, nodes, prediction.across_nodes);
    prediction.step_s.value += added.value;
    prediction.step_s.low += added.low;
    prediction.step_s.high += added.high;
    prediction.growth = growth_;
  }
  if (without == nullptr)  // else nothing more is asked
    set_memory(prediction, stages, computing.activation_bytes_per_sample());
  for (strategies::SimulatedRank& stage : prediction.stages) stage.program = nullptr;
  return prediction;
}

// The interval has two sources. alpha and beta of the links are uncertain, so they are drawn kDraws times.
// And the simulation itself is off by what it is off on held-out points: a step that was predicted with
// error e took predicted / (1 + e). Each draw is combined with every such error; the percentiles of all of
// these are the interval.
Estimate Predictor::interval(const Prediction& prediction, const Stages& stages, const CollectiveCosts& costs,
                             int64_t ranks_per_node, double stretch) const {
  const double step_s = prediction.parts.step_s;
  if (held_out_.empty()) return {step_s, Measures::kNone, Measures::kNone};
  std::mt19937_64 random(1);
  std::vector<double> drawn;
  std::vector<strategies::SimulatedRank> others = prediction.stages;
  for (int i = 0; i < kDraws; ++i) {
    set_operations(others, stages, costs.drawn(random), ranks_per_node, stretch);
    const double drawn_s = simulate(others, prediction.progress).step_s;
    for (const HeldOut& held : held_out_) drawn.push_back(drawn_s / (1 + held.error()));
  }
  std::sort(drawn.begin(), drawn.end());
  const auto at = [&](double q) {
    return drawn[static_cast<size_t>(q * static_cast<double>(drawn.size() - 1))];
  };
  return {step_s, std::min(step_s, at(0.025)), std::max(step_s, at(0.975))};
}

std::vector<Predictor> make_predictors(const std::vector<MergedPoint>& points) {
  std::set<std::pair<std::string, std::string>> settings;
  for (const MergedPoint& merged : points)
    if (is_training(merged)) settings.emplace(merged.machine, merged.transport);
  std::vector<Predictor> predictors;
  predictors.reserve(settings.size());
  for (const auto& [machine, transport] : settings) predictors.emplace_back(points, machine, transport);
  return predictors;
}

const Predictor* predictor_of(const MergedPoint& merged, const std::vector<Predictor>& predictors) {
  for (const Predictor& one : predictors)
    if (one.machine() == merged.machine && one.transport() == merged.transport) return &one;
  return nullptr;
}

}  // namespace shardmark
