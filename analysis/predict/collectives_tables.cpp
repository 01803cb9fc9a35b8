// Latency and bandwidth of the links, and how well the measured collectives predict each other.
#include <algorithm>
#include <cmath>

#include "analysis/predict/collective_settings.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"
#include "base/stats.h"
#include "base/units.h"

namespace shardmark {
namespace {

const char* links_text(bool across_nodes) { return across_nodes ? "across nodes" : "within a node"; }

struct FitRow {
  const CollectiveSetting* setting;
  AlphaBeta fit;
};

// Also of the operation; rows with a setting.
template <class Row>
ColumnsOf<Row> collective_setting_columns(specs::Collective (*operation)(const Row&)) {
  return {{{"machine", "", false, true, "", Starts::section},
           [](const auto& row) { return cells::words(row.setting->machine); }},
          {choice_column("transport", true, Starts::section),
           [](const auto& row) { return transport_cell(row.setting->transport); }},
          {{"operation", "", false},
           [=](const auto& row) { return cells::words(specs::collective(operation(row)).name); }}};
}

auto microseconds_of(double Estimate::*part) {
  return [part](const FitRow& row) { return cells::number(row.fit.alpha_s.*part * 1e6, 3); };
}

// The bandwidth is 1 / beta, so the low end of the one comes from the high end of the other.
auto bandwidth_of(double Estimate::*part) {
  return [part](const FitRow& row) { return cells::number(1e-9 / (row.fit.beta_s_per_byte.*part), 3); };
}

constexpr const char* kInterval = "95 % interval; -: unbounded on that side.";

ColumnsOf<FitRow> fit_columns() {
  return {
      {{"links", "", false, true},
       [](const auto& row) { return cells::words(links_text(row.fit.across_nodes)); }},
      {{"times", ""}, [](const auto& row) { return cells::count(row.fit.num_times); }},
      {{"value", "us", true, false, "alpha"},
       microseconds_of(&Estimate::value),
       "of one step, from rank to neighbour. Fitted to the times of each operation on all rank counts: time "
       "= steps x alpha + bytes that a rank sends / bandwidth, for a ring or a tree, whichever is faster "
       "(Patarasuk and Yuan, JPDC 69(2), 2009)."},
      {{"low", "us", true, false, "alpha"}, microseconds_of(&Estimate::low), kInterval},
      {{"high", "us", true, false, "alpha"}, microseconds_of(&Estimate::high), kInterval},
      {{"value", "GB/s", true, false, "bandwidth"},
       bandwidth_of(&Estimate::value),
       "within a node: of a rank's own links; across nodes: of a rank's share of its node's links."},
      {{"low", "GB/s", true, false, "bandwidth"}, bandwidth_of(&Estimate::high), kInterval},
      {{"high", "GB/s", true, false, "bandwidth"}, bandwidth_of(&Estimate::low), kInterval},
      {{"error", "%"},
       [](const auto& row) { return cells::percent(row.fit.deviation); },
       "median of |measured / fitted - 1|. Real operations change their protocol with the size; where "
       "times are predicted, measured / fitted corrects the fit at each size."},
      {{"why not fitted", "", false, true},
       [](const auto& row) {
         return row.fit.refused.empty() ? Cell{"", nullptr} : cells::words(row.fit.refused);
       },
       "fewer than 4 times, or no rank count with two sizes. Such an operation uses alpha and bandwidth of "
       "the most similar one, corrected by its own measured times."}};
}

struct HeldOutRow {
  const CollectiveSetting* setting;
  HeldOutCollective held;
  std::vector<double> errors;  // without their signs
  size_t largest() const {
    return static_cast<size_t>(std::max_element(errors.begin(), errors.end()) - errors.begin());
  }
};

std::vector<HeldOutRow> held_out_rows(const std::vector<CollectiveSetting>& settings) {
  std::vector<HeldOutRow> rows;
  for (const CollectiveSetting& setting : settings)
    for (HeldOutCollective& held : held_out_collectives(setting.times)) {
      std::vector<double> errors;
      errors.reserve(held.errors.size());
      for (const double error : held.errors) errors.push_back(std::abs(error));
      rows.push_back({&setting, std::move(held), std::move(errors)});
    }
  return rows;
}

ColumnsOf<HeldOutRow> held_out_columns() {
  constexpr const char* kError =
      "|predicted / measured - 1| of each size but the smallest and the largest, predicted from the other "
      "sizes: the fit x measured / fitted, interpolated between its neighbours (linear in logarithms).";
  return {{{"ranks", ""}, [](const auto& row) { return cells::count(row.held.span.ranks); }},
          {{"nodes", "", true, true}, [](const auto& row) { return cells::count(row.held.span.nodes); }},
          {{"sizes", ""}, [](const auto& row) { return cells::count(std::ssize(row.errors)); }},
          {{"median", "%", true, false, "error"},
           [](const auto& row) { return cells::percent(median(row.errors)); },
           kError},
          {{"largest", "%", true, false, "error"},
           [](const auto& row) { return cells::percent(row.errors[row.largest()]); },
           kError},
          {{"at size", "", false},
           [](const auto& row) { return cells::words(format_bytes(row.held.bytes[row.largest()])); }}};
}

}  // namespace

Table collective_fits_table(const std::vector<CollectiveSetting>& settings) {
  std::vector<FitRow> rows;
  for (const CollectiveSetting& setting : settings) {
    const CollectiveCosts costs(setting.times);
    for (const AlphaBeta& fit : costs.fits()) rows.push_back({&setting, fit});
  }
  return make_table(
      "collective_fits", "Latency and bandwidth of the links",
      join(collective_setting_columns<FitRow>([](const FitRow& row) { return row.fit.operation; }),
           fit_columns()),
      rows);
}

Table held_out_collectives_table(const std::vector<CollectiveSetting>& settings) {
  const std::vector<HeldOutRow> rows = held_out_rows(settings);
  Table table = make_table(
      "collective_fits.held_out", "Collectives: each size predicted from the others (leave one out)",
      join(collective_setting_columns<HeldOutRow>([](const HeldOutRow& row) { return row.held.operation; }),
           held_out_columns()),
      rows);
  std::vector<double> all;
  for (const HeldOutRow& row : rows) all.insert(all.end(), row.errors.begin(), row.errors.end());
  if (!all.empty())
    table.notes.emplace_back("The median error over all sizes is " + format_number(100 * median(all), 2) +
                             " %.");
  return table;
}

}  // namespace shardmark
