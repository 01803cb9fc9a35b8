// The output of `shardmark doctor`: the machine, the placement of ranks, and the findings.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/render/junit.h"
#include "analysis/table/table.h"
#include "cli/run/doctor_links.h"
#include "doctor/checks.h"

namespace shardmark {

// One row per property, or one per value if nodes differ. `extra` has rows that only this process knows.
struct Line {
  std::string what, found;
};
Table machine_table(const std::vector<doctor::RankFacts>& world, const std::vector<Line>& extra);
Table placement_table(const std::vector<doctor::RankFacts>& world);

// num_bad is the number of wrong and slow results of the link tests, which are counted with the findings.
std::string findings_text(const std::vector<doctor::Finding>& findings, size_t num_bad);
// A test case for each check, and for each test of links that was made.
JUnitSuite doctor_tests(const std::vector<doctor::RankFacts>& world,
                        const std::vector<doctor::Finding>& findings, const std::optional<LinkReport>& links);
nlohmann::ordered_json findings_json(const std::vector<doctor::Finding>& findings);

}  // namespace shardmark
