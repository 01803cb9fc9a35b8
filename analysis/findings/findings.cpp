// Self-consistency of collectives. Source: Traeff, Gropp and Thakur, Self-consistent MPI performance
// guidelines, IEEE TPDS 21(5), 2010; and the warnings of each point.
#include "analysis/findings/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "analysis/frame/together.h"
#include "analysis/reference/matched.h"
#include "analysis/stats/slow_ranks.h"
#include "analysis/stats/sustained.h"
#include "base/units.h"
#include "specs/collectives.h"
#include "specs/link.h"
#include "strategies/brief_text.h"

namespace shardmark {
namespace {

// An excess below this is no finding, nor one that the intervals of both times allow. Words say it the same
// way: so much longer.
constexpr double kSpreadExcess = 1.25;

using Operation = std::pair<std::string, std::string>;  // and its reduction
using Curve = std::map<int64_t, const MergedPoint*>;    // by bytes, of one place
using Curves = std::map<Operation, Curve>;
using Places = std::array<Curves, 2>;  // out of place, in place

struct Time {
  double s = 0, low_s = 0, high_s = 0;
};

Time time_of(const MergedPoint& merged) {
  const Measures& m = merged.measures;
  return {m.step_s, std::isfinite(m.step_low_s) ? m.step_low_s : m.step_s,
          std::isfinite(m.step_high_s) ? m.step_high_s : m.step_s};
}

// How many times as long one takes as the other; 0 if that is no finding. Both conditions must hold: the
// ratio is large enough to matter, and the intervals do not overlap.
double excess(const Time& one, const Time& other) {
  return one.s > kSpreadExcess * other.s && one.low_s > other.high_s ? one.s / other.s : 0;
}

// The worst of the sizes at which something was found, with the number of the others.
struct Worst {
  double excess = 0;
  PointFinding finding = {};
  int64_t others = -1;
  void add(double found, const MergedPoint& about, const char* kind, std::string words) {
    if (found <= 0) return;
    ++others;
    if (found > excess) {
      excess = found;
      finding = {&about, kind, std::move(words), false};
    }
  }
  void report(std::vector<PointFinding>& findings) {
    if (others < 0) return;
    if (others > 0) finding.words += fmt::format("; also at {} other size{}", others, others == 1 ? "" : "s");
    findings.push_back(finding);
  }
};

std::string size_text(int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

// A message must not take longer than a larger one, nor than the smaller ones that it could be cut into.
void check_sizes(const Curve& curve, std::vector<PointFinding>& findings) {
  // Two guidelines. A message should take no longer than the next larger one: the program could send that
  // one instead. And it should take no longer than as many smaller ones as make it up, sent one after the
  // other.
  Worst order, pieces;
  for (auto small = curve.begin(); small != curve.end(); ++small) {
    const MergedPoint& point = *small->second;
    if (const auto next = std::next(small); next != curve.end())
      order.add(excess(time_of(point), time_of(*next->second)), point, "order of sizes",
                fmt::format("takes {}; {} take only {}", format_seconds(point.measures.step_s),
                            size_text(next->first), format_seconds(next->second->measures.step_s)));
    for (auto large = std::next(small); large != curve.end(); ++large) {
      if (small->first <= 0 || large->first % small->first != 0) continue;
      const auto count = static_cast<double>(large->first) / static_cast<double>(small->first);
      const Time piece = time_of(point);
      const MergedPoint& whole = *large->second;
      const double found =
          excess(time_of(whole), {count * piece.s, count * piece.low_s, count * piece.high_s});
      pieces.add(found, whole, "slower than chunks",
                 fmt::format("takes {} times as long as {:.0f} messages of {} would", format_number(found, 2),
                             count, size_text(small->first)));
    }
  }
  order.report(findings);
  pieces.report(findings);
}

void check_places(const Curve& apart, const Curve& in_place, std::vector<PointFinding>& findings) {
  Worst worst;
  for (const auto& [bytes, out] : apart) {
    const auto found = in_place.find(bytes);
    if (found == in_place.end()) continue;
    const MergedPoint* in = found->second;
    for (const auto& [slow, fast] : {std::pair(in, out), {out, in}}) {
      const double longer = excess(time_of(*slow), time_of(*fast));
      worst.add(longer, *slow, "in place",
                fmt::format("{} takes {:.1f} times as long as {}", slow == in ? "in place" : "out of place",
                            longer, slow == in ? "out of place" : "in place"));
    }
  }
  worst.report(findings);
}

// Operations that together do the same as another: it should not take longer than they do.
using Parts = std::vector<specs::Collective>;

// The curves of the parts; fewer than there are parts where one was not measured.
std::vector<const Curve*> curves_of(const Parts& parts, const std::string& reduction, const Curves& curves) {
  std::vector<const Curve*> of_parts;
  for (const specs::Collective part : parts) {
    const specs::CollectiveRow& row = specs::collective(part);
    // gather <= all_gather and the like: what moves is the same whatever is reduced
    const auto found = curves.find({row.name, row.reduces ? reduction : "none"});
    if (found != curves.end()) of_parts.push_back(&found->second);
  }
  return of_parts;
}

std::string names_of(const Parts& parts) {
  std::string names;
  for (const specs::Collective part : parts)
    names += (names.empty() ? "" : " + ") + specs::collective(part).name;
  return names;
}

void check_parts(const Parts& operations, const Operation& operation, const Curves& curves,
                 std::vector<PointFinding>& findings) {
  const std::vector<const Curve*> parts = curves_of(operations, operation.second, curves);
  if (parts.size() != operations.size()) return;
  Worst worst;
  for (const auto& [bytes, point] : curves.at(operation)) {
    Time sum;
    bool complete = true;
    for (const Curve* part : parts) {
      const auto found = part->find(bytes);
      complete &= found != part->end();
      if (!complete) break;
      const Time time = time_of(*found->second);
      sum = {sum.s + time.s, sum.low_s + time.low_s, sum.high_s + time.high_s};
    }
    if (!complete) continue;
    const double found = excess(time_of(*point), sum);
    worst.add(found, *point, "slower than parts",
              fmt::format("takes {:.1f} times as long as {}", found, names_of(operations)));
  }
  worst.report(findings);
}

// The largest message within a node against the link between its GPUs, where that is known.
void check_link(const Curve& curve, std::vector<PointFinding>& findings) {
  // From this size on latency is no excuse. Collectives usually reach about 80 % of a link's rate.
  constexpr int64_t kLargeEnough = 64 << 20;
  constexpr double kUsual = 0.8, kLow = 0.6;
  const auto& [bytes, largest] = *curve.rbegin();
  const MergedPoint& point = *largest;
  const auto link = specs::link_of_device(device_of(point));
  const double share = link ? point.measures.busbw_gb_s * 1e9 / link->bytes_per_s : kUsual;
  if (!link || point.nodes != 1 || point.ranks_per_node < 2 || bytes < kLargeEnough) return;
  const std::string rate = fmt::format("{}'s {:g} GB/s", link->name, link->bytes_per_s / 1e9);
  if (share < kLow)
    findings.push_back(
        {&point, "below link rate",
         fmt::format("reaches {:.0f} % of {}; about {:.0f} % is usual", 100 * share, rate, 100 * kUsual)});
  if (share > 1)
    findings.push_back({&point, "above link rate",
                        fmt::format("{:.0f} % of {}: reduced inside the switch?", 100 * share, rate), false,
                        false});
}

// Everything of a collective that its time depends on, but for its operation, size and place.
using Setting = std::tuple<Location, std::string, std::string>;  // type, series_key()

std::map<Setting, Places> curves_of(const std::vector<MergedPoint>& points) {
  std::map<Setting, Places> all;
  for (const MergedPoint& merged : points) {
    const CollectivePoint& c = merged.point.collective;
    if (!is_collective(merged) || is_unreliable(merged) || merged.point.ranks < 2) continue;
    if (merged.measures.has_few_steps()) continue;  // nobody knows how far off their median is
    all[{location_of(merged), c.dtype, series_key(merged, {"operation", "reduction", "bytes", "in_place"})}]
       [c.in_place ? 1 : 0][{c.operation, c.reduction}][c.bytes] = &merged;
  }
  return all;
}

void check_collectives(const Places& places, std::vector<PointFinding>& findings) {
  for (const Curves& curves : places)
    for (const auto& [operation, curve] : curves) {
      check_sizes(curve, findings);
      // Dispatch and combine copy or add up tokens as well, so that they do not come near the link's rate.
      const auto* const known = specs::find_operation(operation.first);
      if (known == nullptr || !known->moves_tokens) check_link(curve, findings);
      if (const auto* row = specs::find_collective(operation.first))
        for (const Parts& parts : row->guidelines) check_parts(parts, operation, curves, findings);
    }
  for (const auto& [operation, apart] : places[0])
    if (const auto in_place = places[1].find(operation); in_place != places[1].end())
      check_places(apart, in_place->second, findings);
}

// A rank is slow in most points of a study: the worst one stands for all.
void add_slow(const std::vector<MergedPoint>& points, std::vector<PointFinding>& findings) {
  for (const Slow& slow : slow_ranks(points)) {
    const std::string host = slow.host.empty() ? "" : (slow.is_node ? " " : " of ") + slow.host;
    const std::string who = slow.is_node ? "node" + host : fmt::format("rank {}{}", slow.rank, host);
    std::string words = fmt::format("{} takes {:.0f} % longer than the other {} for the same computing", who,
                                    100 * slow.excess, slow.is_node ? "nodes" : "ranks");
    if (slow.others > 0)
      words += fmt::format("; also in {} other point{}", slow.others, slow.others == 1 ? "" : "s");
    findings.push_back({slow.about, slow.is_node ? "slow node" : "slow rank", std::move(words), false});
  }
}

// Overlapping costs more than it hides.
void add_lost(const std::vector<MergedPoint>& points, std::vector<PointFinding>& findings) {
  for (const MergedPoint& merged : points)
    if (const auto found = together_of(merged); found && found->of_sum.low > 1)
      findings.push_back(
          {&merged, "overlap loses",
           fmt::format("takes {:.2f} times as long beside {} as one after the other", found->of_sum.value,
                       brief_text("beside", merged.point.collective.beside)),
           false});
}

}  // namespace

std::vector<PointFinding> findings_of(const std::vector<MergedPoint>& points,
                                      const std::vector<MergedPoint>& unfinished) {
  std::vector<PointFinding> findings;
  for (const MergedPoint& merged : points)
    for (const Warning& warning : merged.warnings)
      if (warning.kind != "oversubscribed")
        findings.push_back({&merged, warning.kind, warning.words, warning.excludes});
  add_slow(points, findings);
  add_lost(points, findings);
  for (const auto* sustained : {&points, &unfinished})
    for (const Sustained& run : sustained_runs(*sustained))
      for (auto& [kind, words] : words_of(run)) findings.push_back({run.about, kind, words, false});
  add_scaling(points, findings);
  for (const auto& [setting, places] : curves_of(points)) check_collectives(places, findings);
  return findings;
}

}  // namespace shardmark
