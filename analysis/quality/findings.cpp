// Self-consistency of collectives. Source: Traeff, Gropp and Thakur, Self-consistent MPI performance
// guidelines, IEEE TPDS 21(5), 2010; and the warnings of each point.
#include "analysis/quality/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "analysis/quality/slow_ranks.h"
#include "analysis/quality/sustained.h"
#include "base/units.h"
#include "specs/collectives.h"
#include "specs/link.h"

namespace shardmark {
namespace {

// An excess below this is no finding, nor one that the intervals of both times allow. Words say it the same
// way: so much longer.
constexpr double kSpreadExcess = 1.25;

// Everything of a collective that its time depends on, but for its operation, size and place.
using Setting = std::tuple<Location, std::string, int64_t>;
using Operation = std::pair<std::string, std::string>;  // and its reduction
// Of one size: out of place, in place.
struct Places {
  std::array<const MergedPoint*, 2> by_place = {};
  const MergedPoint& faster() const {
    const auto& [apart, in] = by_place;
    if (apart == nullptr || in == nullptr) return apart == nullptr ? *in : *apart;
    return in->measures.step_s < apart->measures.step_s ? *in : *apart;
  }
};
using Curve = std::map<int64_t, Places>;  // by bytes
using Curves = std::map<Operation, Curve>;

struct Time {
  double s = 0, low_s = 0, high_s = 0;
};

Time time_of(const MergedPoint& merged) {
  const Measures& m = merged.measures;
  return {m.step_s, std::isfinite(m.step_low_s) ? m.step_low_s : m.step_s,
          std::isfinite(m.step_high_s) ? m.step_high_s : m.step_s};
}

// How many times as long as the other; 0 where that is no finding.
double excess(const Time& one, const Time& other) {
  return one.s > kSpreadExcess * other.s && one.low_s > other.high_s ? one.s / other.s : 0;
}

// Of the sizes at which something was found, the worst one, with the number of the others.
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
  Worst order, pieces;
  for (auto small = curve.begin(); small != curve.end(); ++small) {
    const MergedPoint& point = small->second.faster();
    if (const auto next = std::next(small); next != curve.end())
      order.add(excess(time_of(point), time_of(next->second.faster())), point, "order of sizes",
                fmt::format("takes {}; {} take only {}", format_seconds(point.measures.step_s),
                            size_text(next->first), format_seconds(next->second.faster().measures.step_s)));
    for (auto large = std::next(small); large != curve.end(); ++large) {
      if (small->first <= 0 || large->first % small->first != 0) continue;
      const auto count = static_cast<double>(large->first) / static_cast<double>(small->first);
      const Time piece = time_of(point);
      const MergedPoint& whole = large->second.faster();
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

void check_places(const Curve& curve, std::vector<PointFinding>& findings) {
  Worst worst;
  for (const auto& [bytes, places] : curve) {
    const auto& [apart, in] = places.by_place;
    if (apart == nullptr || in == nullptr) continue;
    for (const auto& [slow, fast] : {std::pair(in, apart), {apart, in}}) {
      const double found = excess(time_of(*slow), time_of(*fast));
      worst.add(found, *slow, "in place",
                fmt::format("{} takes {:.1f} times as long as {}", slow == in ? "in place" : "out of place",
                            found, slow == in ? "out of place" : "in place"));
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
  for (const auto& [bytes, places] : curves.at(operation)) {
    Time sum;
    bool complete = true;
    for (const Curve* part : parts) {
      const auto found = part->find(bytes);
      complete &= found != part->end();
      if (!complete) break;
      const Time time = time_of(found->second.faster());
      sum = {sum.s + time.s, sum.low_s + time.low_s, sum.high_s + time.high_s};
    }
    if (!complete) continue;
    const double found = excess(time_of(places.faster()), sum);
    worst.add(found, places.faster(), "slower than parts",
              fmt::format("takes {:.1f} times as long as {}", found, names_of(operations)));
  }
  worst.report(findings);
}

// The largest message within a node against the link between its GPUs, where that is known.
void check_link(const Curve& curve, std::vector<PointFinding>& findings) {
  constexpr int64_t kLargeEnough = 64 << 20;
  constexpr double kUsual = 0.8, kLow = 0.6;
  const auto& [bytes, places] = *curve.rbegin();
  const MergedPoint& point = places.faster();
  const std::string device =
      point.machine.substr(0, point.machine.rfind(", "));  // without "n threads per rank"
  const auto link = specs::link_of_device(device);
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

std::map<Setting, Curves> curves_of(const std::vector<MergedPoint>& points) {
  std::map<Setting, Curves> all;
  for (const MergedPoint& merged : points) {
    const Point& p = merged.point;
    const CollectivePoint& c = p.collective;
    if (is_training(merged) || is_unreliable(merged) || p.ranks < 2) continue;
    all[{location_of(merged), c.dtype, p.seed}][{c.operation, c.reduction}][c.bytes]
        .by_place[c.in_place ? 1 : 0] = &merged;
  }
  return all;
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

}  // namespace

std::vector<PointFinding> findings_of(const std::vector<MergedPoint>& points,
                                      const std::vector<MergedPoint>& unfinished) {
  std::vector<PointFinding> findings;
  for (const MergedPoint& merged : points)
    for (const Warning& warning : merged.warnings)
      if (warning.kind != "oversubscribed")
        findings.push_back({&merged, warning.kind, warning.words, warning.excludes});
  add_slow(points, findings);
  for (const auto* sustained : {&points, &unfinished})
    for (const Sustained& run : sustained_runs(*sustained))
      for (auto& [kind, words] : words_of(run)) findings.push_back({run.about, kind, words, false});
  for (const auto& [setting, curves] : curves_of(points)) {
    for (const auto& [operation, curve] : curves) {
      check_sizes(curve, findings);
      check_places(curve, findings);
      check_link(curve, findings);
      if (const auto* row = specs::find_collective(operation.first))
        for (const Parts& parts : row->guidelines) check_parts(parts, operation, curves, findings);
    }
  }
  return findings;
}

}  // namespace shardmark
