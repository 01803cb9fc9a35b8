// Step times launch by launch: steps and repeats of one launch are correlated, launches are not, so a
// comparison counts launches. They come from studies, or from a baseline file (baseline.h).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schema/study.h"

namespace shardmark {

// What a point's step time shall be on a machine, in seconds; an end that is NaN is open.
struct Reference {
  double value;
  double lower;
  double upper;
};

struct LaunchTimes {
  std::string name;            // for people
  std::vector<double> step_s;  // of each launch that has one: the median over its repeats
  std::string missing;         // why there is none: "failed: ..."; "" where there is one
  std::optional<Reference> reference;
};

// The most launches of one side that are compared. The exact rank test of more would take minutes for each
// point, and tell little more.
inline constexpr size_t kMostLaunches = 100;

struct Launches {
  std::string machine;                                       // the same for all
  std::map<std::string, std::string> started;                // launch -> when it began, UTC
  std::map<std::string, LaunchTimes> points;                 // by content_id
  std::map<std::string, std::set<std::string>> environment;  // "torch" -> {"2.11.0"}: what studies of a
                                                             // machine may differ in
};

// Names the launch that made a record: when it began, and on which nodes.
std::string launch_name(const Environment& environment, const Record& record);

// Names what a point measures: everything that defines it but the repeat, the sampling and whether the suite
// wrote its batch per rank or for all. Equal points of two studies have the same.
std::string content_id(const Point& point);

// Whether the studies must come from one machine: launches of equal devices on several hosts need not, which
// then differ in more than launches do.
enum class OneMachine { needed, not_needed };

// A copy of a study, or a study given twice, is the same launch; a resumed study is several. Runs of
// shardmark train are passed over, and so are collectives beside a load, whose rounds each launch makes as
// long as it needs. UsageError: the studies come from different machines or transports, or are more than
// kMostLaunches.
Launches launches_of(const std::vector<StudyData>& studies, OneMachine one_machine = OneMachine::needed);

}  // namespace shardmark
