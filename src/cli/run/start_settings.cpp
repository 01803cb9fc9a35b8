// Compares the settings that a suite asks for with those that the ranks were started with.
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

// The values, in this process, of all names that any point sets.
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

// Whether this process has the wanted settings. A flag that the settings leave open may have any value.
bool is_of_start(const Settings& wanted, Settings here) {
  for (const char* flag : {"threads", "bind"})
    if (!wanted.contains(flag)) here.erase(flag);
  return difference(wanted, here).empty();
}

std::vector<Point> points_of(const std::vector<Point>& plan, const std::string& settings,
                             const std::string& suite, int64_t repetition) {
  int64_t num_repeats = 1;
  std::vector<Point> points;
  for (const Point& point : plan) {
    num_repeats = std::max(num_repeats, point.repeat + 1);
    if (point.environment == settings && (repetition == 0 || point.repeat == repetition - 1))
      points.push_back(point);
  }
  if (repetition > num_repeats)
    throw UsageError(fmt::format("--repetition {}: {} has {} of each point", repetition, suite,
                                 num_repeats == 1 ? "one" : std::to_string(num_repeats)));
  return points;
}

}  // namespace

std::vector<Point> points_of_this_start(const std::vector<Point>& plan, const WorldFlags& flags,
                                        const std::string& suite, int64_t repetition) {
  const Settings here = settings_here(plan, flags);
  const std::vector<std::string> all = settings_of(plan);
  // Nobody tells a process which combination of settings it was started for. It takes the first one of the
  // suite that equals what it has.
  for (const std::string& settings : all)
    if (is_of_start(settings_from_text(settings), here)) return points_of(plan, settings, suite, repetition);
  const Settings first = settings_from_text(all.front());
  throw UsageError(fmt::format(
      "{} has {} of environment, and this start has none of them ({}, where \"{}\" is asked for): libraries "
      "read these once, so each is a start of its own; type: shardmark launch {} -n RANKS -o STUDY",
      suite, all.size() == 1 ? "a setting" : std::to_string(all.size()) + " settings",
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
