#include "analysis/overview/ranked.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/overview/overview.h"
#include "analysis/stats/compare.h"
#include "analysis/stats/ranking.h"
#include "analysis/table/cells.h"

namespace shardmark {
namespace {

std::string range_text(int64_t least, int64_t most, const char* one, const char* several) {
  return fmt::format("{} {}", least == most ? std::to_string(most) : fmt::format("{} to {}", least, most),
                     most == 1 ? one : several);
}

}  // namespace

Column slower_column(const std::string& row, const std::string& further) {
  return {
      .name = "vs fastest",
      .definition = fmt::format(
          "step time / that of the fastest {0} - 1. ?: the launches do not tell the {0} from the fastest; "
          "one launch never does. In parentheses: its times have a warning, so it is not ranked.{1}{2}",
          row, further.empty() ? "" : " ", further)};
}

Ranking::Ranking(PointList rivals) : rivals_(std::move(rivals)) {
  if (rivals_.size() > 1) num_unsure_ = num_perhaps_fastest(rivals_);
}

// num_unsure_ counts the rows from the first on that may be the fastest. If that is the first row alone, it
// is the fastest and all others are slower.
Tier Ranking::tier(const MergedPoint& merged) const {
  if (is_unreliable(merged)) return Tier::unreliable;
  const auto place =
      static_cast<size_t>(std::find(rivals_.begin(), rivals_.end(), &merged) - rivals_.begin());
  if (place == rivals_.size()) return Tier::unranked;
  if (num_unsure_ > 1 && place < num_unsure_) return Tier::perhaps;
  return place == 0 && rivals_.size() > 1 ? Tier::fastest : Tier::slower;
}

Cell slower_cell(double ratio, Tier tier) {
  if (tier == Tier::fastest) return cells::words("fastest");
  if (!std::isfinite(ratio)) return cells::words("");
  // Rounded first, so that -0.2 % does not read -0 %.
  const double percent = std::round(100 * (ratio - 1));
  const std::string text = fmt::format("{:+.0f} %", percent == 0 ? 0.0 : percent);
  if (tier == Tier::unreliable) return cells::words("(" + text + ")");
  return cells::words(text + (tier == Tier::perhaps ? kMark : ""));
}

void TierNotes::add(const MergedPoint& merged, Tier tier) {
  any_unreliable_ = any_unreliable_ || tier == Tier::unreliable;
  if (tier != Tier::perhaps) return;
  const int64_t launches = std::ssize(merged.launches);
  least_ = std::min(least_, launches);
  most_ = std::max(most_, launches);
  if (!merged.measures.has_few_steps()) return;
  ++num_few_;
  least_steps_ = std::min(least_steps_, merged.measures.num_steps);
  most_steps_ = std::max(most_steps_, merged.measures.num_steps);
}

void TierNotes::append_to(std::vector<std::string>& notes) const {
  if (any_unreliable_)
    notes.emplace_back("In parentheses: the times of this row have a warning, so it is not ranked.");
  if (most_ < 0) return;
  const std::string launches = range_text(least_, most_, "launch", "launches");
  if (least_ < static_cast<int64_t>(kLeastLaunches))
    notes.push_back(fmt::format(
        "?: {} cannot tell this row from the fastest, because steps differ more between "
        "launches than within one. To rank, start the suite {} times or more and pass all studies "
        "to report.",
        launches, kLeastLaunches));
  else
    notes.push_back(
        fmt::format("?: {} do not tell this row from the fastest (at a level of 5 % over the rows of a "
                    "setting). Start the suite more often and pass all studies to report.",
                    launches));
  if (num_few_ > 0)
    notes.push_back(fmt::format(
        "{} row{} of {}, and fewer than {} steps have no 95 % interval: measure 10 or more (--steps 10).",
        num_few_, num_few_ == 1 ? " is" : "s are", range_text(least_steps_, most_steps_, "step", "steps"),
        kLeastForInterval));
}

}  // namespace shardmark
