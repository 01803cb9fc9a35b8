// Measures the links between ranks for `shardmark doctor --pairs`, and shows the results.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "doctor/bisection.h"
#include "doctor/facts.h"
#include "doctor/pair_test.h"

namespace shardmark {

struct Preflight;
struct Ranks;
struct WorldFlags;

struct LinkTests {
  bool halve = false;
  doctor::Switches switches = {};  // on rank 0; empty: not given
};

// Throws UsageError if the switches lack the node of a rank, or if there are too few nodes to halve.
void check_links(const LinkTests& tests, const std::vector<doctor::RankFacts>& ranks);

struct LinkReport {
  struct Test {
    std::string key, title, name;  // in JSON; in text; of the JUnit case
    const doctor::Verdicts* verdicts;
  };
  doctor::PairReport pairs;
  doctor::CutReport cuts;
  std::optional<doctor::Verdicts> halving;

  std::vector<Test> tests() const;
  size_t num_bad() const;
};

// Whether a physical machine has more ranks than cores. It may hold several containers that look like nodes,
// each with cores of its own.
bool is_crowded(const std::vector<doctor::RankFacts>& ranks);

// Measures every pair, then the cuts, and, if asked for, halves of the machine down to the slow nodes. The
// result is on rank 0 and empty elsewhere. Collective.
LinkReport measure_links(const WorldFlags& flags, const Ranks& ranks, const Preflight& ready,
                         const LinkTests& tests);

std::string to_text(const LinkReport& report);
void add_to(nlohmann::ordered_json& document, const LinkReport& report);  // a key for each test
std::string to_html(const LinkReport& report);

}  // namespace shardmark
