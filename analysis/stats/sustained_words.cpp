// The findings of a sustained run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/stats/sustained.h"
#include "base/units.h"

namespace shardmark {
namespace {

constexpr double kLeastThrottled = 0.01;  // of a rank's time

std::string who(int64_t rank, const std::string& host) {
  if (rank < 0) return "node " + host;
  return fmt::format("rank {}{}", rank, host.empty() ? "" : " of " + host);
}

std::string drift_words(const Sustained& run) {
  const double change = run.change_ratio();
  std::string words = fmt::format("became {:.1f} % {} within {}", 100 * std::abs(change),
                                  change > 0 ? "slower" : "faster", duration_text(run.duration_s()));
  if (run.change)
    words += fmt::format(" ({:+.1f} to {:+.1f} %)", 100 * run.change->low, 100 * run.change->high);
  if (!run.reasons.empty())
    words += fmt::format("; {} held clocks down {:.0f} % of the time", run.reasons.front().reason,
                         100 * run.reasons.front().share);
  return words;
}

std::string throttling_words(const Sustained& run, const Throttling& found) {
  const auto& hosts = run.environment->rank_nodes;
  const auto rank = static_cast<size_t>(found.worst_rank);
  std::string words = fmt::format("{} held the clock of {} down {:.0f} % of the time, first within {}",
                                  found.reason, who(found.worst_rank, rank < hosts.size() ? hosts[rank] : ""),
                                  100 * found.worst_share, duration_text(found.since_s));
  if (found.num_ranks > 1)
    words += fmt::format("; also {} other rank{}", found.num_ranks - 1, found.num_ranks == 2 ? "" : "s");
  return words;
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 119.5) return fmt::format("{:.0f} s", seconds);
  const auto minutes = static_cast<int64_t>(std::llround(seconds / 60));
  if (minutes < 60) return fmt::format("{} min", minutes);
  const std::string hours = fmt::format("{} h", minutes / 60);
  return minutes % 60 == 0 ? hours : fmt::format("{} {} min", hours, minutes % 60);
}

std::string words_of(const SlowSpell& spell, double duration_s) {
  std::string words = fmt::format("{:.0f} % slower", 100 * spell.excess);
  if (spell.since_s > 0) return words + " since " + duration_text(spell.since_s);
  if (spell.until_s < duration_s) return words + " until " + duration_text(spell.until_s);
  return words + " all the time";
}

std::vector<std::pair<std::string, std::string>> words_of(const Sustained& run) {
  std::vector<std::pair<std::string, std::string>> all;
  const bool is_alone = !run.record->measures.oversubscribed;  // else other ranks explain whatever it did
  if (run.is_drift && is_alone)
    all.emplace_back(run.change_ratio() > 0 ? "slower over time" : "faster over time", drift_words(run));
  for (const SlowSpell& spell : run.slow)
    all.emplace_back(spell.rank < 0 ? "slow node" : "slow rank",
                     fmt::format("{} is {} for the same computing as the others", who(spell.rank, spell.host),
                                 words_of(spell, run.duration_s())));
  for (const Throttling& found : run.reasons)
    if (found.is_fault && found.worst_share >= kLeastThrottled)
      all.emplace_back("throttled", throttling_words(run, found));
  return all;
}

}  // namespace shardmark
