// The first screen's lines.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/frame/quantities.h"
#include "analysis/reference/tables.h"
#include "base/stats.h"
#include "base/units.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

std::string percent_text(double ratio) { return fmt::format("{:.0f} %", 100 * ratio); }

// "98 % of the speed of the reference NVIDIA H200: median of 12 points, from 91 % (...) to 101 % (...)"
std::string speed_text(const std::string& device, const std::vector<const ReferencePoint*>& points) {
  std::vector<double> speeds;
  for (const ReferencePoint* point : points) speeds.push_back(point->speed.value);
  const auto [slow, fast] = std::minmax_element(
      points.begin(), points.end(), [](auto* a, auto* b) { return a->speed.value < b->speed.value; });
  std::string text = fmt::format("{} of the speed of the reference {}", percent_text(median(speeds)), device);
  if (points.size() > 1)
    text += fmt::format(": median of {} points, from {} ({}) to {}", points.size(),
                        percent_text((*slow)->speed.value), brief_text((*slow)->here->point),
                        percent_text((*fast)->speed.value));
  return text + "; --table reference.";
}

std::string nothing_text(const std::vector<MergedPoint>& points, const References& references) {
  if (points.empty()) return "";
  if (references.holds_them) return "These points are themselves in the reference collection.";
  if (references.is_device_known)
    return fmt::format(
        "The reference collection has {}, but none of these points: see shardmark list reference.",
        device_of(points.front()));
  return "";  // nobody has measured this machine
}

// "15 to 18 %" of what is known of these.
std::string range_text(const std::vector<double>& shares) {
  const auto [low, high] = std::minmax_element(shares.begin(), shares.end());
  const auto number = [](double share) { return fmt::format("{:.0f}", 100 * share); };
  return number(*low) == number(*high) ? number(*low) + " %"
                                       : fmt::format("{} to {} %", number(*low), number(*high));
}

// What can be said without any reference: how much of a matrix product's speed training reaches, and how
// much of a step waits for communication.
std::string own_text(const std::vector<MergedPoint>& points) {
  std::vector<double> computing, waiting;
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || is_unreliable(merged)) continue;
    if (std::isfinite(merged.of_matmul)) computing.push_back(merged.of_matmul);
    const double exposed_share = quantity("exposed_share").of(merged);
    if (!is_replicas(merged) && merged.point.ranks > 1 && std::isfinite(exposed_share))
      waiting.push_back(exposed_share);
  }
  std::string text;
  if (!computing.empty())
    text = fmt::format("Computing: training reaches {} of the FLOP/s of a large matrix product here.",
                       range_text(computing));
  if (!waiting.empty())
    text += fmt::format("{}Communication: steps wait for it during {} of their time.",
                        text.empty() ? "" : " ", range_text(waiting));
  return text;
}

// "matrix product bf16: 82 % of the data sheet, 103 % of what was published"
std::string rate_text(const RatedOperation& rated) {
  std::string text = rated.operation + " " + rated.type;
  if (rated.bytes > 0)
    text += fmt::format(" at {} on {} ranks{}", format_bytes(static_cast<double>(rated.bytes)), rated.ranks,
                        rated.is_doubtful() ? " (its times have a warning)" : "");
  const char* colon = ": ";
  if (!std::isnan(rated.sheet)) {
    text += fmt::format("{}{} of the data sheet", colon, percent_text(rated.rate / rated.sheet));
    colon = ", ";
  }
  if (rated.published != nullptr)
    text +=
        fmt::format("{}{} of what was published", colon, percent_text(rated.rate / rated.published->rate));
  return text;
}

}  // namespace

std::vector<std::string> standing_of(const std::vector<MergedPoint>& points, const References& references,
                                     const std::vector<ReferencePoint>& matches,
                                     const std::vector<RatedOperation>& rates) {
  std::vector<std::string> lines;
  std::map<std::string, std::vector<const ReferencePoint*>> by_device;
  for (const ReferencePoint& point : matches) by_device[device_of(*point.here)].push_back(&point);
  for (const auto& [device, of_device] : by_device) lines.push_back(speed_text(device, of_device));
  if (const std::string text = nothing_text(points, references); lines.empty() && !text.empty())
    lines.push_back(text);
  if (std::string text = own_text(points); !text.empty()) lines.push_back(std::move(text));
  // The largest message of each operation and type.
  std::map<std::pair<std::string, std::string>, const RatedOperation*> largest;
  for (const RatedOperation& rated : rates) {
    const RatedOperation*& known = largest.try_emplace({rated.operation, rated.type}, &rated).first->second;
    if (rated.bytes > known->bytes) known = &rated;
  }
  constexpr size_t kMostRates = 3;
  std::vector<std::string> texts;
  for (const auto& [operation, rated] : largest)
    if (texts.size() < kMostRates) texts.push_back(rate_text(*rated));
  if (!texts.empty()) lines.push_back(fmt::format("{}; --table reference.", fmt::join(texts, "; ")));
  return lines;
}

}  // namespace shardmark
