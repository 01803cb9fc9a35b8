// What a reader must know before trusting a report: points that gave no result, results to check, and what
// the report cannot show, so that nothing is silently absent.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <string_view>
#include <tuple>

#include "analysis/findings/findings.h"
#include "analysis/stats/interconnects.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/about.h"
#include "analysis/tables/tables.h"
#include "base/units.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

struct Problem {
  std::string concerns, what, why;
  int64_t num_points = -1;   // -1: one, or none in particular
  About about = {};          // empty: no point in particular
  bool is_left_out = false;  // of fits
};
using Problems = std::vector<Problem>;
constexpr const char* kToCheck = "results to check";

// What the points of one row are.
struct NotOk {
  int64_t num_points = 0;
  std::set<std::string> work, strategies, transports;
  std::map<int64_t, std::string> ranks, sizes;

  void add(const Point& point, const std::string& transport) {
    const bool is_call = point.workload == "collective";
    const int64_t size = is_call ? point.collective.bytes : point.training.batch_size;
    ++num_points;
    work.insert(is_call ? point.collective.operation : point.training.model.name);
    if (!is_call) strategies.insert(strategy_text(point.training));
    if (!transport.empty()) transports.insert(transport_cell(transport).text);
    ranks.emplace(point.ranks, std::to_string(point.ranks));
    sizes.emplace(size, is_call ? format_bytes(static_cast<double>(size)) : std::to_string(size));
  }
};

const std::string& text_of_value(const std::string& text) { return text; }
const std::string& text_of_value(const std::pair<const int64_t, std::string>& number) {
  return number.second;
}

// "1, 2, 4", or "8 ... 1024" for a long list.
template <class Values>
Cell listed(const Values& values) {
  std::string list;
  for (const auto& value : values) list += (list.empty() ? "" : ", ") + text_of_value(value);
  const bool is_long = values.size() > 6;
  return cells::words(is_long ? text_of_value(*values.begin()) + " ... " + text_of_value(*values.rbegin())
                              : list);
}

// "70.3 MiB wanted" becomes "64.0 MiB to 128 MiB wanted". Rows are made by outcome and reason, and points
// that lacked slightly different amounts of memory should share one.
std::string with_rounded_amount(const std::string& reason) {
  static const std::regex amount("([0-9.]+) (B|KiB|MiB|GiB|TiB) wanted");
  std::smatch found;
  if (!std::regex_search(reason, found, amount)) return reason;
  constexpr std::string_view kUnits = "BKMGT";
  const double bytes =
      std::stod(found[1].str()) * std::exp2(10.0 * static_cast<double>(kUnits.find(found[2].str()[0])));
  const double low = std::exp2(std::floor(std::log2(bytes)));
  return fmt::format("{}{} to {} wanted{}", found.prefix().str(), format_bytes(low), format_bytes(2 * low),
                     found.suffix().str());
}

using NotOkGroups = std::map<std::tuple<Outcome, std::string>, NotOk>;  // by outcome and reason

NotOkGroups not_ok_of(const std::vector<StudyData>& studies) {
  NotOkGroups groups;
  for (const StudyData& study : studies)
    for (const Record& record : study.records)
      if (record.outcome != Outcome::ok)
        groups[{record.outcome,
                with_rounded_amount(record.reason) + (record.attempts > 1 ? "; in the second attempt" : "")}]
            .add(record.point,
                 record.point.transport.empty() ? study.environment.transport : record.point.transport);
  return groups;
}

// One row for the points that share an outcome and a reason.
void add_not_ok(Problems& problems, const std::vector<StudyData>& studies) {
  for (const auto& [key, group] : not_ok_of(studies)) {
    const auto& [outcome, reason] = key;
    problems.push_back({"points without a result",
                        std::string(to_text(outcome)),
                        reason.empty() ? "not recorded" : reason,
                        group.num_points,
                        {.work = listed(group.work),
                         .strategy = listed(group.strategies),
                         .transport = group.transports.empty() ? Cell{"", nullptr} : listed(group.transports),
                         .ranks = listed(group.ranks),
                         .size = listed(group.sizes)}});
  }
}

void add_results_to_check(Problems& problems, const MergedPoints& points, const MergedPoints& unfinished) {
  for (const PointFinding& finding : findings_of(points, unfinished)) {
    Problem& problem = problems.emplace_back(Problem{kToCheck, finding.kind, finding.words});
    problem.is_left_out = finding.excludes;
    problem.about = about_point(*finding.about);
  }
}

// "10 failed, 2 timed_out", of records without a result.
std::string not_ok_text(const std::vector<StudyData>& studies) {
  std::string text;
  for (const Outcome outcome :
       {Outcome::skipped, Outcome::out_of_memory, Outcome::wrong, Outcome::failed, Outcome::timed_out}) {
    int64_t count = 0;
    for (const StudyData& study : studies)
      for (const Record& record : study.records) count += record.outcome == outcome ? 1 : 0;
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, to_text(outcome));
  }
  return text;
}

// Why no two points make a series; empty if some do. The reasons are tried from the plainest on: ranks that
// do not work together, a single number of ranks, and last a batch that is never the same on two of them.
std::string why_no_series(const MergedPoints& points, const std::vector<ScalingSeries>& all,
                          Scaling scaling) {
  if (std::any_of(all.begin(), all.end(), [&](const ScalingSeries& s) { return s.scaling == scaling; }))
    return "";
  bool together = false, several = false;
  int64_t ranks = -1;
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || is_replicas(merged)) continue;
    together = true;
    several |= ranks >= 0 && ranks != merged.point.ranks;
    ranks = merged.point.ranks;
  }
  if (!together) return "all points are of `single`, whose ranks train independent copies";
  if (!several)
    return fmt::format("all points are on {} rank{}; a series needs two rank counts", ranks,
                       ranks == 1 ? "" : "s");
  return scaling == Scaling::weak ? "no strategy has the same batch per rank on two rank counts"
                                  : "no strategy has the same global batch on two rank counts";
}

void add_missing(Problems& problems, const std::vector<StudyData>& studies, const MergedPoints& points,
                 const std::vector<ScalingSeries>& scaling) {
  const auto add = [&](const char* what, const std::string& why) {
    if (!why.empty()) problems.push_back({"what this report cannot show", what, why});
  };
  size_t num_records = 0, num_runs = 0;
  for (const StudyData& study : studies) {
    num_records += study.records.size();
    num_runs +=
        static_cast<size_t>(std::count_if(study.records.begin(), study.records.end(),
                                          [](const Record& r) { return r.point.workload == "train"; }));
  }
  if (num_records == 0) add("anything", "no point had finished when the study was written");
  if (num_records > num_runs && points.empty())
    add("any number", fmt::format("no point has a result: {}", not_ok_text(studies)));
  const auto untimed = std::count_if(points.begin(), points.end(), [](const MergedPoint& merged) {
    return !(std::isfinite(merged.measures.step_s) && merged.measures.step_s > 0);
  });
  if (untimed > 0)
    add("some step times",
        fmt::format("{} of {} points have none above 0; they are in no series", untimed, points.size()));
  if (!std::any_of(points.begin(), points.end(), is_training)) return;
  add("weak scaling", why_no_series(points, scaling, Scaling::weak));
  add("strong scaling", why_no_series(points, scaling, Scaling::strong));
  // The formula for other links starts from a measured step on one rank.
  if (workloads(points).empty()) add("interconnects", "no point on one rank of a model whose size is known");
}

ColumnsOf<Problem> problem_columns() {
  ColumnsOf<Problem> columns = {
      {{"concerns", "", false, true, "", Starts::section},
       [](const auto& row) { return cells::words(row.concerns); }},
      {{"what", "", false}, [](const auto& row) { return cells::words(row.what); }},
      {{.name = "points", .is_optional = true},
       [](const auto& row) {
         return row.num_points < 0 ? Cell{"", nullptr} : cells::count(row.num_points);
       },
       "with the same outcome and reason."}};
  ColumnsOf<About> about = columns_of_about();
  for (auto& column : about) column.head.is_optional = true;
  columns = join(std::move(columns), through<Problem>([](const Problem& row) { return row.about; }, about));
  columns.back().definition = "batch per rank, or bytes of the message.";
  columns.push_back({{"why", "", false}, [](const auto& row) { return cells::words(row.why); }});
  columns.push_back({{"fits", "", false, true},
                     [](const auto& row) {
                       return row.is_left_out ? cells::words("left out") : Cell{"", nullptr};
                     },
                     "left out: no fit uses the point."});
  return columns;
}

}  // namespace

Table problems_table(const std::vector<StudyData>& studies, const MergedPoints& points,
                     const MergedPoints& unfinished, const std::vector<ScalingSeries>& scaling) {
  Problems problems;
  add_not_ok(problems, studies);
  add_results_to_check(problems, points, unfinished);
  add_missing(problems, studies, points, scaling);
  Table table =
      make_table("problems", "Problems: points without a result, results to check, and what is missing",
                 problem_columns(), problems);
  if (std::any_of(problems.begin(), problems.end(),
                  [](const Problem& one) { return one.concerns == kToCheck; }))
    table.explanations.emplace(
        table.explanations.begin(),
        "An operation should not take longer than a larger message of it, than the smaller messages it could "
        "be split into, or than other operations that together do its work (Traeff, Gropp and Thakur 2010); "
        "ratios below 1.25 and differences within the 95 % intervals are not reported, and of each kind only "
        "the worst size is shown. Efficiency should not pass 100 %, nor rise with more ranks: differences "
        "below 2 % and within the 95 % intervals are not reported.");
  return table;
}

}  // namespace shardmark
