// What every block may say: ranks, transport, sampling.
#include "plan/axes.h"
#include "plan/choice_axis.h"
#include "plan/read_axis.h"

namespace shardmark {
namespace {

Sampling read_sampling(const YamlNode& node, Sampling sampling) {
  const YamlMap map(node, "sampling",
                    {"warmup_steps", "min_steps", "max_steps", "time_limit", "precision", "duration"});
  const auto read = [&](const char* key, const auto& kind, auto& value) {
    if (const auto* found = map.find(key)) value = found->value(kind);
  };
  read("warmup_steps", values::kStepsOrNone, sampling.warmup_steps);
  read("min_steps", values::kSteps, sampling.min_steps);
  read("max_steps", values::kSteps, sampling.max_steps);
  read("time_limit", values::kTimeLimit, sampling.time_limit_s);
  read("precision", values::kPrecision, sampling.precision);
  read("duration", values::kDuration, sampling.duration_s);
  if (sampling.min_steps > sampling.max_steps)
    node.fail("min_steps " + std::to_string(sampling.min_steps) + " is above max_steps " +
              std::to_string(sampling.max_steps));
  return sampling;
}

}  // namespace

CommonAxes read_common(const YamlMap& map, CommonAxes axes) {
  axes.place = map.node().place();
  if (const auto* found = map.find("ranks")) axes.ranks = read_values(*found, values::kRanks);
  if (const auto* found = map.find("transport")) {
    axes.transports.clear();
    for (const auto& choice : read_choices(*found, transport_kind()))
      axes.transports.push_back(to_text(choice));
  }
  if (const auto* found = map.find("sampling")) axes.sampling = read_sampling(*found, axes.sampling);
  return axes;
}

}  // namespace shardmark
