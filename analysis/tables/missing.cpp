// What a report cannot say, and why: so that nothing is silently absent.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/stats/interconnects.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

// "10 failed, 2 timed_out", of records without a result.
std::string outcomes_text(const std::vector<StudyData>& studies) {
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

// Why no two points make a series; empty where some do.
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

struct Missing {
  std::string what, why;
};

std::vector<Missing> rows_of(const std::vector<StudyData>& studies, const MergedPoints& points,
                             const std::vector<ScalingSeries>& scaling) {
  std::vector<Missing> rows;
  const auto add = [&](const char* what, const std::string& why) {
    if (!why.empty()) rows.push_back({what, why});
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
    add("any number", fmt::format("no point has a result: {}", outcomes_text(studies)));
  const auto untimed = std::count_if(points.begin(), points.end(), [](const MergedPoint& merged) {
    return !(std::isfinite(merged.measures.step_s) && merged.measures.step_s > 0);
  });
  if (untimed > 0)
    add("some step times",
        fmt::format("{} of {} points have none above 0; they are in no series", untimed, points.size()));
  if (!std::any_of(points.begin(), points.end(), is_training)) return rows;
  add("weak scaling", why_no_series(points, scaling, Scaling::weak));
  add("strong scaling", why_no_series(points, scaling, Scaling::strong));
  if (workloads(points).empty()) add("interconnects", "no point on one rank of a model whose size is known");
  return rows;
}

}  // namespace

Table missing_table(const std::vector<StudyData>& studies, const MergedPoints& points,
                    const std::vector<ScalingSeries>& scaling) {
  const ColumnsOf<Missing> columns = {
      {{"what", "", false}, [](const auto& missing) { return cells::words(missing.what); }},
      {{"why", "", false}, [](const auto& missing) { return cells::words(missing.why); }}};
  return make_table("missing", "What this report cannot show, and why", columns,
                    rows_of(studies, points, scaling));
}

}  // namespace shardmark
