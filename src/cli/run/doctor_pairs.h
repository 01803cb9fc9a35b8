// shardmark doctor --pairs: measures every pair and says who is slow.
#pragma once

#include <string>

#include "cli/run/preflight.h"
#include "doctor/pair_test.h"

namespace shardmark {

// On rank 0; empty elsewhere. Collective.
doctor::PairReport measure_and_report_pairs(const WorldFlags& flags, const Ranks& ranks,
                                            const Preflight& ready);

std::string pairs_text(const doctor::PairReport& report);
nlohmann::ordered_json pairs_json(const doctor::PairReport& report);

}  // namespace shardmark
