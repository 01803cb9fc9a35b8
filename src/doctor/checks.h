// What is wrong with a world, from the facts of its ranks, and how to fix it. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "doctor/facts.h"
#include "doctor/ranges.h"

namespace shardmark::doctor {

// error: nothing measured here would mean what it says, or it would fail or hang. warning: slower or riskier
// than it has to be. note: worth knowing.
enum class Severity { error, warning, note };
const char* to_text(Severity severity);

struct Finding {
  Severity severity = Severity::warning;
  Numbers ranks;           // whom it concerns
  std::string what;        // one line, with numbers
  std::string fix;         // one line: what to do
  std::string check = {};  // that found it: its name
};
std::string to_text(const Finding& finding);  // "ranks 0-3: what; fix", one line

// All ranks of a world, by rank. Errors come first; each kind of trouble is one finding, however many
// ranks have it.
std::vector<Finding> examine(const std::vector<RankFacts>& world);

// The parts of examine, one file each, in the order in which they run.
using Findings = std::vector<Finding>;
using World = std::vector<RankFacts>;
void check_load(const World& world, Findings& findings);
void check_needs(const World& world, Findings& findings);
void check_world(const World& world, Findings& findings);
void check_gpus(const World& world, Findings& findings);
void check_versions(const World& world, Findings& findings);
void check_cores(const World& world, Findings& findings);
void check_room(const World& world, Findings& findings);

inline constexpr const char* kLoadCheck = "what other processes use of the cores";

struct Check {
  const char* name;
  void (*run)(const World& world, Findings& findings);
};
inline constexpr Check kChecks[] = {
    // First of all warnings: it concerns every time that is measured.
    {kLoadCheck, check_load},
    // First: it may be why something else is not as it should be.
    {"driver, generation and list of visible GPUs", check_needs},
    {"who is where, and what MPI makes of it", check_world},
    {"shared, hidden, unlike and slowed GPUs", check_gpus},
    {"versions of libraries and drivers", check_versions},
    {"binding to cores", check_cores},
    {"memory, disk, locks and limits", check_room},
};

}  // namespace shardmark::doctor
