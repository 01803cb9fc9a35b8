#include "analysis/reference/rates.h"

#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "analysis/frame/assets.h"
#include "analysis/frame/csv_rows.h"
#include "analysis/reference/matched.h"
#include "base/error.h"
#include "specs/link.h"

namespace shardmark {
namespace {

// device,ranks,operation,type,bytes,rate,unit,conditions,date,source
PublishedRate published_rate(const std::vector<std::string>& cells) {
  ENSURE(cells.size() == 10, "a row of the published rates");
  return {cells[0],
          std::stoll(cells[1]),
          cells[2],
          cells[3],
          cells[4].empty() ? 0 : std::stoll(cells[4]),
          std::stod(cells[5]),
          cells[7],
          cells[8],
          cells[9]};
}

// What others published of it.
std::vector<const PublishedRate*> published_of(const RatedOperation& rated) {
  std::vector<const PublishedRate*> found;
  for (const PublishedRate& one : published_rates())
    if (one.device == device_of(*rated.merged) && one.operation == rated.operation &&
        one.type == rated.type && one.ranks == rated.ranks && one.bytes == rated.bytes)
      found.push_back(&one);
  return found;
}

void add_rated(RatedOperation rated, const std::vector<const PublishedRate*>& published,
               std::vector<RatedOperation>& all) {
  if (published.empty()) all.push_back(rated);
  for (const PublishedRate* one : published) {
    rated.published = one;
    all.push_back(rated);
  }
}

void add_matrix_products(const std::vector<MergedPoint>& points, std::vector<RatedOperation>& all) {
  // The matrix product does not depend on the point that comes after it, so one row stands for all points
  // of a machine and precision.
  std::map<std::pair<std::string, std::string>, const MergedPoint*> best;  // by machine and precision
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || std::isnan(merged.measures.peak_flops)) continue;
    const auto [known, is_new] =
        best.try_emplace({merged.machine, merged.point.training.product_type()}, &merged);
    if (merged.measures.peak_flops > known->second->measures.peak_flops) known->second = &merged;
  }
  for (const auto& [kind, point] : best) {
    const MergedPoint& merged = *point;
    const Measures& m = merged.measures;
    const std::string& precision = kind.second;
    const RatedOperation rated{
        &merged, kMatrixProduct, precision, 1, 0, m.peak_flops / 1e12, m.datasheet_flops / 1e12};
    const auto published = published_of(rated);
    if (!published.empty() || !std::isnan(rated.sheet)) add_rated(rated, published, all);
  }
}

// The points of one operation in one setting, in place or out of place, by message size in bytes.
using RateCurve = std::map<int64_t, const MergedPoint*>;
using RateCurves = std::map<std::tuple<Location, std::string, std::string, std::string, bool>, RateCurve>;

void add_collectives(const std::vector<MergedPoint>& points, std::vector<RatedOperation>& all) {
  constexpr int64_t kLargeEnough = 64 << 20;
  RateCurves curves;
  for (const MergedPoint& merged : points) {
    const CollectivePoint& c = merged.point.collective;
    if (is_training(merged) || merged.nodes != 1 || merged.point.ranks < 2) continue;
    curves[{location_of(merged), c.operation, c.dtype, c.reduction, c.in_place}].emplace(c.bytes, &merged);
  }
  for (const auto& [key, curve] : curves)
    for (const auto& [bytes, merged] : curve) {
      const CollectivePoint& c = merged->point.collective;
      const auto link = specs::link_of_device(device_of(*merged));
      const RatedOperation rated{merged,
                                 c.operation,
                                 c.dtype,
                                 merged->point.ranks,
                                 bytes,
                                 merged->measures.busbw_gb_s,
                                 link ? link->bytes_per_s / 1e9 : Measures::kNone};
      // Published rates are those of sums in place.
      const bool is_comparable = c.in_place && (c.reduction == "sum" || c.reduction == "none");
      const auto published = is_comparable ? published_of(rated) : std::vector<const PublishedRate*>();
      // A data sheet's rate is compared with the largest message only, and only if that is large: smaller
      // ones are limited by latency.
      const bool is_largest = bytes == curve.rbegin()->first && bytes >= kLargeEnough;
      if (!published.empty() || (link && is_largest)) add_rated(rated, published, all);
    }
}

}  // namespace

const std::vector<PublishedRate>& published_rates() {
  static const std::vector<PublishedRate> rates = [] {
    std::vector<PublishedRate> all;
    for (const auto& cells : csv_rows(rates_csv())) all.push_back(published_rate(cells));
    return all;
  }();
  return rates;
}

std::vector<RatedOperation> rated_operations(const std::vector<MergedPoint>& points) {
  std::vector<RatedOperation> all;
  add_matrix_products(points, all);
  add_collectives(points, all);
  return all;
}

}  // namespace shardmark
