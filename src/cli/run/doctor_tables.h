// What `shardmark doctor` shows: the machine, where ranks sit, what is wrong.
#pragma once

#include <vector>

#include "analysis/table.h"
#include "doctor/checks.h"

namespace shardmark {

// One row per thing; where nodes differ, one per value. extra: rows that only this process knows.
struct Line {
  std::string what, found;
};
Table machine_table(const std::vector<doctor::RankFacts>& world, const std::vector<Line>& extra);
Table placement_table(const std::vector<doctor::RankFacts>& world);

// num_slow: what the pair test found beside them.
std::string findings_text(const std::vector<doctor::Finding>& findings, size_t num_slow);
nlohmann::ordered_json findings_json(const std::vector<doctor::Finding>& findings);

}  // namespace shardmark
