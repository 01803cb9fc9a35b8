// Ranks are compared quantity by quantity; what was found of its ranks makes the verdict on a node.
#include "analysis/stats/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "analysis/stats/slow_ranks.h"
#include "analysis/stats/sustained.h"
#include "base/stats.h"
#include "base/text.h"
#include "base/two_samples.h"
#include "base/ranges.h"

namespace shardmark {
namespace {

constexpr double kPriorRanks = 4;
constexpr size_t kFewest = 3;  // ranks to compare with each other
constexpr std::string_view kTraining = "training";

// How much worse than usual: the logarithm of the time, or of 1 / rate.
double badness(const NodeQuantity& quantity, double value) {
  if (!std::isfinite(value) || value <= 0) return Measures::kNone;
  return quantity.is_rate ? -std::log(value) : std::log(value);
}

// Mean and variance of values that are added one by one (Welford, Technometrics 4(3), 1962).
class Moments {
 public:
  void add(double value) {
    const double before = value - mean_;
    mean_ += before / static_cast<double>(++count_);
    squares_ += before * (value - mean_);
  }
  // How far beyond the usual value a rank must be, to be named at this level.
  double limit(double spread, double level) const {
    return student_t(2 * level, static_cast<size_t>(std::min(degrees(), kMostDegrees))) * deviation(spread);
  }
  // The same question without the quantile, which costs more, where it is clear.
  bool is_beyond(double excess, double spread, double level) const {
    return excess > 2 * deviation(spread) && excess > limit(spread, level);
  }

 private:
  static constexpr double kMostDegrees = 400;  // beyond these the quantile hardly changes
  double degrees() const { return kPriorRanks + static_cast<double>(count_) - 1; }
  double deviation(double spread) const {
    return std::sqrt((kPriorRanks * spread * spread + squares_) / degrees());
  }

  int64_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

double median_of_first(const std::vector<double>& sorted, size_t count) {
  return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

}  // namespace

std::string_view to_text(NodeVerdict verdict) {
  switch (verdict) {
    case NodeVerdict::in_service:
      return "in service";
    case NodeVerdict::watch:
      return "watch";
    case NodeVerdict::out:
      return "out";
  }
  return "";
}

const std::vector<NodeQuantity>& node_quantities() {
  using namespace node_tests;
  static const std::vector<NodeQuantity> rows = {
      {kProductS, "for a matrix product", "product", false, 0.02, 0.07, 0.25},
      {kCopied, "to copy memory", "copy", true, 0.03, 0.1, 0.4},
      {kTraining, "for the same training step", "training", false, 0.02, 0.07, 0.25},
      {kInNode, "for messages within its node", "within node", true, 0.06, 0.25, 0.6},
      {kBetweenNodes, "for messages to other nodes", "between nodes", true, 0.06, 0.25, 0.6},
      {kMessageS, "for 8 bytes to another node", "latency", false, 0.15, 0.6, 3},
      {kWritten, "to write a file", "write", true, 0.2, 0.8, 4},
      {kRead, "to read a file", "read", true, 0.2, 0.8, 4},
  };
  return rows;
}

NodeQuantity crowded(NodeQuantity quantity) {
  quantity.spread = std::max(quantity.spread, 0.3);
  quantity.watch = std::max(quantity.watch, 1.5);
  quantity.out = std::max(quantity.out, 3.0);
  return quantity;
}

Judged judge(const NodeQuantity& quantity, const std::vector<double>& values, size_t num_values,
             std::optional<double> expected) {
  Judged judged{std::vector<double>(values.size(), Measures::kNone), std::vector<bool>(values.size())};
  std::vector<double> bad, sorted;
  for (const double value : values) bad.push_back(badness(quantity, value));
  std::copy_if(bad.begin(), bad.end(), std::back_inserter(sorted), [](double x) { return !std::isnan(x); });
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return judged;
  const double level = kFalseAlarms / static_cast<double>(std::max(num_values, sorted.size()));
  // Ranks are alike as long as the next one is not beyond what the ones before it vary by.
  // Without an expected value it takes two to be alike.
  size_t alike = std::max<size_t>(expected ? 1 : 2, (sorted.size() + 1) / 2);
  alike = std::min(alike, sorted.size());
  Moments moments;
  for (size_t i = 0; i < alike; ++i) moments.add(sorted[i]);
  const double watch = std::log1p(quantity.watch);
  while (alike < sorted.size()) {
    const double excess = sorted[alike] - median_of_first(sorted, alike);
    if (excess > watch && moments.is_beyond(excess, quantity.spread, level)) break;
    moments.add(sorted[alike++]);
  }
  const double own = median_of_first(sorted, alike);
  const double usual = expected ? badness(quantity, *expected) : own;
  judged.usual = std::exp(quantity.is_rate ? -usual : usual);
  const double limit = std::max(watch, moments.limit(quantity.spread, level));
  for (size_t i = 0; i < bad.size(); ++i) {
    if (std::isnan(bad[i])) continue;
    judged.excess[i] = std::expm1(bad[i] - usual);
    judged.is_named[i] = (expected || sorted.size() >= kFewest) && bad[i] - usual > limit;
  }
  return judged;
}

int64_t NodesJudged::count(NodeVerdict verdict) const {
  return std::count_if(nodes.begin(), nodes.end(),
                       [&](const JudgedNode& node) { return node.verdict == verdict; });
}

namespace {

// Of each rank, what it takes for forward and backward: the geometric mean over the points of its time / the
// median of all ranks, times the usual time of a step. Only points in which all ranks compute the same.
std::vector<double> training_times(const std::vector<const MergedPoint*>& points, size_t num_ranks) {
  std::vector<double> logs(num_ranks);
  double usual = 0;
  int64_t count = 0;
  for (const MergedPoint* merged : points) {
    const Point& point = merged->point;
    if (static_cast<size_t>(point.ranks) != num_ranks || point.ranks_per_copy() != 1 ||
        point.training.model.name == "moe" || merged->measures.oversubscribed)
      continue;
    const auto times = computing_times(*merged);
    if (times.size() != num_ranks) continue;
    std::vector<double> medians;
    for (const auto& steps : times) medians.push_back(steps.empty() ? Measures::kNone : median(steps));
    if (!std::all_of(medians.begin(), medians.end(), [](double s) { return std::isfinite(s) && s > 0; }))
      continue;
    const double middle = median(medians);
    for (size_t rank = 0; rank < num_ranks; ++rank) logs[rank] += std::log(medians[rank] / middle);
    usual += std::log(middle);
    ++count;
  }
  if (count == 0) return {};
  for (double& log : logs) log = std::exp((log + usual) / static_cast<double>(count));
  return logs;
}

Numbers numbers(const std::vector<int64_t>& ranks) {
  Numbers all;
  for (const int64_t rank : ranks) all.push_back(static_cast<int>(rank));
  return all;
}

class Judge {
 public:
  Judge(const StudyData& study, const NodeTests& tests, const std::vector<MergedPoint>& points)
      : study_(study), tests_(tests) {
    const auto& hosts = study.environment.rank_nodes;
    for (size_t rank = 0; rank < hosts.size(); ++rank) {
      const auto [found, is_new] = places_.try_emplace(hosts[rank], result_.nodes.size());
      if (is_new) result_.nodes.push_back({hosts[rank], {}});
      result_.nodes[found->second].ranks.push_back(static_cast<int64_t>(rank));
      node_of_.push_back(found->second);
    }
    for (const MergedPoint& merged : points)
      if (is_training(merged) && !merged.environments.empty() &&
          merged.environments.front() == &study.environment)
        training_.push_back(&merged);
  }

  NodesJudged run() {
    add_found();
    add_wrong(node_tests::kWrongProduct, [](const std::string& who, double) {
      return who + " returned another result for a matrix product than most ranks";
    });
    add_wrong(node_tests::kWrongSent, [](const std::string& who, double count) {
      return fmt::format("{} of what {} sent arrived with another value",
                         counted(static_cast<int64_t>(count), "element"), who);
    });
    compare();
    add_spells();
    remark_on_points();
    for (JudgedNode& node : result_.nodes) finish(node);
    std::stable_sort(result_.nodes.begin(), result_.nodes.end(),
                     [](const JudgedNode& a, const JudgedNode& b) { return a.verdict > b.verdict; });
    return std::move(result_);
  }

 private:
  bool names_several_nodes() const { return result_.nodes.size() > 1; }

  // "rank 3", "ranks 0-3"; "its ranks" where it is all of a node's.
  std::string who(const JudgedNode& node, const std::vector<int64_t>& ranks) const {
    if (ranks.size() == node.ranks.size()) return ranks.size() == 1 ? "its rank" : "its ranks";
    return ranks_text(numbers(ranks));
  }

  void add(size_t place, NodeVerdict verdict, std::string words) {
    result_.nodes[place].evidence.push_back({verdict, std::move(words)});
  }

  // The preflight's findings, and tests that failed. A warning of all nodes says nothing about one of them.
  void add_found() {
    for (const NodeTests::Found& one : tests_.found) {
      std::map<size_t, std::vector<int64_t>> by_node;
      for (const int64_t rank : one.ranks)
        if (rank >= 0 && rank < std::ssize(node_of_))
          by_node[node_of_[static_cast<size_t>(rank)]].push_back(rank);
      const bool is_error = one.severity == "error";
      if (by_node.empty() || (!is_error && by_node.size() == result_.nodes.size())) {
        result_.remarks.push_back(one.severity + ": " + one.what);
        continue;
      }
      for (const auto& [place, ranks] : by_node)
        add(place, is_error ? NodeVerdict::out : NodeVerdict::watch, one.what);
    }
  }

  template <class Words>
  void add_wrong(std::string_view key, const Words& words) {
    const std::vector<double>* values = tests_.values(key);
    if (values == nullptr || values->size() != node_of_.size()) return;
    for (size_t rank = 0; rank < values->size(); ++rank)
      if ((*values)[rank] > 0)
        add(node_of_[rank], NodeVerdict::out, words(fmt::format("rank {}", rank), (*values)[rank]));
  }

  std::vector<double> values_of(const NodeQuantity& quantity) const {
    if (quantity.key == kTraining) return training_times(training_, node_of_.size());
    const std::vector<double>* const found = tests_.values(quantity.key);
    return found != nullptr && found->size() == node_of_.size() ? *found : std::vector<double>();
  }

  void compare() {
    std::vector<std::vector<double>> all;
    size_t num_values = 0;
    for (const NodeQuantity& quantity : node_quantities()) {
      all.push_back(values_of(quantity));
      num_values += static_cast<size_t>(
          std::count_if(all.back().begin(), all.back().end(), [](double x) { return std::isfinite(x); }));
    }
    std::set<std::string> few;
    for (size_t i = 0; i < all.size(); ++i) {
      const NodeQuantity& quantity = node_quantities()[i];
      compare(tests_.is_crowded ? crowded(quantity) : quantity, all[i], num_values, few);
    }
    if (tests_.is_crowded)
      result_.remarks.emplace_back(
          "there are more ranks than cores, so only what takes several times as long is named");
    result_.basis = tests_.baseline.empty() ? "the other ranks of this study" : tests_.baseline;
    if (!few.empty() && tests_.baseline.empty())
      result_.remarks.push_back(
          fmt::format("fewer than 3 values of {} cannot be compared with each other; a baseline can: --set "
                      "accept.baseline=STUDY",
                      fmt::join(few, ", ")));
  }

  void compare(const NodeQuantity& quantity, const std::vector<double>& values, size_t num_values,
               std::set<std::string>& few) {
    const auto known = std::count_if(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
    if (known == 0) return;
    std::optional<double> expected;
    if (const auto found = tests_.expected.find(quantity.key); found != tests_.expected.end())
      expected = found->second;
    if (!expected && known < static_cast<std::ptrdiff_t>(kFewest)) few.insert(std::string(quantity.heading));
    const Judged judged = judge(quantity, values, num_values, expected);
    std::map<size_t, std::vector<int64_t>> named;
    for (size_t rank = 0; rank < values.size(); ++rank) {
      if (std::isnan(judged.excess[rank])) continue;
      auto [worst, is_new] =
          result_.nodes[node_of_[rank]].excess.try_emplace(quantity.key, judged.excess[rank]);
      if (!is_new) worst->second = std::max(worst->second, judged.excess[rank]);
      if (judged.is_named[rank]) named[node_of_[rank]].push_back(static_cast<int64_t>(rank));
    }
    for (const auto& [place, ranks] : named) {
      const JudgedNode& node = result_.nodes[place];
      const double excess = node.excess.at(quantity.key);
      // Only the first rank of a node writes a file.
      const bool is_of_node = quantity.key == node_tests::kWritten || quantity.key == node_tests::kRead;
      add(place, excess >= quantity.out ? NodeVerdict::out : NodeVerdict::watch,
          fmt::format("{} {} {:.0f} % longer {}", is_of_node ? "it" : who(node, ranks),
                      is_of_node || ranks.size() == 1 ? "takes" : "take", 100 * excess, quantity.what));
    }
  }

  // Ranks that were or became slow while a point ran for long.
  void add_spells() {
    if (tests_.is_crowded) return;
    std::vector<MergedPoint> own;
    for (const MergedPoint* merged : training_) own.push_back(*merged);
    for (const Sustained& run : sustained_runs(own))
      for (const SlowSpell& spell : run.slow) {
        const auto place = places_.find(spell.host);
        if (place == places_.end()) continue;
        const double out = 0.25;
        add(place->second, spell.excess >= out ? NodeVerdict::out : NodeVerdict::watch,
            fmt::format("{} {} while it trained for {}",
                        spell.rank < 0 ? "its ranks were" : fmt::format("rank {} was", spell.rank),
                        words_of(spell, run.duration_s()), duration_text(run.duration_s())));
      }
  }

  void remark_on_points() {
    int64_t bad = 0, skipped = 0;
    for (const Record& record : study_.records) {
      bad += is_bad(record.outcome);
      skipped += record.outcome == Outcome::skipped;
    }
    if (bad > 0)
      result_.remarks.push_back(fmt::format("{} failed or {} wrong: --table problems", counted(bad, "point"),
                                            bad == 1 ? "is" : "are"));
    if (skipped > 0 && skipped == std::ssize(study_.records))
      result_.remarks.emplace_back("nothing was measured, because of what the preflight found");
  }

  static void finish(JudgedNode& node) {
    std::stable_sort(node.evidence.begin(), node.evidence.end(),
                     [](const NodeEvidence& a, const NodeEvidence& b) { return a.verdict > b.verdict; });
    if (!node.evidence.empty()) node.verdict = node.evidence.front().verdict;
  }

  const StudyData& study_;
  const NodeTests& tests_;
  std::vector<const MergedPoint*> training_;
  NodesJudged result_;
  std::map<std::string, size_t> places_;  // host -> its place among the nodes
  std::vector<size_t> node_of_;           // [rank]
};

}  // namespace

std::optional<NodesJudged> judge_nodes(const std::vector<StudyData>& studies,
                                       const std::vector<MergedPoint>& points) {
  const StudyData* newest = nullptr;
  std::optional<NodeTests> tests;
  for (const StudyData& study : studies) {
    if (newest != nullptr && study.environment.started < newest->environment.started) continue;
    if (auto found = node_tests_of(study.environment)) {
      newest = &study;
      tests = std::move(found);
    }
  }
  if (newest == nullptr) return std::nullopt;
  return Judge(*newest, *tests, points).run();
}

}  // namespace shardmark
