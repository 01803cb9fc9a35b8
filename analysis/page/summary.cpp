// See summary.h. Every statement rests on numbers that a table of the report shows.
#include "analysis/page/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "analysis/plots/rows.h"
#include "analysis/plots/series.h"
#include "analysis/scaling.h"
#include "base/units.h"

namespace shardmark {
namespace {

using Statements = std::vector<Statement>;
using PointList = std::vector<const MergedPoint*>;

constexpr double kMargin = 0.05;  // differences below it do not matter: the default of `compare`
constexpr std::array kOutcomes = {Outcome::skipped, Outcome::out_of_memory, Outcome::wrong, Outcome::failed,
                                  Outcome::timed_out};

std::string plural(size_t count, const std::string& noun) {
  return fmt::format("{} {}{}", format_count(static_cast<double>(count)), noun, count == 1 ? "" : "s");
}

// "54 points on 2 ranks of 1 node (AMD EPYC, 1 thread per rank) over mpi: 50 measured, 4 skipped."
Statement about_study(const StudyData& study) {
  const Environment& e = study.environment;
  std::map<Outcome, size_t> counts;
  for (const Record& record : study.records) ++counts[record.outcome];
  std::string outcomes = fmt::format("{} measured", counts[Outcome::ok]);
  for (const Outcome outcome : kOutcomes)
    if (counts[outcome] > 0) outcomes += fmt::format(", {} {}", counts[outcome], to_text(outcome));
  std::replace(outcomes.begin(), outcomes.end(), '_', ' ');
  return {
      study.path + ":",
      fmt::format("{} on {}{} ({}){}: {}.", plural(study.records.size(), "point"), ranks_text(e.world_ranks),
                  e.nodes.empty() ? "" : " of " + plural(e.nodes.size(), "node"), machine_text(e),
                  e.transport.empty() ? "" : " over " + e.transport, outcomes)};
}

bool is_comparable(const MergedPoint& merged) { return is_training(merged) && !is_replicas(merged); }

// "uncertain, slowing down": every kind for which one of the points is left out.
std::string reasons_text(const PointList& points) {
  std::set<std::string> kinds;
  for (const MergedPoint* merged : points)
    for (const Doubt& doubt : merged->doubts)
      if (doubt.excludes) kinds.insert(doubt.kind);
  return fmt::format("{}", fmt::join(kinds, ", "));
}

// The points of a group on the most ranks where one of them is free of doubts, else on the most of all.
struct Ranked {
  PointList fastest_first;  // without doubts
  PointList doubtful;
};

Ranked on_most_ranks(const RowGroup& group) {
  std::pair<bool, int64_t> most = {false, 0};  // free of doubts, ranks
  for (const MergedPoint* merged : group.points)
    most = std::max(most, {!is_doubtful(*merged), merged->point.ranks});
  Ranked ranked;
  for (const MergedPoint* merged : group.points)
    if (merged->point.ranks == most.second)
      (is_doubtful(*merged) ? ranked.doubtful : ranked.fastest_first).push_back(merged);
  std::stable_sort(ranked.fastest_first.begin(), ranked.fastest_first.end(),
                   [](auto* a, auto* b) { return a->measures.step_s < b->measures.step_s; });
  return ranked;
}

enum class Against { as_fast, slower, untold };

// As fast: all that both 95 % intervals allow is within the margin of `compare`. Intervals that overlap more
// widely tell nothing, nor do missing ones.
Against against(const MergedPoint& merged, const MergedPoint& best) {
  const Measures &m = merged.measures, &b = best.measures;
  if (m.step_low_s > b.step_high_s) return Against::slower;
  const bool within =
      m.step_high_s <= (1 + kMargin) * b.step_low_s && b.step_high_s <= (1 + kMargin) * m.step_low_s;
  return within ? Against::as_fast : Against::untold;
}

std::string names_of(const PointList& points, const PlotNames& names) {
  std::vector<std::string> all;
  all.reserve(points.size());
  for (const MergedPoint* merged : points) all.push_back(names.strategy(*merged));
  return fmt::format("{}", fmt::join(all, ", "));
}

// "fastest ddp, 55.3 samples/s, 144 ms a step; zero3 as fast within 5 %; slowest fsdp, +11 %."
std::string speeds_text(const Ranked& ranked, const PlotNames& names) {
  const PointList& fastest_first = ranked.fastest_first;
  if (fastest_first.empty())
    return fmt::format("no ranking is possible, as every point is doubtful ({}): {}.",
                       reasons_text(ranked.doubtful), names_of(ranked.doubtful, names));
  const MergedPoint &best = *fastest_first.front(), &worst = *fastest_first.back();
  std::map<Against, PointList> others;
  for (auto other = fastest_first.begin() + 1; other != fastest_first.end(); ++other)
    others[against(**other, best)].push_back(*other);
  const char* heading = others[Against::untold].empty() ? "fastest " : "least median: ";
  std::string text = (fastest_first.size() == 1 ? "" : heading) + names.strategy(best);
  if (std::isfinite(best.measures.samples_per_s))
    text += fmt::format(", {} samples/s", format_number(best.measures.samples_per_s, 3));
  text += fmt::format(", {} a step", format_seconds(best.measures.step_s));
  if (const PointList& same = others[Against::as_fast]; !same.empty())
    text += fmt::format("; {} as fast within {:.0f} %", names_of(same, names), 100 * kMargin);
  if (const PointList& untold = others[Against::untold]; !untold.empty())
    text += fmt::format("; whether {} {} as fast cannot be told, as the 95 % intervals overlap",
                        names_of(untold, names), untold.size() == 1 ? "is" : "are");
  if (against(worst, best) == Against::slower)
    text += fmt::format("; slowest {}, +{:.0f} %", names.strategy(worst),
                        100 * (worst.measures.step_s / best.measures.step_s - 1));
  if (!ranked.doubtful.empty())
    text += fmt::format("; not ranked, as doubtful ({}): {}", reasons_text(ranked.doubtful),
                        names_of(ranked.doubtful, names));
  return text + ".";
}

std::string memory_text(PointList points, const PlotNames& names) {
  std::erase_if(points, [](auto* merged) { return !std::isfinite(merged->measures.peak_bytes); });
  if (points.size() < 2) return "";
  const auto [least, most] = std::minmax_element(points.begin(), points.end(), [](auto* a, auto* b) {
    return a->measures.peak_bytes < b->measures.peak_bytes;
  });
  return fmt::format(" Memory of a rank: from {} ({}) to {} ({}).",
                     format_bytes((*least)->measures.peak_bytes), names.strategy(**least),
                     format_bytes((*most)->measures.peak_bytes), names.strategy(**most));
}

Statements fastest_strategies(const std::vector<MergedPoint>& points, const PlotNames& names) {
  Statements statements;
  for (const RowGroup& group : row_groups(points, names, is_comparable)) {
    const Ranked ranked = on_most_ranks(group);
    PointList all = ranked.fastest_first;
    all.insert(all.end(), ranked.doubtful.begin(), ranked.doubtful.end());
    const std::string ranks = ranks_text(all.front()->point.ranks);
    statements.push_back({group.about + (group.about.ends_with(ranks) ? ":" : ", " + ranks + ":"),
                          speeds_text(ranked, names) + memory_text(all, names)});
  }
  return statements;
}

// Of one strategy: "ddp 76 % (from 1 to 32 ranks; below 80 % from about 9 on)".
std::string kept_text(const ScalingSeries& series, const PlotNames& names) {
  const ScalingPoint& last = series.points.back();
  const double below = series.below_80.ranks.value;
  return fmt::format("{} {:.0f} % (from {} to {}{})", names.strategy(*last.merged),
                     100 * last.efficiency.value, series.points.front().merged->point.ranks,
                     ranks_text(last.merged->point.ranks),
                     std::isfinite(below) ? fmt::format("; below 80 % from about {:.0f} on", below) : "");
}

// Best and worst strategy of each group. Of two rank counts the tables say all; over all ranks of several
// nodes the series within a node and over nodes say it better.
Statements efficiencies(const std::vector<ScalingSeries>& all, const PlotNames& names) {
  std::vector<std::pair<std::string, std::vector<ScalingSeries>>> groups;
  for (const ScalingSeries& whole : all) {
    ScalingSeries series = whole;
    std::erase_if(series.points, [](const ScalingPoint& point) { return is_doubtful(*point.merged); });
    if (series.points.size() < 3) continue;
    const std::string about =
        fmt::format("{} scaling, {}, over {}:", series.scaling == Scaling::weak ? "Weak" : "Strong",
                    series_about(series, names), unit_text(series));
    auto found =
        std::find_if(groups.begin(), groups.end(), [&](auto& group) { return group.first == about; });
    if (found == groups.end()) found = groups.insert(groups.end(), {about, {}});
    found->second.push_back(std::move(series));
  }
  Statements statements;
  for (const auto& [about, strategies] : groups) {
    const auto [least, most] = std::minmax_element(
        strategies.begin(), strategies.end(),
        [](auto& a, auto& b) { return a.points.back().efficiency.value < b.points.back().efficiency.value; });
    const bool apart = most->points.back().efficiency.low > least->points.back().efficiency.high;
    statements.push_back(
        {about,
         "efficiency kept: " + kept_text(*most, names) +
             (least == most ? "" : ", " + kept_text(*least, names)) +
             (least == most || apart ? "."
                                     : "; which keeps more cannot be told, as the 95 % intervals overlap.")});
  }
  return statements;
}

std::string bandwidth_text(PointList points) {
  const std::string reasons = reasons_text(points);
  std::erase_if(points, [](auto* merged) { return is_doubtful(*merged); });
  if (points.empty()) return fmt::format("every point is doubtful ({}).", reasons);
  const MergedPoint& best = **std::max_element(points.begin(), points.end(), [](auto* a, auto* b) {
    return a->measures.busbw_gb_s < b->measures.busbw_gb_s;
  });
  const MergedPoint& quick = **std::min_element(
      points.begin(), points.end(), [](auto* a, auto* b) { return a->measures.step_s < b->measures.step_s; });
  return fmt::format("bus bandwidth up to {} GB/s (at {}), time from {} (at {}).",
                     format_number(best.measures.busbw_gb_s, 3),
                     format_bytes(static_cast<double>(best.point.collective.bytes)),
                     format_seconds(quick.measures.step_s),
                     format_bytes(static_cast<double>(quick.point.collective.bytes)));
}

// The all-reduce of each group of ranks; where there is none, whatever was measured.
Statements collectives(const std::vector<MergedPoint>& points) {
  std::vector<std::pair<std::string, PointList>> groups;
  bool any_all_reduce = false;
  for (const MergedPoint& merged : points) {
    const Measures& m = merged.measures;
    if (is_training(merged) || !std::isfinite(m.busbw_gb_s) || !std::isfinite(m.step_s)) continue;
    const std::string about = fmt::format("{}, {} over {}:", merged.point.collective.operation,
                                          ranks_text(merged.point.ranks), merged.transport);
    any_all_reduce |= merged.point.collective.operation == "all_reduce";
    auto found =
        std::find_if(groups.begin(), groups.end(), [&](auto& group) { return group.first == about; });
    if (found == groups.end()) found = groups.insert(groups.end(), {about, {}});
    found->second.push_back(&merged);
  }
  Statements statements;
  for (const auto& [about, all] : groups) {
    if (any_all_reduce && !about.starts_with("all_reduce,")) continue;
    statements.push_back({about, bandwidth_text(all)});
  }
  return statements;
}

Statements cautions(const std::vector<MergedPoint>& points) {
  size_t num_training = 0, num_equal = 0, num_doubtful = 0, num_wrong = 0;
  for (const MergedPoint& merged : points) {
    num_training += is_training(merged) ? 1 : 0;
    num_equal += is_training(merged) && merged.measures.verified.starts_with("equal") ? 1 : 0;
    num_doubtful += is_doubtful(merged) ? 1 : 0;
    num_wrong += merged.measures.num_wrong > 0 ? 1 : 0;
  }
  Statements statements;
  if (num_training > 0)
    statements.push_back(
        {"Verified:", fmt::format("{} of {} gave the losses and gradient norms of one device.", num_equal,
                                  plural(num_training, "training point"))});
  if (num_doubtful > 0)
    statements.push_back({"Doubtful:", plural(num_doubtful, "point") + " of " +
                                           format_count(static_cast<double>(points.size())) +
                                           "; tables mark them, plots draw them hollow, no fit uses them."});
  if (num_wrong > 0)
    statements.push_back({"Wrong:", plural(num_wrong, "collective") +
                                        " gave elements that differ from the expected ones: see #wrong."});
  return statements;
}

}  // namespace

std::vector<Statement> summary_of(const std::vector<StudyData>& studies,
                                  const std::vector<MergedPoint>& points,
                                  const std::vector<ScalingSeries>& scaling) {
  const PlotNames names(points);
  Statements all;
  for (const StudyData& study : studies) all.push_back(about_study(study));
  for (const Statements& part : {fastest_strategies(points, names), efficiencies(scaling, names),
                                 collectives(points), cautions(points)})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace shardmark
