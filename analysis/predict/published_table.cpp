// Published rows beside their predictions.
#include <fmt/format.h>

#include <cmath>

#include "analysis/predict/published_scaling.h"
#include "analysis/table/axis_columns.h"
#include "analysis/table/cells.h"
#include "analysis/table/columns.h"

namespace shardmark {
namespace {

struct PublishedStepRow {
  const PublishedScaling* published;
  const PublishedRow* row;
  PredictedRow predicted;
  int64_t nodes() const {
    return (row->point.ranks + published->ranks_per_node - 1) / published->ranks_per_node;
  }
  bool calibrates() const { return row == &published->rows.front(); }
};

std::vector<PublishedStepRow> rows_of(const std::vector<PublishedScaling>& all) {
  std::vector<PublishedStepRow> rows;
  for (const PublishedScaling& published : all) {
    const std::vector<PredictedRow> predicted = predicted_rows(published);
    for (size_t i = 0; i < predicted.size(); ++i)
      rows.push_back({&published, &published.rows[i], predicted[i]});
  }
  return rows;
}

ColumnsOf<PublishedStepRow> published_columns() {
  return {{{"training", "", false, true, "", Starts::section},
           [](const auto& row) { return cells::words(row.published->name); }},
          {choice_column("strategy"), [](const auto& row) { return strategy_cell(row.row->point.training); }},
          {{"ranks", ""}, [](const auto& row) { return cells::count(row.row->point.ranks); }},
          {{"nodes", ""}, [](const auto& row) { return cells::count(row.nodes()); }},
          {{"micro-batches", "", true, true},
           [](const auto& row) { return cells::count(row.row->point.training.accumulation); }},
          {{"batch", "per rank", true, true},
           [](const auto& row) { return cells::count(row.row->point.training.batch_size); }},
          {{"published", "", false}, [](const auto& row) { return cells::words(row.row->value); }}};
}

ColumnsOf<PublishedStepRow> step_columns() {
  return {{{"measured", "ms", true, false, "step"},
           [](const auto& row) { return cells::milliseconds(row.row->step_s); }},
          {{"predicted", "ms", true, false, "step"},
           [](const auto& row) { return cells::milliseconds(row.predicted.step_s); },
           "simulation of the strategy's step: all rows use the first row's computing time, divided among "
           "the blocks by FLOPs (a third forward, two thirds backward); added is the time of the strategy's "
           "collectives over links with data-sheet rates and the latencies of NCCL's tuning tables, as far "
           "as computing does not hide it."},
          {{"error", "%"},
           [](const auto& row) {
             return row.calibrates() ? Cell{"calibrates", nullptr}
                                     : cells::difference(row.predicted.step_s, row.row->step_s);
           },
           "predicted / measured - 1."},
          {{"in all", "ms", true, false, "communication"},
           [](const auto& row) { return cells::milliseconds(row.predicted.communication_s); },
           "sum over the step's operations."},
          {{"exposed", "ms", true, false, "communication"},
           [](const auto& row) { return cells::milliseconds(row.predicted.exposed_s); },
           "time during which the computing thread waits."}};
}

std::string described(const specs::Link& link) {
  return fmt::format("{} of {:g} GB/s and {:g} us a step", link.name, link.bytes_per_s / 1e9,
                     link.latency_s * 1e6);
}

// Without its name: several may share it.
std::string source(const PublishedScaling& published) {
  return fmt::format("{}. Links of a GPU: {} within a node, {} across. Assumed: {}.", published.source,
                     described(published.node), described(published.across), published.assumed);
}

std::vector<std::string> sources() {
  std::vector<std::string> notes;
  std::string names, last;
  for (const PublishedScaling& published : published_scalings()) {
    const std::string text = source(published);
    names = text == last ? fmt::format("{} and {}", names, published.name) : published.name;
    if (text == last) notes.pop_back();
    notes.push_back(fmt::format("{}: {}", names, text));
    last = text;
  }
  return notes;
}

}  // namespace

Table published_table() {
  Table table = make_table("published", "Published scaling results, predicted from their first row",
                           join(published_columns(), step_columns()), rows_of(published_scalings()));
  table.notes.emplace_back(
      "Mostly missing: waiting for the slowest of many ranks; overhead of the wrapper and the host (ddp on 1 "
      "rank communicates nothing); work done once per step, which weighs more with fewer micro-batches. "
      "Nothing is fitted to the later rows.");
  for (std::string& note : sources()) table.notes.push_back(std::move(note));
  return table;
}

}  // namespace shardmark
