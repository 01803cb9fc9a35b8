// How much changed, and how many points got which verdict.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/compare/tables.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "base/units.h"

namespace shardmark {
namespace {

std::string launches_text(size_t count) { return fmt::format("{} launch{}", count, count == 1 ? "" : "es"); }

using Compared = std::vector<const ComparedPoint*>;

double ratio_of(const ComparedPoint& point) { return point.comparison.new_s / point.comparison.old_s; }

// What is counted together. The middle of ratios is that of their logarithms: twice as long and half as long
// cancel out.
struct Kind {
  std::string name;
  Compared points;

  double middle() const {
    std::vector<double> logs;
    for (const ComparedPoint* point : points) logs.push_back(std::log(ratio_of(*point)));
    return logs.empty() ? Measures::kNone : std::exp(median(std::move(logs)));
  }
  double least() const { return points.empty() ? Measures::kNone : ratio_of(**ends().first); }
  double most() const { return points.empty() ? Measures::kNone : ratio_of(**ends().second); }

 private:
  std::pair<Compared::const_iterator, Compared::const_iterator> ends() const {
    return std::minmax_element(
        points.begin(), points.end(),
        [](const ComparedPoint* a, const ComparedPoint* b) { return ratio_of(*a) < ratio_of(*b); });
  }
};

// All points; then training and collectives, where there are both.
std::vector<Kind> kinds_of(const std::vector<ComparedPoint>& points) {
  Kind all{"all points", {}}, training{"training", {}}, collectives{"collectives", {}};
  for (const ComparedPoint& point : points) {
    all.points.push_back(&point);
    (is_training(*point.point) ? training : collectives).points.push_back(&point);
  }
  if (training.points.empty() || collectives.points.empty()) {
    if (!points.empty()) all.name = training.points.empty() ? collectives.name : training.name;
    return {all};
  }
  return {all, training, collectives};
}

std::string times_text(double ratio) { return format_number(ratio, 3); }

// "training takes 3.60 times as long (median of 16 points; 1.15 to 12.0 times)"
std::string as_measured(const Kind& kind) {
  std::string text = fmt::format("{} {} {} times as long", kind.name,
                                 kind.name == "training" ? "takes" : "take", times_text(kind.middle()));
  if (kind.points.size() == 1) return text + " (1 point)";
  return text + fmt::format(" (median of {} points; {} to {} times)", kind.points.size(),
                            times_text(kind.least()), times_text(kind.most()));
}

// How much, even where the launches do not decide whether it means anything.
std::string as_measured(const std::vector<ComparedPoint>& points, const Launches& after) {
  std::vector<Kind> kinds = kinds_of(points);
  if (kinds.size() > 1) kinds.erase(kinds.begin());
  const bool none_decided = std::all_of(points.begin(), points.end(), [](const ComparedPoint& point) {
    return point.comparison.verdict == Judgement::ambiguous;
  });
  std::string text = none_decided ? "No verdict. As measured: " : "As measured: ";
  for (const Kind& kind : kinds) text += (&kind == kinds.data() ? "" : ", ") + as_measured(kind);
  if (points.size() == 1) return text + ".";
  const auto most = std::max_element(points.begin(), points.end(), [](const auto& a, const auto& b) {
    return std::abs(std::log(ratio_of(a))) < std::abs(std::log(ratio_of(b)));
  });
  return text + fmt::format(". The largest change: {}, {} times.",
                            after.points.at(content_id(most->point->point)).name,
                            times_text(ratio_of(*most)));
}

// Whether the launches of the two sides overlap in time. If all launches of one side ran before those of
// the other, what changed in the machine meanwhile looks like a change of the program. Starts are UTC in
// ISO 8601, which sorts as text.
bool took_turns(const Launches& before, const Launches& after) {
  const auto span = [](const Launches& side) {
    std::vector<std::string> starts;
    starts.reserve(side.started.size());
    for (const auto& [launch, start] : side.started) starts.push_back(start);
    const auto [first, last] = std::minmax_element(starts.begin(), starts.end());
    return starts.empty() ? std::pair<std::string, std::string>() : std::pair(*first, *last);
  };
  const auto [first_before, last_before] = span(before);
  const auto [first_after, last_after] = span(after);
  if (first_before.empty() || first_after.empty()) return true;  // imported without times: nothing to say
  return first_after < last_before && first_before < last_after;
}

// What a side calls the time of an operation. Other programs say it in a fact of an imported study.
std::string kind_of_times(const Launches& side) {
  const auto found = side.environment.find("times");
  return found == side.environment.end() ? "median over operations, of the slowest rank"
                                         : fmt::format("{}", fmt::join(found->second, " or "));
}

std::vector<std::string> notes(const Launches& before, const Launches& after,
                               const std::vector<ComparedPoint>& points, double margin) {
  std::vector<std::string> notes;
  if (!points.empty()) notes.push_back(as_measured(points, after));
  notes.push_back(
      fmt::format("SLOWER, FASTER: statistically significant (5 % over all points together), with a 95 % "
                  "interval not within {0:g} %. SAME: the 95 % interval is within {0:g} %. AMBIGUOUS: these "
                  "launches do not decide. --margin changes the {0:g} %.",
                  margin * 100));
  const auto undecidable = std::count_if(points.begin(), points.end(), [](const ComparedPoint& point) {
    return point.comparison.basis == Basis::none;
  });
  if (undecidable > 0)
    notes.push_back(
        fmt::format("{} point{} had fewer than {} launches on both sides: the variation between launches of "
                    "this machine is unknown, so no conclusion is possible. Launch each side {} times or "
                    "more and give all studies: --old a1.h5 a2.h5 a3.h5 --new b1.h5 b2.h5 b3.h5.",
                    undecidable, undecidable == 1 ? "" : "s", kLeastLaunches, kLeastLaunches));
  if (const std::string was = kind_of_times(before), is = kind_of_times(after); was != is)
    notes.push_back(
        fmt::format("Times are of another kind on each side: {} before; {} after. Part of the difference may "
                    "come from that.",
                    was, is));
  if (!took_turns(before, after))
    notes.emplace_back(
        "All launches of one side ran before those of the other: a change of the machine in between would "
        "look the same. Alternate the launches of the two sides to rule that out.");
  return notes;
}

ColumnsOf<Kind> change_columns_of_kinds() {
  constexpr const char* kChange =
      "after / before - 1 as measured, over the points: a number without a verdict.";
  return {{{"median", "%", true, false, "change"},
           [](const auto& kind) { return signed_percent(kind.middle() - 1); },
           kChange},
          {{"least", "%", true, false, "change"},
           [](const auto& kind) { return signed_percent(kind.least() - 1); },
           kChange},
          {{"most", "%", true, false, "change"},
           [](const auto& kind) { return signed_percent(kind.most() - 1); },
           kChange}};
}

ColumnsOf<Kind> verdict_columns() {
  ColumnsOf<Kind> columns;
  for (const Judgement verdict :
       {Judgement::same, Judgement::faster, Judgement::slower, Judgement::ambiguous})
    columns.push_back({{std::string(to_text(verdict)), ""}, [verdict](const Kind& kind) {
                         return cells::count(std::count_if(kind.points.begin(), kind.points.end(),
                                                           [verdict](const ComparedPoint* point) {
                                                             return point->comparison.verdict == verdict;
                                                           }));
                       }});
  return columns;
}

}  // namespace

Table summary_table(const Launches& before, const Launches& after, const std::vector<ComparedPoint>& points,
                    size_t num_lost, double margin) {
  const std::vector<Kind> kinds = kinds_of(points);
  const ColumnsOf<Kind> counts = {
      {{"what", "", false}, [](const auto& kind) { return cells::words(kind.name); }},
      {{"points", ""}, [](const auto& kind) { return cells::count(std::ssize(kind.points)); }}};
  const ColumnsOf<Kind> lost = {{{"no longer ok", ""}, [&](const Kind& kind) {
                                   return &kind == kinds.data() ? cells::count(static_cast<int64_t>(num_lost))
                                                                : cells::words("");
                                 }}};
  Table table =
      make_table("comparison",
                 fmt::format("Comparison of step times: {} before, {} after",
                             launches_text(before.started.size()), launches_text(after.started.size())),
                 join(counts, change_columns_of_kinds(), verdict_columns(), lost), kinds);
  table.notes = notes(before, after, points, margin);
  return table;
}

}  // namespace shardmark
