// Latency and bandwidth of the links, and how well the measured collectives tell each other.
#include <algorithm>
#include <cmath>

#include "analysis/cells.h"
#include "analysis/predict/collective_settings.h"
#include "base/stats.h"
#include "base/units.h"

namespace shardmark {
namespace {

const char* links_text(bool across_nodes) { return across_nodes ? "across nodes" : "within a node"; }

std::vector<Cell> microseconds(const Estimate& e) {
  return {cells::number(e.value * 1e6, 3), cells::number(e.low * 1e6, 3), cells::number(e.high * 1e6, 3)};
}

std::vector<Cell> bandwidth(const Estimate& beta) {
  const auto cell = [](double s_per_byte) { return cells::number(1e-9 / s_per_byte, 3); };
  return {cell(beta.value), cell(beta.high), cell(beta.low)};
}

std::vector<Column> estimate_columns(const std::string& group, const std::string& unit) {
  return {{"value", unit, true, false, group},
          {"low", unit, true, false, group},
          {"high", unit, true, false, group}};
}

std::vector<Cell> row(const CollectiveSetting& setting, const AlphaBeta& fit) {
  return concat<Cell>(
      {{cells::words(setting.machine), cells::words(setting.transport),
        cells::words(laws::collective(fit.operation).name), cells::words(links_text(fit.across_nodes)),
        cells::count(fit.num_times)},
       microseconds(fit.alpha_s),
       bandwidth(fit.beta_s_per_byte),
       {cells::percent(fit.deviation), fit.refused.empty() ? Cell{"", nullptr} : cells::words(fit.refused)}});
}

}  // namespace

Table collective_fits_table(const std::vector<CollectiveSetting>& settings) {
  Table table{
      "collective_fits",
      "Latency and bandwidth of the links",
      {"Fitted to the times of each operation on all ranks: time = steps x alpha + bytes that a rank sends / "
       "bandwidth, of a ring or of a tree, whichever is faster. alpha: of one step, from rank to neighbour. "
       "bandwidth: within a node of the links that a rank has, across nodes of a rank's share of its node's.",
       "low, high: 95 % interval; -: nothing bounds it from there. off by: median distance of a measured "
       "time from the fit. Real operations change their protocol with the size; where times are "
       "predicted, measured / fitted corrects the fit at each size."},
      concat<Column>({{{"machine", "", false, true},
                       {"transport", "", false, true},
                       {"operation", "", false},
                       {"links", "", false, true},
                       {"times", ""}},
                      estimate_columns("alpha", "us"),
                      estimate_columns("bandwidth", "GB/s"),
                      {{"off by", "%"}, {"why not fitted", "", false, true}}}),
      {},
      2,
      2};
  for (const CollectiveSetting& setting : settings) {
    const CollectiveCosts costs(setting.times);
    for (const AlphaBeta& fit : costs.fits()) table.rows.push_back(row(setting, fit));
  }
  return table;
}

Table held_out_collectives_table(const std::vector<CollectiveSetting>& settings) {
  Table table{"held_out_collectives",
              "Collectives: each size predicted from the others (leave one out)",
              {},
              {{"machine", "", false, true},
               {"transport", "", false, true},
               {"operation", "", false},
               {"ranks", ""},
               {"nodes", "", true, true},
               {"sizes", ""},
               {"median", "%", true, false, "error"},
               {"largest", "%", true, false, "error"},
               {"at size", "", false}},
              {},
              2,
              2};
  std::vector<double> all;
  for (const CollectiveSetting& setting : settings)
    for (const HeldOutCollective& held : held_out_collectives(setting.times)) {
      std::vector<double> errors;
      errors.reserve(held.errors.size());
      for (const double error : held.errors) errors.push_back(std::abs(error));
      all.insert(all.end(), errors.begin(), errors.end());
      const auto largest = std::max_element(errors.begin(), errors.end());
      table.rows.push_back(
          {cells::words(setting.machine), cells::words(setting.transport),
           cells::words(laws::collective(held.operation).name), cells::count(held.span.ranks),
           cells::count(held.span.nodes), cells::count(static_cast<int64_t>(errors.size())),
           cells::percent(median(errors)), cells::percent(*largest),
           cells::words(format_bytes(held.bytes[static_cast<size_t>(largest - errors.begin())]))});
    }
  if (!all.empty())
    table.notes = {
        "Each size but the smallest and the largest, predicted from the times without it: |predicted "
        "/ measured - 1|. Of all together the median is " +
        format_number(100 * median(all), 2) + " %."};
  return table;
}

}  // namespace shardmark
