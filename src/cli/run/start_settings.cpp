// See start_settings.h.
#include "cli/run/start_settings.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/run/world.h"
#include "plan/starts.h"

namespace shardmark {
namespace {

// Of the names that any point sets.
Settings settings_here(const std::vector<Point>& plan, const WorldFlags& flags) {
  Settings here;
  for (const std::string& name : names_set(plan)) {
    if (name == "threads")
      here[name] = std::to_string(at::get_num_threads());
    else if (name == "bind")
      here[name] = flags.bind;
    else if (const char* value = std::getenv(name.c_str()); value != nullptr)
      here[name] = value;
  }
  return here;
}

// A flag that a point leaves open is whatever the start has.
bool is_of_start(const Settings& wanted, Settings here) {
  for (const char* flag : {"threads", "bind"})
    if (!wanted.contains(flag)) here.erase(flag);
  return difference(wanted, here).empty();
}

}  // namespace

std::vector<Point> points_of_this_start(const std::vector<Point>& plan, const WorldFlags& flags,
                                        const std::string& suite) {
  const Settings here = settings_here(plan, flags);
  const std::vector<StartOfPoints> starts = starts_of(plan);
  for (const StartOfPoints& start : starts)
    if (is_of_start(settings_from_text(start.environment), here)) return start.points;
  const Settings& first = settings_from_text(starts.front().environment);
  throw UsageError(fmt::format(
      "{} has {} of environment, and this start has none of them ({}, where \"{}\" is asked for): libraries "
      "read these once, so each is a start of its own; type: shardmark launch {} -n RANKS -o STUDY",
      suite, starts.size() == 1 ? "a setting" : std::to_string(starts.size()) + " settings",
      difference(first, here), to_text(first), suite));
}

void require_equal_settings(const HostGroup& world, const std::vector<Point>& plan, const WorldFlags& flags) {
  const std::vector<std::string> all = world.gather(to_text(settings_here(plan, flags)));
  together(world, [&] {
    for (size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all[0])
        throw UsageError(
            fmt::format("rank {} was started with \"{}\", rank 0 with \"{}\": mpirun hands a variable to "
                        "other nodes with "
                        "-x NAME; launch does it by itself",
                        rank, all[rank], all[0]));
  });
}

void forget_settings(const std::vector<Point>& plan, Environment& environment) {
  for (const std::string& name : names_set(plan)) {
    (*environment.variables).erase(name);
    if (name == "threads") {
      environment.threads_per_rank = 0;
      (*environment.variables).erase("OMP_NUM_THREADS");
    }
  }
}

}  // namespace shardmark
