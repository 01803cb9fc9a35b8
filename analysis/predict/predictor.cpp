// Calibration, prediction, and the check on points that were left out.
#include "analysis/predict/predictor.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "analysis/known.h"
#include "base/stats.h"
#include "specs/collectives.h"
#include "strategies/program_series.h"
#include "strategies/strategy.h"

namespace shardmark {
namespace {

constexpr int kDraws = 40;
constexpr double kMostError = 0.5;  // counted of a point, so that none decides alone

bool is_rooted_start(const strategies::Program& program, const strategies::Instruction& instruction) {
  return instruction.what == strategies::Instruction::What::start &&
         program.calls[static_cast<size_t>(instruction.index)].root.has_value();
}

// Operations that start one after the other, from or to different roots, use different links at once: passed
// on around a ring, the busiest link carries all bytes but those of the root that has least. Balanced roots
// then take what an all-gather of their bytes takes.
void share_links(const strategies::Program& program, std::vector<double>& seconds) {
  const auto& instructions = program.instructions;
  for (size_t begin = 0, end = 0; begin < instructions.size(); begin = std::max(end, begin + 1)) {
    std::map<int64_t, double> bytes;  // by root
    double total = 0;
    std::vector<size_t> calls;
    for (end = begin; end < instructions.size(); ++end) {
      const strategies::Instruction& instruction = instructions[end];
      if (!instruction.is_compute() && !instruction.is_communication()) continue;
      if (!is_rooted_start(program, instruction)) break;
      for (int64_t i = instruction.index; i < instruction.index + instruction.count; ++i) {
        const auto& call = program.calls[calls.emplace_back(i)];
        bytes[*call.root] += call.bytes;
        total += call.bytes;
      }
    }
    if (calls.empty()) continue;
    const int64_t ranks = program.calls[calls.front()].team.ranks;
    double least = static_cast<int64_t>(bytes.size()) < ranks ? 0 : total;
    for (const auto& [root, of_root] : bytes) least = std::min(least, of_root);
    for (const size_t call : calls)
      if (total > 0) seconds[call] *= 1 - least / total;
  }
}

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

// The program of the step that was measured, which another version of this program may have written.
std::optional<strategies::Program> recorded_program(const MergedPoint& merged) {
  const Series* series = merged.records.front()->series("program");
  if (series == nullptr) return std::nullopt;
  strategies::Program program = program_or_nothing(*series);
  return program.instructions.empty() ? std::nullopt : std::optional(std::move(program));
}

void stretch_all(std::vector<double>& seconds, double factor) {
  for (double& one : seconds) one *= factor;
}

bool any_unknown(const std::vector<double>& seconds) {
  return std::any_of(seconds.begin(), seconds.end(), [](double one) { return !std::isfinite(one); });
}

}  // namespace

// Equal operations are asked for once.
std::vector<double> operation_times(const strategies::Program& program, const CollectiveCosts& costs,
                                    int64_t ranks_per_node) {
  std::map<std::tuple<specs::Collective, double, int64_t, int64_t>, double> known;
  std::vector<double> seconds;
  seconds.reserve(program.calls.size());
  for (const strategies::CollectiveCall& o : program.calls) {
    const auto [found, is_new] = known.try_emplace({o.what, o.bytes, o.team.ranks, o.team.stride}, 0);
    if (is_new) found->second = costs.time_s(o.what, o.bytes, span_of(o, ranks_per_node));
    seconds.push_back(found->second);
  }
  share_links(program, seconds);
  return seconds;
}

strategies::Program program_or_nothing(const Series& series) {
  try {
    return strategies::program_of(series);
  } catch (const UsageError&) {
    return {};
  }
}

specs::Span span_of(const strategies::CollectiveCall& operation, int64_t ranks_per_node) {
  const auto& [ranks, stride] = operation.team;
  if (ranks_per_node <= 0) return {ranks, 1};
  return specs::span_of(ranks, std::max<int64_t>(stride, 1), ranks_per_node);
}

Predictor::Predictor(const std::vector<MergedPoint>& points, const std::string& machine,
                     const std::string& transport)
    : machine_(machine), transport_(transport), costs_(timed_collectives(points, machine, transport)) {
  std::map<std::string, std::vector<MeasuredCompute>> families;
  std::vector<std::pair<const MergedPoint*, Point>> communicating;
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || is_unreliable(merged) || merged.machine != machine ||
        merged.transport != transport)
      continue;
    auto point = known_point(merged.point);
    const auto measured = point ? measured_compute(merged, *point) : std::nullopt;
    if (!measured) continue;
    families[merged.family].push_back(*measured);
    if (auto replayed = replay(*measured)) {
      for (size_t i = 0; i < kNumProgress; ++i) errors_[i] += replayed->error[i];
      for (const std::string& key : {replayed->strategy, std::string()})
        stretches_[key].push_back(replayed->stretch);
      replayed_.emplace(&merged, std::move(*replayed));
    }
    if (communicates(*point)) communicating.emplace_back(&merged, std::move(*point));
  }
  for (auto& [key, stretches] : stretches_) std::sort(stretches.begin(), stretches.end());
  for (auto& [family, measured] : families) families_.emplace(family, std::move(measured));
  for (const auto& [merged, point] : communicating) hold_out(*merged, point);
}

void Predictor::hold_out(const MergedPoint& merged, const Point& point) {
  const Cluster cluster{std::max<int64_t>(merged.ranks_per_node, 1)};
  const Prediction prediction = predict(merged, point, cluster, &merged);
  if (prediction.unknown.empty()) held_out_.push_back({&merged, prediction.parts});
}

std::optional<Predictor::Replayed> Predictor::replay(const MeasuredCompute& measured) const {
  const MergedPoint& merged = *measured.merged;
  const auto program = recorded_program(merged);
  if (merged.point.ranks < 2 || !program || program->calls.empty()) return std::nullopt;
  auto seconds = operation_times(*program, costs_, merged.ranks_per_node);
  if (any_unknown(seconds)) return std::nullopt;
  const double alone_s = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  const double stretch = merged.measures.communication_only_s / alone_s;
  Replayed replayed{measured.strategy, stretch > 0 ? stretch : 1, {}};
  stretch_all(seconds, replayed.stretch);
  for (size_t i = 0; i < kNumProgress; ++i) {
    const SimulatedStep step = simulate(*program, measured.times, seconds, progress_at(i));
    replayed.error[i] = std::min(kMostError, std::abs(std::log(step.step_s / merged.measures.step_s)));
  }
  return replayed;
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

double Predictor::progress_of(const MergedPoint* without) const {
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
  return predict(like, point, cluster, nullptr);
}

Prediction Predictor::predict(const MergedPoint& like, const Point& point, const Cluster& cluster,
                              const MergedPoint* without) const {
  Prediction prediction{point};
  const auto found = families_.find(like.family);
  const auto table = known_table(point.training.model);
  if (!table || found == families_.end()) {
    prediction.unknown = "no training point has per-block times";
    return prediction;
  }
  const strategies::StepInput input = strategies::step_input(point, *table);
  const strategies::Strategy& strategy = strategies::strategy(point.training.strategy.name);
  if (prediction.unknown = strategy.impossible(input); !prediction.unknown.empty()) return prediction;

  const ComputeCosts& computing = found->second;
  const int64_t ranks_here = std::min(point.ranks, cluster.ranks_per_node);
  const auto times = computing.times(point, ranks_here, *table, without);
  if (!times) {
    prediction.unknown = "no other training point gives the time of its computing";
    return prediction;
  }
  const bool as_measured = !cluster.network && !cluster.node_link;
  const std::optional<CollectiveCosts> other =
      as_measured ? std::nullopt : std::optional(collectives_on(cluster));
  const CollectiveCosts& costs = other ? *other : costs_;
  const auto recorded = without == nullptr ? std::nullopt : recorded_program(*without);
  const strategies::Program program = recorded ? *recorded : strategy.step(input);
  auto seconds = operation_times(program, costs, cluster.ranks_per_node);
  const double stretch = as_measured ? stretch_of(to_text(point.training.strategy), without) : 1;
  stretch_all(seconds, stretch);
  if (any_unknown(seconds)) {
    prediction.unknown = unknown_link(costs, cluster, point.ranks);
    return prediction;
  }
  const double progress = progress_of(without);
  prediction.times = *times;
  prediction.operation_s = seconds;
  prediction.progress = progress;
  prediction.parts = simulate(program, *times, seconds, progress);
  prediction.step_s = {prediction.parts.step_s, Measures::kNone, Measures::kNone};
  if (without != nullptr) return prediction;  // of which nothing else is asked
  prediction.step_s = interval(prediction, program, costs, cluster.ranks_per_node, stretch, progress);
  prediction.cost = strategies::cost_of(program, input);
  const strategies::Cost& cost = prediction.cost;
  prediction.memory_bytes =
      cost.parameter_bytes + cost.gradient_bytes + cost.optimizer_bytes + cost.transient_bytes +
      static_cast<double>(point.training.batch_size) * computing.activation_bytes_per_sample();
  return prediction;
}

// Each draw takes other alphas and betas, and the error of a point that was held out.
Estimate Predictor::interval(const Prediction& prediction, const strategies::Program& program,
                             const CollectiveCosts& costs, int64_t ranks_per_node, double stretch,
                             double progress) const {
  const double step_s = prediction.parts.step_s;
  if (held_out_.empty()) return {step_s, Measures::kNone, Measures::kNone};
  std::mt19937_64 random(1);
  std::vector<double> drawn;
  for (int i = 0; i < kDraws; ++i) {
    auto seconds = operation_times(program, costs.drawn(random), ranks_per_node);
    stretch_all(seconds, stretch);
    const double drawn_s = simulate(program, prediction.times, seconds, progress).step_s;
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
