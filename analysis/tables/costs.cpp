// What training costs at a price per GPU-hour.
#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "analysis/frame/training_columns.h"
#include "analysis/reference/matched.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

// The cost of a million samples or tokens. Every rank holds one GPU for as long as the point runs.
double cost_of_million(const MergedPoint& merged, double per_s, double price_per_gpu_hour) {
  return per_s > 0 ? price_per_gpu_hour * throughput_of(merged).rank_hours(1e6, per_s) : Measures::kNone;
}

struct CostedPoint {
  const MergedPoint* merged;
  double per_sample, per_token;       // 10^6 of them
  double cheapest = Measures::kNone;  // of the same training, per sample
};

// What is bought is training: the same model on the same data, with the same optimizer and precision. How it
// is laid out, batched, recomputed or set up is what differs in price. One price holds for one kind of
// device.
std::string training_bought(const MergedPoint& merged) {
  const TrainingPoint& t = merged.point.training;
  return fmt::format("{}\n{}\n{}\n{}\n{}", device_of(merged), to_text(t.model), to_text(t.data),
                     to_text(t.optimizer), t.precision);
}

std::vector<CostedPoint> costed_points(const MergedPoints& points, double price_per_gpu_hour) {
  std::vector<CostedPoint> rows;
  if (!(price_per_gpu_hour > 0)) return rows;
  for (const MergedPoint* merged : training_points(points, trains_one_model)) {
    const Measures& m = merged->measures;
    rows.push_back({merged, cost_of_million(*merged, m.samples_per_s, price_per_gpu_hour),
                    cost_of_million(*merged, m.tokens_per_s, price_per_gpu_hour)});
  }
  std::unordered_map<std::string, double> cheapest;  // fmin passes a NaN over
  for (const CostedPoint& row : rows) {
    double& least = cheapest.try_emplace(training_bought(*row.merged), Measures::kNone).first->second;
    least = std::fmin(least, row.per_sample);
  }
  for (CostedPoint& row : rows) row.cheapest = cheapest.at(training_bought(*row.merged));
  return rows;
}

constexpr const char* kCost =
    "price x ranks x 10^6 / throughput / 3600, in the price's currency; a rank holds one GPU.";

ColumnsOf<CostedPoint> cost_columns() {
  const auto optional = [](const char* name) {
    return Column{.name = name, .group = "cost of 10^6", .is_optional = true};
  };
  return {{optional("samples"),
           [](const auto& row) {
             return cells::unless_said(!std::isnan(row.per_token), cells::number(row.per_sample));
           },
           kCost},
          {optional("tokens"), [](const auto& row) { return cells::number(row.per_token); }, kCost},
          {{"x cheapest", ""},
           [](const auto& row) { return cells::number(row.per_sample / row.cheapest, 3); },
           "cost / that of the cheapest point with the same model, data, optimizer and precision on the same "
           "kind of device, whatever its layout, ranks, batch, recomputation and settings. That a larger "
           "batch may converge more slowly is not counted."}};
}

}  // namespace

Table costs_table(const MergedPoints& points, double price_per_gpu_hour) {
  const TrainingColumns labels(points);
  Table table = make_table(
      "costs", "Costs at " + cells::number(price_per_gpu_hour).text + " per GPU-hour",
      join(via(&CostedPoint::merged, labels.columns()), via(&CostedPoint::merged, point_throughput_columns()),
           cost_columns(), via(&CostedPoint::merged, TrainingColumns::warnings())),
      costed_points(points, price_per_gpu_hour));
  for (const std::string& note : labels.warning_notes()) table.notes.push_back(note);
  return table;
}

}  // namespace shardmark
