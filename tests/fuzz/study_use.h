// Reads a study and does everything with it that commands do. No study that can be read may break them.
#pragma once

#include <sstream>

#include "analysis/compare/tables.h"
#include "analysis/export.h"
#include "analysis/frame/suite_of.h"
#include "analysis/overview/overview.h"
#include "analysis/report.h"
#include "analysis/stats/baseline.h"
#include "fuzz_target.h"
#include "schema/json.h"

namespace shardmark {

// Throws UsageError if a part of the study cannot be read.
inline void use(const StudyData& study, const std::string& path) {
  const std::vector<StudyData> studies = {study};
  const ReportData data(studies);
  visit_tables(data, {}, [](Table&& table) {
    to_text(table);
    to_markdown(table);
    to_csv(table);
    dump_line(to_json(table));
  });
  to_text(overview_of(studies, data.points, data.unfinished, data.scaling), {});
  for (const Record& record : study.records)
    if (is_known_workload(record.point)) suite_of(record.point);
  const Launches launches = launches_of(studies);
  read_baseline(to_baseline(launches, "", path).text, launches.machine, path);
  try {
    compare_sides(launches, launches, studies, 0.05);
  } catch (const UsageError&) {  // if there is nothing to compare, the error has no path
  }
  std::stringstream out;
  for (const Table& table : {points_export(study), environment_export(study)}) out << to_csv(table);
  write_samples_csv(out, study);
  write_json(out, study);
}

inline void use_study(const std::string& path) {
  one_line_or_result(path, [&] { use(read_study(path), path); });
}

}  // namespace shardmark
