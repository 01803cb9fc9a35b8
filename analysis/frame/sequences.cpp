#include "analysis/frame/sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/frame/known.h"
#include "base/units.h"

namespace shardmark {
namespace {

constexpr const char* kOption = "sequence";

Choice without_sequence(const Choice& model) {
  Choice rest{model.name};
  for (const auto& [name, value] : model.options)
    if (name != kOption) rest.options[name] = value;
  return rest;
}

}  // namespace

std::vector<SequenceSeries> sequence_series(const std::vector<MergedPoint>& points) {
  std::vector<SequenceSeries> all;
  std::map<std::string, size_t> known;
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || !merged.point.training.model.options.contains(kOption)) continue;
    const auto table = known_table(merged.point.training.model);
    if (!table || table->sample.tokens() == 0) continue;
    const int64_t sequence = table->sample.tokens(), batch = merged.point.training.batch_size;
    const Choice model = without_sequence(merged.point.training.model);
    const std::string series = to_text(model) + series_key(merged, {"model", "batch_size"}),
                      setting = to_text(model) +
                                series_key(merged, {"model", "batch_size", "strategy", "checkpointing"});
    // A point belongs to two series: one in which longer sequences mean fewer samples (equal tokens), and
    // one in which they mean more tokens (equal samples).
    for (const std::string& same :
         {format_count(static_cast<double>(batch * sequence)) + " tokens",
          fmt::format("{} sample{}", format_count(static_cast<double>(batch)), batch == 1 ? "" : "s")}) {
      const auto [found, is_new] = known.try_emplace(series + same, all.size());
      if (is_new) all.push_back({model, same, setting + same, {}});
      all[found->second].points.push_back({&merged, sequence, table->attention_share()});
    }
  }
  std::erase_if(all, [](const SequenceSeries& series) { return series.points.size() < 2; });
  for (SequenceSeries& series : all)
    std::sort(series.points.begin(), series.points.end(),
              [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  return all;
}

}  // namespace shardmark
