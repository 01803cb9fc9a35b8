// What `shardmark doctor --pairs` measures of the links between ranks, and shows of it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "doctor/bisection.h"
#include "doctor/pair_test.h"

namespace shardmark {

struct Preflight;
struct Ranks;
struct WorldFlags;

struct LinkTests {
  bool halve = false;
  doctor::Switches switches = {};  // on rank 0; empty: nobody said
};

// UsageError: a node of a rank that the switches lack; too few to halve.
void check_links(const LinkTests& tests, const std::vector<doctor::RankFacts>& ranks);

struct LinkReport {
  struct Test {
    std::string key, title, name;  // of JSON; of the text; of JUnit's case
    const doctor::Verdicts* verdicts;
  };
  doctor::PairReport pairs;
  doctor::CutReport cuts;
  std::optional<doctor::Verdicts> halving;

  std::vector<Test> tests() const;
  size_t num_slow() const;
};

// Every pair; the cuts; where it is asked for, halves down to who is slow. On rank 0; empty elsewhere.
// Collective.
LinkReport measure_links(const WorldFlags& flags, const Ranks& ranks, const Preflight& ready,
                         const LinkTests& tests);

std::string to_text(const LinkReport& report);
void add_to(nlohmann::ordered_json& document, const LinkReport& report);  // a key for each test
std::string to_html(const LinkReport& report);

}  // namespace shardmark
