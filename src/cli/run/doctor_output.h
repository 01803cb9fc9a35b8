// What `shardmark doctor` shows: the machine, where ranks sit, what is wrong; with --pairs who is slow.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/table/table.h"
#include "doctor/checks.h"
#include "doctor/pair_test.h"

namespace shardmark {

struct Preflight;
struct Ranks;
struct WorldFlags;

// One row per thing; where nodes differ, one per value. extra: rows that only this process knows.
struct Line {
  std::string what, found;
};
Table machine_table(const std::vector<doctor::RankFacts>& world, const std::vector<Line>& extra);
Table placement_table(const std::vector<doctor::RankFacts>& world);

// num_slow: what the pair test found beside them.
std::string findings_text(const std::vector<doctor::Finding>& findings, size_t num_slow);
nlohmann::ordered_json findings_json(const std::vector<doctor::Finding>& findings);

// Measures every pair. On rank 0; empty elsewhere. Collective.
doctor::PairReport measure_and_report_pairs(const WorldFlags& flags, const Ranks& ranks,
                                            const Preflight& ready);

std::string pairs_text(const doctor::PairReport& report);
nlohmann::ordered_json pairs_json(const doctor::PairReport& report);

}  // namespace shardmark
