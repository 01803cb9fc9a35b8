// What training costs at a price per GPU-hour.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "analysis/cells.h"
#include "analysis/tables.h"
#include "analysis/training_columns.h"

namespace shardmark {
namespace {

// Of a million samples or tokens; every rank holds one GPU for as long as the point runs.
double cost_of_million(const MergedPoint& merged, double per_s, double price_per_gpu_hour) {
  const double gpu_seconds = 1e6 * static_cast<double>(merged.point.ranks) / per_s;
  return per_s > 0 ? price_per_gpu_hour * gpu_seconds / 3600 : Measures::kNone;
}

// On several ranks `single` trains as many models, not one.
bool is_costed(const MergedPoint& merged) {
  return is_training(merged) && !(is_replicas(merged) && merged.point.ranks > 1);
}

std::vector<Column> columns() {
  return concat<Column>({TrainingColumns::columns(),
                         {{"samples/s", ""},
                          {"tokens/s", "", true, true},
                          {"samples", "", true, false, "cost of 10^6"},
                          {"tokens", "", true, true, "cost of 10^6"},
                          {"x cheapest", ""}},
                         TrainingColumns::mark_columns()});
}

}  // namespace

Table costs_table(const MergedPoints& points, double price_per_gpu_hour) {
  Table table{
      "costs", "Costs at " + cells::number(price_per_gpu_hour).text + " per GPU-hour", {}, columns(), {}};
  table.num_group_columns = TrainingColumns::kNumGroupColumns;
  table.num_section_columns = TrainingColumns::kNumSectionColumns;
  const auto per_sample = [&](const MergedPoint& merged) {
    return cost_of_million(merged, merged.measures.samples_per_s, price_per_gpu_hour);
  };
  std::unordered_map<std::string, double> cheapest;  // by family; fmin passes a NaN over
  for (const MergedPoint& merged : points) {
    if (!is_costed(merged)) continue;
    double& least = cheapest.try_emplace(merged.family, Measures::kNone).first->second;
    least = std::fmin(least, per_sample(merged));
  }
  const TrainingColumns labels(points);
  for (const MergedPoint& merged : points) {
    if (!is_costed(merged) || !(price_per_gpu_hour > 0)) continue;
    const Measures& m = merged.measures;
    table.rows.push_back(concat<Cell>(
        {labels.cells(merged),
         {cells::number(m.samples_per_s), cells::number(m.tokens_per_s), cells::number(per_sample(merged)),
          cells::number(cost_of_million(merged, m.tokens_per_s, price_per_gpu_hour)),
          cells::number(per_sample(merged) / cheapest.at(merged.family), 3)},
         TrainingColumns::mark_cells(merged)}));
  }
  table.notes = {
      "cost of 10^6 = price x ranks x 10^6 / throughput / 3600, in the price's currency; a rank holds one "
      "GPU.",
      "x cheapest: against the cheapest point with the same model, data, optimizer and precision; "
      "convergence "
      "aside, which a larger batch may cost."};
  for (const std::string& note : labels.mark_notes()) table.notes.push_back(note);
  return table;
}

}  // namespace shardmark
