// Parts of the page: the first screen, and below the tables where a study was made and how to make it again.
#pragma once

#include <string>
#include <vector>

#include "analysis/overview/overview.h"
#include "analysis/render/plot.h"
#include "schema/study.h"

namespace shardmark {

inline constexpr size_t kMostPageRows = 1000;  // of a table on a page

std::string studies_html(const Overview& overview);
// The answers as sentences, a paragraph each.
std::string headline_html(const Overview& overview);
std::string nodes_html(const Overview& overview);
std::string answers_html(const Overview& overview);
std::string standing_html(const Overview& overview);
std::string cautions_html(const Overview& overview);

// The schedules of the points' pipelines, drawn as if backward took twice as long as forward; a few of many.
std::string schedules_html(const std::vector<MergedPoint>& points);

// Plots that answer something better than their table does: those of a single bar, and curves of two points,
// do not, and formulas only where somebody asked for them.
bool is_telling(const Plot& plot, bool asked_for_links);
// Whether a table of fits and limits, which says in every row why it has none, has one.
bool has_finding(const Table& table, bool asked_for_links);

std::string environment_html(const StudyData& study);
std::string reproduce_html(const std::vector<StudyData>& studies);

}  // namespace shardmark
