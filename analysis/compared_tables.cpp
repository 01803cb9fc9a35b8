// The rows of a comparison: every point with its numbers, those that changed, those that one side lacks, and
// what differs in the environments.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/cells.h"
#include "analysis/compare_tables.h"
#include "analysis/training_columns.h"
#include "base/units.h"

namespace shardmark {
namespace {

constexpr std::array<std::string_view, 4> kBasisNames = {"ranks", "spread", "reference", ""};

std::vector<Column> number_columns(const std::string& unit) {
  return {{"before", unit, true, false, "step time"},
          {"after", unit, true, false, "step time"},
          {"change", "%"},
          {"low", "%", true, true},
          {"high", "%", true, true},
          {"verdict", "", false},
          {"p", "", true, true},
          {"spread", "%", true, true},
          {"could show", "%", true, true},
          {"before", "", true, true, "launches"},
          {"after", "", true, true, "launches"},
          {"test", "", false, true}};
}

// Launches that allow a change by this factor in either direction tell nothing; people then read a word in
// place of digits that look like knowledge.
constexpr double kAnything = 10;

Cell signed_percent(double ratio) {
  if (!std::isfinite(ratio)) return cells::words("");
  if (std::abs(ratio) >= kAnything)
    return {(ratio > 0 ? "+" : "") + format_number(100 * ratio, 4), 100 * ratio};
  return {fmt::format("{:+.1f}", ratio * 100), ratio * 100};
}

// The ends of the interval.
std::vector<Cell> interval_cells(const Interval& interval) {
  std::vector<Cell> ends = {signed_percent(interval.low), signed_percent(interval.high)};
  if (1 + interval.low <= 1 / kAnything && 1 + interval.high >= kAnything)
    for (Cell& end : ends) end.text = "any";
  return ends;
}

Cell could_show(double slowdown) {
  Cell cell = cells::percent(slowdown);
  if (1 + slowdown >= kAnything) cell.text = "nothing";
  return cell;
}

std::vector<Cell> number_cells(const ComparedPoint& compared, double unit_s) {
  const Comparison& c = compared.comparison;
  return concat<Cell>(
      {{cells::number(c.old_s / unit_s), cells::number(c.new_s / unit_s), signed_percent(c.difference)},
       interval_cells(c.interval),
       {cells::words(std::string(to_text(c.verdict))), cells::number(c.p, 2), cells::percent(c.spread),
        could_show(compared.smallest), cells::count(static_cast<int64_t>(c.num_old)),
        cells::count(static_cast<int64_t>(c.num_new)),
        cells::words(std::string(kBasisNames.at(static_cast<size_t>(c.basis))))}});
}

std::vector<std::string> number_notes() {
  return {
      "step time: median over launches; of one launch, the median over its steps of the slowest rank's time.",
      "low, high: 95 % interval of the change. p: chance of such a difference without a cause, corrected for "
      "the "
      "number of points (Holm). any: from a tenth to ten times or beyond, so that nothing can be told.",
      "spread: standard deviation of the logarithm of a launch's time. could show: the slow-down that these "
      "launches would have found with 80 % power; a smaller one may hide. nothing: not even one by ten "
      "times.",
      "test: ranks (Mann and Whitney's, of launches); spread (Student's t, where launches are too few for "
      "ranks "
      "to show anything); reference (limits in the baseline, no test)."};
}

Table training_table(const std::vector<MergedPoint>& all, const std::vector<ComparedPoint>& points) {
  const TrainingColumns training(all);
  Table table{"compared_training",
              "Training points",
              number_notes(),
              concat<Column>({TrainingColumns::columns(), number_columns("ms")}),
              {},
              TrainingColumns::kNumGroupColumns,
              TrainingColumns::kNumSectionColumns};
  for (const ComparedPoint& compared : points)
    if (is_training(*compared.point))
      table.rows.push_back(concat<Cell>({training.cells(*compared.point), number_cells(compared, 1e-3)}));
  for (const std::string& note : training.mark_notes()) table.notes.push_back(note);
  return table;
}

Table collectives_table(const std::vector<ComparedPoint>& points, bool first) {
  const std::vector<Column> what = {
      {"machine", "", false, true},  {"transport", "", false, true}, {"operation", "", false, true},
      {"ranks", "", true, true},     {"type", "", false, true},      {"redop", "", false, true},
      {"in place", "", false, true}, {"seed", "", true, true},       {"size", "B"}};
  Table table{"compared_collectives",
              "Collectives",
              first ? number_notes() : std::vector<std::string>{},
              concat<Column>({what, number_columns("us")}),
              {},
              4,
              4};
  for (const ComparedPoint& compared : points) {
    if (is_training(*compared.point)) continue;
    const Point& p = compared.point->point;
    const CollectivePoint& c = p.collective;
    table.rows.push_back(concat<Cell>(
        {{cells::words(compared.point->machine), cells::words(compared.point->transport),
          cells::words(c.operation), cells::count(p.ranks), cells::words(c.dtype), cells::words(c.reduction),
          cells::yes_no(c.in_place), cells::count(p.seed), cells::count(c.bytes)},
         number_cells(compared, 1e-6)}));
  }
  return table;
}

// What a side says of a point.
std::string state_of(const Launches& side, const std::string& content) {
  const auto found = side.points.find(content);
  if (found == side.points.end()) return "not in it";
  return found->second.step_s.empty() ? found->second.missing : "measured";
}

}  // namespace

std::vector<Table> compared_tables(const std::vector<MergedPoint>& all,
                                   const std::vector<ComparedPoint>& points) {
  Table training = training_table(all, points);
  const bool no_training = training.rows.empty();
  return {std::move(training), collectives_table(points, no_training)};
}

Table changed_table(const std::vector<ComparedPoint>& points, const Launches& after) {
  Table table{"changed",
              "Points that changed, the most first",
              {},
              {{"verdict", "", false}, {"change", "%"}, {"low", "%"}, {"high", "%"}, {"point", "", false}},
              {}};
  std::vector<const ComparedPoint*> changed;
  for (const ComparedPoint& point : points)
    if (point.comparison.verdict == Judgement::slower || point.comparison.verdict == Judgement::faster)
      changed.push_back(&point);
  std::stable_sort(changed.begin(), changed.end(), [](const ComparedPoint* a, const ComparedPoint* b) {
    return a->comparison.difference > b->comparison.difference;
  });
  for (const ComparedPoint* point : changed) {
    const Comparison& c = point->comparison;
    table.rows.push_back(
        concat<Cell>({{cells::words(std::string(to_text(c.verdict))), signed_percent(c.difference)},
                      interval_cells(c.interval),
                      {cells::words(after.points.at(content_id(point->point->point)).name)}}));
  }
  return table;
}

Table one_sided_table(const Launches& before, const Launches& after) {
  Table table{"one_sided",
              "Points that one side did not measure",
              {},
              {{"before", "", false}, {"after", "", false}, {"point", "", false}},
              {}};
  std::map<std::string, std::string> names;  // by content
  for (const Launches* side : {&before, &after})
    for (const auto& [content, point] : side->points) names[content] = point.name;
  for (const auto& [content, name] : names) {
    const std::string was = state_of(before, content), is = state_of(after, content);
    if (was != is && (was == "measured" || is == "measured"))
      table.rows.push_back({cells::words(was), cells::words(is), cells::words(name)});
  }
  return table;
}

Table environment_table(const Launches& before, const Launches& after) {
  Table table{"environment",
              "What differs between the environments",
              {},
              {{"what", "", false}, {"before", "", false}, {"after", "", false}},
              {}};
  std::set<std::string> names;
  for (const Launches* side : {&before, &after})
    for (const auto& [name, values] : side->environment) names.insert(name);
  const auto values = [](const Launches& side, const std::string& name) {
    const auto found = side.environment.find(name);
    return found == side.environment.end() ? "" : fmt::format("{}", fmt::join(found->second, "; "));
  };
  for (const std::string& name : names)
    if (const std::string was = values(before, name), is = values(after, name); was != is)
      table.rows.push_back({cells::words(name), cells::words(was), cells::words(is)});
  return table;
}

}  // namespace shardmark
