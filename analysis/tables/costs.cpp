// What training costs at a price per GPU-hour, as columns of the strategies.
#include "analysis/tables/costs.h"

#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "analysis/reference/matched.h"
#include "analysis/stats/ranking.h"
#include "analysis/table/cells.h"

namespace shardmark {
namespace {

// What is bought is training: the same model on the same data, with the same optimizer and precision. How it
// is laid out, batched, recomputed or set up is what differs in price. One price holds for one kind of
// device.
std::string training_bought(const MergedPoint& merged) {
  const TrainingPoint& t = merged.point.training;
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", device_of(merged), to_text(t.model), to_text(t.data),
                     to_text(t.optimizer), t.precision, to_text(t.products));
}

// The hours of GPUs for a million samples or tokens. Every rank holds one GPU for as long as the point runs.
double hours_of_million(const MergedPoint& merged, double Measures::*per_s) {
  const double speed = merged.measures.*per_s;
  return trains_one_model(merged) && speed > 0 ? throughput_of(merged).rank_hours(1e6, speed)
                                               : Measures::kNone;
}

// The ratio of two costs, marked if the launches do not show that the point costs more. The test works on
// steps: a cost is a step's time times the rank hours that one second of a step costs per sample, so the
// steps are scaled by the ratio of these.
Cell over_cheapest(const MergedPoint& merged, const MergedPoint& cheapest) {
  const auto hours = [](const MergedPoint& one) { return hours_of_million(one, &Measures::samples_per_s); };
  Cell cell = cells::number(hours(merged) / hours(cheapest), 3);
  const double factor =
      (hours(merged) / merged.measures.step_s) / (hours(cheapest) / cheapest.measures.step_s);
  if (hours(merged) > hours(cheapest) && !is_surely_more(merged, factor, cheapest)) cell.text += " ?";
  return cell;
}

constexpr const char* kCost =
    "price x ranks x 10^6 / throughput / 3600, in the price's currency; a rank holds one GPU.";

}  // namespace

ColumnsOf<MergedPoint> cost_columns(const std::vector<MergedPoint>& points, double price_per_gpu_hour) {
  if (!(price_per_gpu_hour > 0)) return {};
  std::unordered_map<std::string, const MergedPoint*> cheapest;
  for (const MergedPoint& merged : points) {
    if (!is_training(merged) || std::isnan(hours_of_million(merged, &Measures::samples_per_s))) continue;
    const MergedPoint*& least = cheapest.try_emplace(training_bought(merged), &merged).first->second;
    if (hours_of_million(merged, &Measures::samples_per_s) <
        hours_of_million(*least, &Measures::samples_per_s))
      least = &merged;
  }
  const auto cost = [price_per_gpu_hour](const MergedPoint& merged, double Measures::*per_s) {
    return cells::number(price_per_gpu_hour * hours_of_million(merged, per_s));
  };
  const auto optional = [](const char* name) {
    return Column{.name = name, .group = "cost of 10^6", .is_optional = true};
  };
  return {
      {optional("samples"),
       [=](const auto& merged) {
         return cells::unless_said(merged.measures.tokens_per_s > 0, cost(merged, &Measures::samples_per_s));
       },
       kCost},
      {optional("tokens"), [=](const auto& merged) { return cost(merged, &Measures::tokens_per_s); }, kCost},
      {{.name = "x cheapest", .is_optional = true},
       [=](const auto& merged) {
         const auto found = cheapest.find(training_bought(merged));
         return found == cheapest.end() ? cells::number(Measures::kNone)
                                        : over_cheapest(merged, *found->second);
       },
       "cost / that of the cheapest point with the same model, data, optimizer, precision and products on "
       "the "
       "same "
       "kind of device, whatever its layout, ranks, batch, recomputation and settings. That a larger "
       "batch may converge more slowly is not counted. ?: the launches do not show that the point costs "
       "more; "
       "fewer than 3 never do."}};
}

}  // namespace shardmark
