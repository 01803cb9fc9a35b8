// What every block may say: ranks, transport, sampling.
#include "base/units.h"
#include "plan/axes.h"
#include "plan/choice_axis.h"
#include "plan/read_axis.h"

namespace shardmark {
namespace {

double read_duration(const YamlNode& node) {
  try {
    if (const double seconds = parse_seconds(node.text()); seconds > 0) return seconds;
  } catch (const UsageError&) {  // said below, with the place
  }
  node.fail("expected a time above 0, such as 90s, 30m or 2h, got " + node.describe());
}

Sampling read_sampling(const YamlNode& node, Sampling sampling) {
  const YamlMap map(node, "sampling",
                    {"warmup_steps", "min_steps", "max_steps", "time_limit", "precision", "duration"});
  const auto count = [&](const char* key, int64_t minimum, int64_t& value) {
    if (const auto* found = map.find(key)) value = found->integer(minimum, 1000000000);
  };
  count("warmup_steps", 0, sampling.warmup_steps);
  count("min_steps", 1, sampling.min_steps);
  count("max_steps", 1, sampling.max_steps);
  if (const auto* found = map.find("time_limit")) sampling.time_limit_s = found->positive_number();
  if (const auto* found = map.find("precision")) sampling.precision = found->positive_number();
  if (const auto* found = map.find("duration")) sampling.duration_s = read_duration(*found);
  if (sampling.min_steps > sampling.max_steps)
    node.fail("min_steps " + std::to_string(sampling.min_steps) + " is above max_steps " +
              std::to_string(sampling.max_steps));
  return sampling;
}

}  // namespace

CommonAxes read_common(const YamlMap& map, CommonAxes axes) {
  axes.place = map.node().place();
  if (const auto* found = map.find("ranks")) axes.ranks = read_counts(*found, kMostRanks);
  if (const auto* found = map.find("transport")) {
    axes.transports.clear();
    for (const auto& choice : read_choices(*found, transport_kind()))
      axes.transports.push_back(to_text(choice));
  }
  if (const auto* found = map.find("sampling")) axes.sampling = read_sampling(*found, axes.sampling);
  return axes;
}

}  // namespace shardmark
