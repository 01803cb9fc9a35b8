// Ranks are compared quantity by quantity; what was found of its ranks makes the verdict on a node.
#include "analysis/stats/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "analysis/frame/merged.h"
#include "analysis/stats/sustained.h"
#include "base/ranges.h"
#include "base/stats.h"
#include "base/text.h"
#include "base/two_samples.h"

namespace shardmark {
namespace {

// How many ranks the usual spread of a quantity counts as: little against what the ranks of a run differ by,
// and much against the few launches that a baseline is compared with.
constexpr double kPriorRanks = 3, kPriorLaunches = 30;
constexpr size_t kFewest = 3;           // ranks to compare with each other
constexpr double kLaunchSpread = 0.05;  // of the logarithm of times, between launches of one machine
constexpr std::string_view kTraining = "training";

// How much worse than usual: the logarithm of the time, or of 1 / rate.
double badness(const NodeQuantity& quantity, double value) {
  if (!std::isfinite(value) || value <= 0) return Measures::kNone;
  return quantity.is_rate ? -std::log(value) : std::log(value);
}

// Mean and variance of values that are added one by one (Welford, Technometrics 4(3), 1962).
class Moments {
 public:
  // `spread`: the usual standard deviation, which counts as `prior` values.
  Moments(double spread, double prior) : spread_(spread), prior_(prior) {}
  void add(double value) {
    const double before = value - mean_;
    mean_ += before / static_cast<double>(++count_);
    squares_ += before * (value - mean_);
  }
  // How far beyond the usual value a rank must be, to be named at this level. The usual value has an error of
  // its own, if it is the median of these values: its variance is pi/2 of theirs / their number.
  double limit(double level, bool is_median) const {
    const double error =
        is_median ? std::numbers::pi / 2 / static_cast<double>(std::max<int64_t>(count_, 1)) : 0;
    return student_t(2 * level, static_cast<size_t>(std::min(degrees(), kMostDegrees))) * deviation() *
           std::sqrt(1 + error);
  }
  // The same question without the quantile, which costs more, where it is clear.
  bool is_beyond(double excess, double level) const {
    return excess > 2 * deviation() && excess > limit(level, true);
  }

 private:
  static constexpr double kMostDegrees = 400;  // beyond these the quantile hardly changes
  double degrees() const { return prior_ + static_cast<double>(std::max<int64_t>(count_ - 1, 0)); }
  double deviation() const { return std::sqrt((prior_ * spread_ * spread_ + squares_) / degrees()); }

  double spread_, prior_;
  int64_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

// Ranks that are alike: a stretch of the sorted values.
struct Alike {
  size_t begin = 0, end = 0;
  double median(const std::vector<double>& sorted) const {
    const size_t count = end - begin;
    return (sorted[begin + (count - 1) / 2] + sorted[begin + count / 2]) / 2;
  }
};

// The narrowest stretch of the sorted values that holds half of them. If a stretch of faster ranks is about
// as narrow (at most three times as wide, the usual spread counted in), the fastest such stretch is taken:
// faults only make ranks slower, so the faster of two such groups is the healthy one.
Alike densest_half(const std::vector<double>& sorted, double spread) {
  const size_t half = std::min(sorted.size(), std::max<size_t>(2, (sorted.size() + 1) / 2));
  const auto width = [&](size_t begin) { return sorted[begin + half - 1] - sorted[begin]; };
  double least = width(0);
  for (size_t begin = 1; begin + half <= sorted.size(); ++begin) least = std::min(least, width(begin));
  size_t begin = 0;
  while (width(begin) > 3 * (least + spread)) ++begin;
  return {begin, begin + half};
}

}  // namespace

std::string_view to_text(NodeVerdict verdict) {
  switch (verdict) {
    case NodeVerdict::in_service:
      return "in service";
    case NodeVerdict::not_tested:
      return "not tested";
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
  // Works on `badness`, the logarithm of a time: a difference is then a relative excess, and rates and
  // times are treated alike.
  Judged judged{std::vector<double>(values.size(), Measures::kNone), std::vector<bool>(values.size())};
  std::vector<double> bad, sorted;
  for (const double value : values) bad.push_back(badness(quantity, value));
  std::copy_if(bad.begin(), bad.end(), std::back_inserter(sorted), [](double x) { return !std::isnan(x); });
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return judged;
  // The level of one value, so that all values of the study together raise a false alarm with kFalseAlarms.
  const double level = kFalseAlarms / static_cast<double>(std::max(num_values, sorted.size()));
  const double watch = std::log1p(quantity.watch);
  const double spread = expected ? std::hypot(quantity.spread, kLaunchSpread) : quantity.spread;
  Moments moments(spread, expected ? kPriorLaunches : kPriorRanks);
  double usual = 0;
  // With an expected value, the spread is estimated from the ranks that are not conspicuous; one that is
  // far off would widen the limit that it is held against.
  if (expected) {
    usual = badness(quantity, *expected);
    for (const double one : sorted)
      if (std::abs(one - usual) <= watch) moments.add(one);
  } else {
    // Forward search: starts from the densest half and takes in the next value on either side while that
    // value is not significantly far from the median of those taken so far. Values within `watch` are
    // always taken in. Faulty ranks stay outside, and so do not widen the spread that they are judged by.
    Alike alike = densest_half(sorted, spread);
    for (size_t i = alike.begin; i < alike.end; ++i) moments.add(sorted[i]);
    const auto is_alike = [&](double one) {
      const double distance = std::abs(one - alike.median(sorted));
      return distance <= watch || !moments.is_beyond(distance, level);
    };
    for (bool grows = true; grows;) {
      const bool down = alike.begin > 0 && is_alike(sorted[alike.begin - 1]);
      if (down) moments.add(sorted[--alike.begin]);
      const bool up = alike.end < sorted.size() && is_alike(sorted[alike.end]);
      if (up) moments.add(sorted[alike.end++]);
      grows = down || up;
    }
    usual = alike.median(sorted);
  }
  // A rank is named only if its excess is both significant and large enough to matter.
  const double limit = std::max(watch, moments.limit(level, !expected));
  for (size_t i = 0; i < bad.size(); ++i) {
    if (std::isnan(bad[i])) continue;
    judged.excess[i] = std::expm1(bad[i] - usual);
    judged.is_named[i] = (expected || sorted.size() >= kFewest) && bad[i] - usual > limit;
  }
  return judged;
}

std::string JudgedNode::evidence_text(std::string_view separator) const {
  std::string text;
  for (const NodeEvidence& one : evidence) {
    if (!text.empty()) text += separator;
    text += one.words;
  }
  return text;
}

int64_t NodesJudged::count(NodeVerdict verdict) const {
  return std::count_if(nodes.begin(), nodes.end(),
                       [&](const JudgedNode& node) { return node.verdict == verdict; });
}

namespace {

// Whether all ranks compute the same in every step.
bool is_same_work(const Record& record, size_t num_ranks) {
  const Point& point = record.point;
  return record.outcome == Outcome::ok && point.workload == "training" &&
         static_cast<size_t>(point.ranks) == num_ranks && point.ranks_per_copy() == 1 &&
         !point.training.model.options.contains("experts") && !record.measures.oversubscribed;
}

// The median seconds of forward and backward of each rank; empty if they were not timed.
std::vector<double> medians_of_ranks(const Record& record) {
  const Series* const forward = record.series("forward");
  const Series* const backward = record.series("backward");
  if (forward == nullptr || backward == nullptr || forward->columns == 0 ||
      forward->rows != record.point.ranks || backward->rows != forward->rows ||
      backward->columns != forward->columns)
    return {};
  std::vector<double> medians;
  for (int64_t rank = 0; rank < forward->rows; ++rank) {
    std::vector<double> steps;
    for (int64_t step = 0; step < forward->columns; ++step)
      steps.push_back(forward->at(rank, step) + backward->at(rank, step));
    medians.push_back(median(std::move(steps)));
    if (!std::isfinite(medians.back()) || medians.back() <= 0) return {};
  }
  return medians;
}

// What each rank takes for forward and backward: the geometric mean over the points of its time / the median
// of all ranks.
std::vector<double> training_times(const std::vector<Record>& records, size_t num_ranks) {
  std::vector<double> logs(num_ranks);
  int64_t count = 0;
  for (const Record& record : records) {
    if (!is_same_work(record, num_ranks)) continue;
    const std::vector<double> medians = medians_of_ranks(record);
    if (medians.size() != num_ranks) continue;
    const double middle = median(medians);
    for (size_t rank = 0; rank < num_ranks; ++rank) logs[rank] += std::log(medians[rank] / middle);
    ++count;
  }
  if (count == 0) return {};
  for (double& log : logs) log = std::exp(log / static_cast<double>(count));
  return logs;
}

class Judge {
 public:
  // `tests` are those of the starts on the same hosts, the latest last.
  Judge(const StudyData& study, const std::vector<NodeTests>& tests)
      : study_(study), all_(tests), latest_(tests.back()) {
    for (size_t rank = 0; rank < latest_.hosts.size(); ++rank) {
      const auto [found, is_new] = places_.try_emplace(latest_.hosts[rank], result_.nodes.size());
      if (is_new) result_.nodes.push_back({latest_.hosts[rank], {}});
      result_.nodes[found->second].ranks.push_back(static_cast<int64_t>(rank));
      node_of_.push_back(found->second);
    }
  }

  NodesJudged run() {
    for (const NodeTests& tests : all_) add_found(tests);
    add_wrong_products();
    add_damage();
    compare();
    add_spells();
    add_remarks();
    for (JudgedNode& node : result_.nodes) finish(node);
    std::stable_sort(result_.nodes.begin(), result_.nodes.end(),
                     [](const JudgedNode& a, const JudgedNode& b) { return a.verdict > b.verdict; });
    return std::move(result_);
  }

 private:
  // "rank 3", "ranks 0-3"; "its ranks" where it is all of a node's.
  static std::string who(const JudgedNode& node, const std::vector<int64_t>& ranks) {
    if (ranks.size() == node.ranks.size()) return ranks.size() == 1 ? "its rank" : "its ranks";
    Numbers numbers;
    for (const int64_t rank : ranks) numbers.push_back(static_cast<int>(rank));
    return ranks_text(std::move(numbers));
  }

  bool is_rank(int64_t rank) const { return rank >= 0 && rank < std::ssize(node_of_); }

  // Each evidence once, however many starts found it.
  void add(size_t place, NodeVerdict verdict, const std::string& words) {
    std::vector<NodeEvidence>& evidence = result_.nodes[place].evidence;
    if (std::none_of(evidence.begin(), evidence.end(), [&](const auto& one) { return one.words == words; }))
      evidence.push_back({verdict, words});
  }
  void remark(const std::string& words) {
    if (std::find(result_.remarks.begin(), result_.remarks.end(), words) == result_.remarks.end())
      result_.remarks.push_back(words);
  }

  // The preflight's findings, and tests that failed. A warning about all nodes says nothing about one of
  // them.
  void add_found(const NodeTests& tests) {
    for (const NodeTests::Found& one : tests.found) {
      std::set<size_t> places;
      for (const int64_t rank : one.ranks)
        if (is_rank(rank)) places.insert(node_of_[static_cast<size_t>(rank)]);
      const bool is_error = one.severity == "error";
      if (places.empty() || (!is_error && places.size() == result_.nodes.size()))
        remark(one.severity + ": " + one.what);
      else
        for (const size_t place : places)
          add(place, is_error ? NodeVerdict::out : NodeVerdict::watch, one.what);
    }
  }

  void add_wrong_products() {
    for (const NodeTests& tests : all_) {
      const std::vector<double>* const wrong = tests.values(node_tests::kWrongProduct);
      if (wrong == nullptr || wrong->size() != node_of_.size()) continue;
      for (size_t rank = 0; rank < wrong->size(); ++rank)
        if ((*wrong)[rank] > 0)
          add(node_of_[rank], NodeVerdict::out,
              fmt::format(
                  "rank {} returned another result for a matrix product than most ranks, or than before",
                  rank));
    }
  }

  void add_damage() {
    for (const NodeTests& tests : all_)
      for (const Blamed& one : blamed_for(tests.damage))
        if (is_rank(one.rank))
          add(node_of_[static_cast<size_t>(one.rank)],
              one.is_certain() ? NodeVerdict::out : NodeVerdict::watch, one.words);
  }

  bool is_alike(const Record& record) const {
    return study_.environment.rank_nodes == latest_.hosts && is_same_work(record, node_of_.size());
  }

  std::vector<double> values_of(const NodeQuantity& quantity) const {
    if (quantity.key == kTraining)
      return study_.environment.rank_nodes == latest_.hosts ? training_times(study_.records, node_of_.size())
                                                            : std::vector<double>();
    const std::vector<double>* const found = latest_.values(quantity.key);
    return found != nullptr && found->size() == node_of_.size() ? *found : std::vector<double>();
  }

  static int64_t num_known(const std::vector<double>& values) {
    return std::count_if(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
  }

  void compare() {
    std::vector<std::vector<double>> all;
    size_t num_values = 0;
    for (const NodeQuantity& quantity : node_quantities()) {
      all.push_back(values_of(quantity));
      num_values += static_cast<size_t>(num_known(all.back()));
    }
    std::set<std::string> few, not_in_baseline;
    for (size_t i = 0; i < all.size(); ++i) {
      const NodeQuantity& quantity = node_quantities()[i];
      if (num_known(all[i]) == 0) continue;
      std::optional<double> expected;
      if (const auto found = latest_.expected.find(quantity.key); found != latest_.expected.end())
        expected = found->second;
      else if (!latest_.baseline.empty())
        not_in_baseline.insert(std::string(quantity.heading));
      if (!expected && num_known(all[i]) < static_cast<int64_t>(kFewest))
        few.insert(std::string(quantity.heading));
      compare(latest_.is_crowded ? crowded(quantity) : quantity, all[i], num_values, expected);
    }
    result_.basis = latest_.baseline.empty() ? "the other ranks of this study" : latest_.baseline;
    if (!not_in_baseline.empty())
      remark(fmt::format("the baseline has no values of: {}; there, ranks are compared with each other",
                         fmt::join(not_in_baseline, ", ")));
    if (!few.empty())
      remark(fmt::format("fewer than 3 values cannot be compared with each other: {}{}", fmt::join(few, ", "),
                         latest_.baseline.empty() ? "; a baseline can: --set accept.baseline=STUDY" : ""));
    if (latest_.is_crowded)
      remark("there are more ranks than cores, so only what takes several times as long is named");
  }

  void compare(const NodeQuantity& quantity, const std::vector<double>& values, size_t num_values,
               std::optional<double> expected) {
    const bool is_of_node = quantity.key == node_tests::kWritten || quantity.key == node_tests::kRead;
    const bool is_of_link =
        quantity.key == node_tests::kBetweenNodes || quantity.key == node_tests::kMessageS;
    const Judged judged = judge(quantity, values, num_values, expected);
    std::map<size_t, std::vector<int64_t>> named;
    for (size_t rank = 0; rank < values.size(); ++rank) {
      if (std::isnan(judged.excess[rank])) continue;
      const auto [worst, is_new] =
          result_.nodes[node_of_[rank]].excess.try_emplace(quantity.key, judged.excess[rank]);
      if (!is_new) worst->second = std::max(worst->second, judged.excess[rank]);
      if (judged.is_named[rank]) named[node_of_[rank]].push_back(static_cast<int64_t>(rank));
    }
    for (const auto& [place, ranks] : named) {
      const JudgedNode& node = result_.nodes[place];
      const double excess = node.excess.at(quantity.key);
      // Both of two nodes see the same of the link between them.
      const bool is_one_of_two = is_of_link && result_.nodes.size() == 2;
      add(place, excess >= quantity.out && !is_one_of_two ? NodeVerdict::out : NodeVerdict::watch,
          fmt::format("{} {} {:.0f} % longer {}{}", is_of_node ? "it" : who(node, ranks),
                      is_of_node || ranks.size() == 1 ? "takes" : "take", 100 * excess, quantity.what,
                      is_one_of_two ? ", and either of the two may be the reason" : ""));
    }
  }

  // Ranks that were or became slow while a point ran for long.
  void add_spells() {
    if (latest_.is_crowded) return;
    const NodeQuantity& training = *std::find_if(node_quantities().begin(), node_quantities().end(),
                                                 [](const auto& one) { return one.key == kTraining; });
    std::vector<MergedPoint> own;
    for (const Record& record : study_.records) {
      if (!is_alike(record)) continue;
      MergedPoint& merged = own.emplace_back(as_merged(record, study_.environment));
      merged.repeats = 1;
      merged.records = {&record};
      merged.environments = {&study_.environment};
    }
    for (const Sustained& run : sustained_runs(own))
      for (const SlowSpell& spell : run.slow) {
        const auto place = places_.find(spell.host);
        if (place == places_.end() || spell.excess < training.watch) continue;
        add(place->second, spell.excess >= training.out ? NodeVerdict::out : NodeVerdict::watch,
            fmt::format("{} {} while it trained for {}",
                        spell.rank < 0 ? "its ranks were" : fmt::format("rank {} was", spell.rank),
                        words_of(spell, run.duration_s()), duration_text(run.duration_s())));
      }
  }

  void add_remarks() {
    for (const NodeTests& tests : all_)
      for (const std::string& note : tests.notes) remark(note);
    const auto bad = std::count_if(study_.records.begin(), study_.records.end(),
                                   [](const Record& record) { return is_bad(record.outcome); });
    if (bad > 0)
      remark(fmt::format("{} failed or {} wrong: --table problems", counted(bad, "point"),
                         bad == 1 ? "is" : "are"));
    if (latest_.is_stopped) remark("nothing was tested, because the preflight found what would stop a run");
  }

  void finish(JudgedNode& node) const {
    std::stable_sort(node.evidence.begin(), node.evidence.end(),
                     [](const NodeEvidence& a, const NodeEvidence& b) { return a.verdict > b.verdict; });
    if (!node.evidence.empty())
      node.verdict = node.evidence.front().verdict;
    else if (!latest_.is_stopped && !node.excess.empty())
      node.verdict = NodeVerdict::in_service;
  }

  const StudyData& study_;
  const std::vector<NodeTests>& all_;
  const NodeTests& latest_;
  NodesJudged result_;
  std::map<std::string, size_t> places_;  // host -> its place among the nodes
  std::vector<size_t> node_of_;           // [rank]
};

}  // namespace

std::optional<NodesJudged> judge_nodes(const std::vector<StudyData>& studies) {
  const StudyData* newest = nullptr;
  std::vector<NodeTests> tests;
  for (const StudyData& study : studies) {
    if (newest != nullptr && study.environment.started < newest->environment.started) continue;
    if (std::vector<NodeTests> found = node_tests_of(study.environment); !found.empty()) {
      newest = &study;
      tests = std::move(found);
    }
  }
  if (newest == nullptr) return std::nullopt;
  const std::vector<std::string> hosts = tests.back().hosts;
  std::erase_if(tests, [&](const NodeTests& one) { return one.hosts != hosts; });
  return Judge(*newest, tests).run();
}

}  // namespace shardmark
