// Reads a study and makes everything of it that the commands make: no study that can be read may break them.
#pragma once

#include <sstream>

#include "analysis/compare/baseline.h"
#include "analysis/compare/tables.h"
#include "analysis/export.h"
#include "analysis/report.h"
#include "fuzz_target.h"
#include "schema/json.h"

namespace shardmark {

inline void use_study(const std::string& path) {
  one_line_or_result(path, [&] {
    const StudyData study = read_study(path);
    for (const Table& table : make_report({study})) {
      to_text(table);
      to_markdown(table);
      to_csv(table);
      dump_line(to_json(table));
    }
    const Launches launches = launches_of({study});
    read_baseline(to_baseline(launches, "", path).text, launches.machine, path);
    try {
      compare_sides(launches, launches, {study}, 0.05);
    } catch (const UsageError&) {  // nothing to compare: says so without a path
    }
    std::stringstream out;
    for (const Table& table : {points_export(study), environment_export(study)}) out << to_csv(table);
    write_samples_csv(out, study);
    write_json(out, study);
  });
}

}  // namespace shardmark
