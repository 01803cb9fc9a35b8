// The first screen of a report, and the top of its page: what was measured where, the answer to a suite's
// question, and what is unreliable.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/frame/labels.h"
#include "analysis/stats/nodes.h"
#include "analysis/stats/scaling.h"
#include "analysis/stats/settings.h"
#include "analysis/table/table.h"

namespace shardmark {

// Stands behind a value or a verdict that is not certain.
inline constexpr const char* kMark = " ?";

// Where a row stands among the rows of its group that are ranked.
enum class Tier {
  fastest,    // all others are slower
  slower,     // than the fastest, as the launches show
  perhaps,    // not told from the fastest
  unranked,   // beside the others, but no rival of theirs
  unreliable  // its times have a warning
};

// Rows of one setting, the best one first.
struct OverviewGroup {
  std::string setting;  // what differs from the other groups: "bf16, batch 16 per rank"; empty: nothing
  std::vector<std::vector<Cell>> rows;
  size_t num_left_out = 0;       // rows at the end that found no place
  std::vector<Tier> tiers = {};  // of each row, also of those that found no place; empty: nothing is ranked
};

struct OverviewTable {
  std::string title;
  std::string key;              // of the table that holds all of it
  std::vector<Column> columns;  // the first one says which row
  std::vector<OverviewGroup> groups;
  std::vector<std::string> notes;  // what marks in the rows mean, a paragraph each
  size_t num_left_out = 0;         // groups at the end that found no place
  std::string shared = {};         // what all rows have in common, said once above them: "gpt2, 2 ranks"
};

// Names the rows of a group by their first cells' parts; returns what the rows share.
std::string name_rows(OverviewGroup& group, const std::vector<LabelParts>& rows);
// Names the groups by what they differ in; what they share is said once above the table.
void name_groups(OverviewTable& table, const std::vector<LabelParts>& groups);

// The columns that hold a value, and the first, which says which row.
std::vector<size_t> columns_with_values(const OverviewTable& table);

struct Overview {
  std::vector<std::string> studies;    // a paragraph each, and what makes all of their times doubtful
  std::vector<std::string> nodes;      // the verdicts on nodes, of a suite with `accept`; a paragraph each
  std::vector<OverviewTable> answers;  // to what special suites ask, then training, then collectives
  std::vector<std::string> standing;   // beside what others measured, a paragraph each
  std::vector<std::string> cautions;   // one for each cause, not for each point
};

// All but `standing` and `nodes`. unfinished: sustained runs that did not come to their end. scaling: of the
// points.
Overview overview_of(const std::vector<StudyData>& studies, const std::vector<MergedPoint>& points,
                     const std::vector<MergedPoint>& unfinished, const std::vector<ScalingSeries>& scaling);

// Its parts. The strategies of each training setting on the most ranks, the fastest first: how fast, by how
// much slower than the fastest and whether that is certain, memory, exposed communication.
OverviewTable training_overview(const std::vector<MergedPoint>& points);
// The efficiency of each strategy on each number of ranks; `scaling` points into `points`. This is a suite's
// own question where a series has three rank counts or more.
OverviewTable scaling_overview(const std::vector<MergedPoint>& points,
                               const std::vector<ScalingSeries>& scaling);
bool answers_scaling(const std::vector<ScalingSeries>& scaling);
// What suites that were made for one question ask; without groups where a study does not hold it. Points that
// were measured under several settings, and layouts over several ranks, are rows of no other table.
OverviewTable settings_overview(const std::vector<SettingsGroup>& groups);
OverviewTable together_overview(const std::vector<MergedPoint>& points);
OverviewTable layouts_overview(const std::vector<MergedPoint>& points);
OverviewTable largest_overview(const std::vector<StudyData>& studies, const std::vector<MergedPoint>& points);
OverviewTable checkpoints_overview(const std::vector<MergedPoint>& points);
OverviewTable sustained_overview(const std::vector<MergedPoint>& points,
                                 const std::vector<MergedPoint>& unfinished);
// The bus bandwidth of each collective's largest message, and the time of its smallest.
OverviewTable collectives_overview(const std::vector<StudyData>& studies,
                                   const std::vector<MergedPoint>& points);
std::vector<std::string> nodes_overview(const std::optional<NodesJudged>& judged);
// What the preflight of each launch saw other processes use of the cores, and in how many points ranks lost
// theirs. It is said before any number.
std::vector<std::string> doubts_of(const std::vector<StudyData>& studies,
                                   const std::vector<MergedPoint>& points);
std::vector<std::string> cautions_of(const std::vector<StudyData>& studies,
                                     const std::vector<MergedPoint>& points,
                                     const std::vector<MergedPoint>& unfinished);

// How it is printed: how many columns wide; with colour where a terminal shows it.
struct TextStyle {
  size_t width = 100;
  bool color = false;
};
// One screen: what finds no room is counted.
// definitions: shown, what the columns mean, below them.
std::string to_text(Overview overview, const TextStyle& style,
                    Explanations definitions = Explanations::left_out);

}  // namespace shardmark
