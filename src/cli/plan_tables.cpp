// A row per training point, and per collective and rank count (its sizes are one range).
#include "cli/plan_tables.h"

#include <algorithm>
#include <map>

#include "analysis/cells.h"
#include "analysis/labels.h"
#include "base/units.h"
#include "laws/vocabulary.h"

namespace shardmark {
namespace {

bool can_run(const Point& point) { return point.impossible.empty(); }

double memory_bytes(const Expectation& e) {
  return e.cost.parameter_bytes + e.cost.gradient_bytes + e.cost.optimizer_bytes + e.cost.transient_bytes +
         e.activation_bytes;
}

Cell transport_cell(const Point& point) { return cells::words(point.transport); }

std::vector<Column> sampling_columns() {
  return {
      {"steps at least", "", true, true}, {"steps at most", "", true, true}, {"time limit", "s", true, true}};
}

std::vector<Cell> sampling_cells(const Sampling& s) {
  return {cells::count(s.min_steps), cells::count(s.max_steps), cells::number(s.time_limit_s)};
}

// Names of the choices, short where all points agree.
struct ChoiceLabels {
  Labels models, data, optimizers, strategies;

  explicit ChoiceLabels(const std::vector<Point>& plan) {
    for (const auto& point : plan) {
      if (point.workload != "training") continue;
      const TrainingPoint& t = point.training;
      models.add(t.model, laws::model_law(t.model.name).options);
      data.add(t.data, laws::data_laws().at(t.data.name).options);
      optimizers.add(t.optimizer, laws::optimizer_laws().at(t.optimizer.name).options);
      strategies.add(t.strategy, laws::strategy_law(t.strategy.name).options);
    }
  }
};

std::vector<Column> training_columns() {
  return concat<Column>({{{"transport", "", false, true},
                          {"data", "", false, true},
                          {"optimizer", "", false, true},
                          {"precision", "", false, true},
                          {"accumulation", "", true, true}},
                         sampling_columns(),
                         {{"model", "", false, true},
                          {"scaling", "", false, true},
                          {"strategy", "", false},
                          {"batch", "per rank"},
                          {"ranks", ""},
                          {"parameters", "million"},
                          {"parameters", "MiB", true, false, "memory per rank"},
                          {"gradients", "MiB", true, false, "memory per rank"},
                          {"optimizer", "MiB", true, false, "memory per rank"},
                          {"transient", "MiB", true, false, "memory per rank"},
                          {"activations", "MiB", true, false, "memory per rank"},
                          {"total", "MiB", true, false, "memory per rank"},
                          {"compute", "GFLOP", true, false, "per rank and step"},
                          {"traffic", "MiB", true, false, "per rank and step"},
                          {"operations", "", true, false, "per rank and step"}}});
}

std::vector<Cell> training_row(const Point& point, const ChoiceLabels& labels) {
  const TrainingPoint& t = point.training;
  const Expectation e = expect(point);
  return concat<Cell>({{transport_cell(point), cells::words(labels.data.label(t.data)),
                        cells::words(labels.optimizers.label(t.optimizer)), cells::words(t.precision),
                        cells::count(t.accumulation)},
                       sampling_cells(point.sampling),
                       {cells::words(labels.models.label(t.model)), cells::words(t.scaling),
                        cells::words(labels.strategies.label(t.strategy)), cells::count(t.batch_size),
                        cells::count(point.ranks), cells::number(static_cast<double>(e.num_parameters) / 1e6),
                        cells::mebibytes(e.cost.parameter_bytes), cells::mebibytes(e.cost.gradient_bytes),
                        cells::mebibytes(e.cost.optimizer_bytes), cells::mebibytes(e.cost.transient_bytes),
                        cells::mebibytes(e.activation_bytes), cells::mebibytes(memory_bytes(e)),
                        cells::number(e.flops_per_step / 1e9), cells::mebibytes(e.cost.traffic_bytes),
                        cells::count(e.cost.num_operations)}});
}

Table training_table(const std::vector<const Point*>& points, const ChoiceLabels& labels) {
  Table table{"training", "Training points", {}, training_columns(), {}};
  for (const Point* point : points) table.rows.push_back(training_row(*point, labels));
  std::string legend;
  for (const Labels* kind : {&labels.models, &labels.data, &labels.optimizers, &labels.strategies})
    if (const auto text = kind->legend(); !text.empty()) legend += (legend.empty() ? "" : "; ") + text;
  if (!legend.empty())
    table.notes.push_back("Options that the names leave out, because all points share them: " + legend + ".");
  table.notes.push_back(
      "Memory is that of the rank that has most, by the laws that tests hold the strategies to; activations "
      "are an estimate "
      "of what forward keeps for backward. Traffic is what a ring sends: payload x ring factor, mean over "
      "ranks.");
  table.num_group_columns = 10;  // a blank line between models and kinds of scaling
  return table;
}

Table collectives_table(const std::vector<const Point*>& points) {
  Table table{"collectives",
              "Collective points",
              {"Traffic is what a ring sends for the largest message: bytes x ring factor, mean over ranks."},
              concat<Column>({{{"transport", "", false, true}},
                              sampling_columns(),
                              {{"operation", "", false},
                               {"type", "", false, true},
                               {"reduction", "", false},
                               {"in place", "", false, true},
                               {"ranks", ""},
                               {"sizes", ""},
                               {"smallest", "bytes"},
                               {"largest", "bytes"},
                               {"traffic", "MiB per rank"}}}),
              {}};
  struct Sizes {
    const Point* smallest;
    const Point* largest;
    int64_t count;
  };
  std::vector<std::pair<Point, Sizes>> rows;  // the point with no size, and its sizes
  std::map<std::string, size_t> row_of;
  for (const Point* point : points) {
    Point kind = *point;
    kind.collective.bytes = 0;
    const auto [at, is_new] = row_of.emplace(point_id(kind), rows.size());
    if (is_new) rows.push_back({kind, {point, point, 0}});
    Sizes& sizes = rows[at->second].second;
    if (point->collective.bytes < sizes.smallest->collective.bytes) sizes.smallest = point;
    if (point->collective.bytes > sizes.largest->collective.bytes) sizes.largest = point;
    ++sizes.count;
  }
  for (const auto& [kind, sizes] : rows) {
    const CollectivePoint& c = kind.collective;
    table.rows.push_back(concat<Cell>(
        {{transport_cell(kind)},
         sampling_cells(kind.sampling),
         {cells::words(c.operation), cells::words(c.dtype), cells::words(c.reduction),
          cells::yes_no(c.in_place), cells::count(kind.ranks), cells::count(sizes.count),
          cells::count(sizes.smallest->collective.bytes), cells::count(sizes.largest->collective.bytes),
          cells::mebibytes(expect(*sizes.largest).cost.traffic_bytes)}}));
  }
  return table;
}

Table impossible_table(const std::vector<const Point*>& points) {
  Table table{"impossible", "Points that cannot run", {}, {{"point", "", false}, {"why", "", false}}, {}};
  for (const Point* point : points)
    table.rows.push_back({cells::words(to_text(*point)), cells::words(point->impossible)});
  return table;
}

}  // namespace

std::vector<Table> plan_tables(const std::vector<Point>& plan) {
  std::vector<const Point*> training, collectives, impossible;
  for (const auto& point : plan)
    if (point.repeat == 0)
      (!can_run(point)                ? impossible
       : point.workload == "training" ? training
                                      : collectives)
          .push_back(&point);
  std::vector<Table> tables;
  if (!training.empty()) tables.push_back(training_table(training, ChoiceLabels(plan)));
  if (!collectives.empty()) tables.push_back(collectives_table(collectives));
  if (!impossible.empty()) tables.push_back(impossible_table(impossible));
  return tables;
}

PlanTotals plan_totals(const std::vector<Point>& plan) {
  PlanTotals totals;
  totals.num_points = static_cast<int64_t>(plan.size());
  for (const auto& point : plan) {
    if (!can_run(point)) {
      ++totals.num_impossible;
      continue;
    }
    totals.time_limit_s += point.sampling.time_limit_s;
    if (point.repeat == 0) totals.most_bytes = std::max(totals.most_bytes, memory_bytes(expect(point)));
  }
  return totals;
}

}  // namespace shardmark
