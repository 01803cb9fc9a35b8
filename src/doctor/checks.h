// Finds what is wrong with a world from the facts of its ranks, and says how to fix it. All functions are
// pure.
#pragma once

#include <string>
#include <vector>

#include "base/ranges.h"
#include "doctor/facts.h"

namespace shardmark::doctor {

// error: a measurement would fail, hang, or mean something else than it says. warning: it is slower or
// riskier than necessary. note: worth knowing.
enum class Severity { error, warning, note };
const char* to_text(Severity severity);

struct Finding {
  Severity severity = Severity::warning;
  Numbers ranks;           // ranks that it concerns
  std::string what;        // one line, with numbers
  std::string fix;         // one line: what to do
  std::string check = {};  // name of the check that found it
  // It concerns what the user asked for, or where the study goes, and not the nodes of these ranks.
  bool is_of_job = false;
};
std::string to_text(const Finding& finding);  // "ranks 0-3: what; fix", one line

// `world` holds the facts of all ranks, in rank order. Errors come first. Each kind of trouble is one
// finding, however many ranks have it.
std::vector<Finding> examine(const std::vector<RankFacts>& world);

// The checks of examine(), one file each, in the order in which they run.
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
    // The first of the warnings, because it concerns every measured time.
    {kLoadCheck, check_load},
    // The first of the errors, because it may explain others.
    {"driver, generation and list of visible GPUs", check_needs},
    {"who is where, and what MPI makes of it", check_world},
    {"shared, hidden, unlike and slowed GPUs", check_gpus},
    {"versions of libraries and drivers", check_versions},
    {"binding to cores", check_cores},
    {"memory, disk, locks and limits", check_room},
};

}  // namespace shardmark::doctor
