// Published rows beside their predictions.
#include <fmt/format.h>

#include "analysis/cells.h"
#include "analysis/known.h"
#include "analysis/predict/published_scaling.h"

namespace shardmark {
namespace {

std::vector<Column> columns() {
  return {{"training", "", false, true},
          {"strategy", "", false},
          {"ranks", ""},
          {"nodes", ""},
          {"micro-batches", "", true, true},
          {"published", "", false},
          {"measured", "ms", true, false, "step"},
          {"predicted", "ms", true, false, "step"},
          {"error", "%"},
          {"in all", "ms", true, false, "communication"},
          {"exposed", "ms", true, false, "communication"}};
}

std::vector<Cell> cells_of(const PublishedScaling& published, size_t i, const PredictedRow& predicted) {
  const PublishedRow& row = published.rows[i];
  const TrainingPoint& t = row.point.training;
  const int64_t nodes = (row.point.ranks + published.ranks_per_node - 1) / published.ranks_per_node;
  return {cells::words(published.name),
          cells::words(to_text(without_defaults(t.strategy, known_options(t.strategy)))),
          cells::count(row.point.ranks),
          cells::count(nodes),
          cells::count(t.accumulation),
          cells::words(row.value),
          cells::milliseconds(row.step_s),
          cells::milliseconds(predicted.step_s),
          i == 0 ? Cell{"calibrates", nullptr} : cells::difference(predicted.step_s, row.step_s),
          cells::milliseconds(predicted.communication_s),
          cells::milliseconds(predicted.exposed_s)};
}

std::string described(const laws::Link& link) {
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
  Table table{
      "published",
      "Scaling that others published, predicted from its first row",
      {"error: predicted / measured - 1. The first row's computing, dealt to the blocks by their "
       "FLOPs (a third forward, two thirds backward), is that of all rows; what is added is what the "
       "strategy's operations take over links at the rates of their data sheets and the latencies of "
       "NCCL's tuning tables, as far as computing does not hide it.",
       "What is missing, mostly: waiting for the slowest of many ranks; what wrapper and host add (ddp "
       "on 1 rank moves nothing); work once a step, which weighs more where a step "
       "has fewer micro-batches. Nothing is fitted to the later rows."},
      columns(),
      {}};
  table.num_section_columns = 1;
  for (const PublishedScaling& published : published_scalings()) {
    const std::vector<PredictedRow> predicted = predicted_rows(published);
    for (size_t i = 0; i < predicted.size(); ++i) table.rows.push_back(cells_of(published, i, predicted[i]));
  }
  for (std::string& note : sources()) table.notes.push_back(std::move(note));
  return table;
}

}  // namespace shardmark
