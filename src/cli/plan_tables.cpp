// A row per training point, and per collective and rank count (its sizes are one range).
#include "cli/plan_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/cells.h"
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

// Names of the choices; options at their defaults are left out.
std::string model_name(const Point& p) {
  return to_text(p.training.model, &laws::model_law(p.training.model.name).options);
}
std::string strategy_name(const Point& p) {
  return to_text(p.training.strategy, &laws::strategy_law(p.training.strategy.name).options);
}
std::string data_name(const Point& p) {
  return to_text(p.training.data, &laws::data_laws().at(p.training.data.name).options);
}
std::string optimizer_name(const Point& p) {
  return to_text(p.training.optimizer, &laws::optimizer_laws().at(p.training.optimizer.name).options);
}

constexpr size_t kNumGroupColumns = 9;  // of a training row, before the strategy

std::vector<Column> training_columns() {
  return concat<Column>({{{"model", "", false, true},
                          {"transport", "", false, true},
                          {"data", "", false, true},
                          {"optimizer", "", false, true},
                          {"precision", "", false, true},
                          {"accumulation", "", true, true}},
                         sampling_columns(),
                         {{"scaling", "", false, true},
                          {"strategy", "", false},
                          {"batch", "per rank"},
                          {"ranks", ""},
                          {"parameters", "million", true, true},
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

std::vector<Cell> training_row(const Point& point) {
  const TrainingPoint& t = point.training;
  const Expectation e = expect(point);
  return concat<Cell>(
      {{cells::words(model_name(point)), transport_cell(point), cells::words(data_name(point)),
        cells::words(optimizer_name(point)), cells::words(t.precision), cells::count(t.accumulation)},
       sampling_cells(point.sampling),
       {cells::words(t.scaling), cells::words(strategy_name(point)), cells::count(t.batch_size),
        cells::count(point.ranks), cells::number(static_cast<double>(e.num_parameters) / 1e6),
        cells::mebibytes(e.cost.parameter_bytes), cells::mebibytes(e.cost.gradient_bytes),
        cells::mebibytes(e.cost.optimizer_bytes), cells::mebibytes(e.cost.transient_bytes),
        cells::mebibytes(e.activation_bytes), cells::mebibytes(memory_bytes(e)),
        cells::number(e.flops_per_step / 1e9), cells::mebibytes(e.cost.traffic_bytes),
        cells::count(e.cost.num_operations)}});
}

// One table for each model, data source and kind of scaling: what its points share then stands above it.
std::vector<Table> training_tables(const std::vector<const Point*>& points) {
  std::vector<std::pair<std::string, std::vector<const Point*>>> families;  // in the order of the plan
  for (const Point* point : points) {
    const TrainingPoint& t = point->training;
    const std::string title = t.model.name + " on " + t.data.name + ", " + t.scaling + " scaling";
    auto family =
        std::find_if(families.begin(), families.end(), [&](const auto& f) { return f.first == title; });
    if (family == families.end()) family = families.insert(families.end(), {title, {}});
    family->second.push_back(point);
  }
  std::vector<Table> tables;
  for (const auto& [title, members] : families) {
    Table table{"training", "Training " + title, {}, training_columns(), {}};
    for (const Point* point : members) table.rows.push_back(training_row(*point));
    table.num_group_columns = kNumGroupColumns;
    tables.push_back(std::move(table));
  }
  if (!tables.empty())
    tables.back().notes = {
        "Memory is that of the rank that has most, by the laws that tests hold the strategies to; "
        "activations are an "
        "estimate of what forward keeps for backward. Traffic is what a ring sends: payload x ring factor, "
        "mean over ranks.",
        "Options at their defaults (see shardmark list) are left out of the names."};
  return tables;
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

// Without the size of a collective: its sizes are one row where they share the reason.
std::string impossible_name(const Point& point) {
  const std::string ranks = fmt::format("{} rank{}", point.ranks, point.ranks == 1 ? "" : "s");
  const CollectivePoint& c = point.collective;
  if (point.workload == "collective")
    return fmt::format("{} {}{}, {}", c.operation, c.dtype, c.reduction == "none" ? "" : " " + c.reduction,
                       ranks);
  const int64_t batch =
      point.training.batch_size;  // 0: the ranks do not divide the global batch, as the reason says
  return fmt::format("{} {}{}, {}", model_name(point), strategy_name(point),
                     batch > 0 ? fmt::format(" batch {}", batch) : "", ranks);
}

Table impossible_table(const std::vector<const Point*>& points) {
  Table table{"impossible",
              "Points that cannot run",
              {},
              {{"what", "", false}, {"why", "", false}, {"points", ""}},
              {}};
  std::vector<std::pair<std::pair<std::string, std::string>, int64_t>>
      rows;  // (what, why), in the order of the plan
  for (const Point* point : points) {
    const std::pair key(impossible_name(*point), point->impossible);
    auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.first == key; });
    if (row == rows.end()) row = rows.insert(row, {key, 0});
    ++row->second;
  }
  for (const auto& [key, count] : rows)
    table.rows.push_back({cells::words(key.first), cells::words(key.second), cells::count(count)});
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
  std::vector<Table> tables = training_tables(training);
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
