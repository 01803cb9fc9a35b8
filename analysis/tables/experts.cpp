// How evenly the tokens of a mixture of experts are spread over its experts, by layer.
#include <algorithm>
#include <numeric>

#include "analysis/frame/known.h"
#include "analysis/frame/training_columns.h"
#include "analysis/table/cells.h"
#include "analysis/tables/tables.h"

namespace shardmark {
namespace {

struct LayerLoad {
  const MergedPoint* merged;
  int64_t layer;
  std::vector<double> tokens;  // of each expert in a step, mean over the repeats

  double mean() const {
    return std::accumulate(tokens.begin(), tokens.end(), 0.0) / static_cast<double>(tokens.size());
  }
  double largest() const { return *std::max_element(tokens.begin(), tokens.end()); }
  // The tokens of the busiest of the ranks that share the experts, each of which has consecutive ones.
  double of_busiest_rank() const {
    const int64_t ranks = merged->point.training.expert;
    if (ranks == 1 || std::ssize(tokens) % ranks != 0) return Measures::kNone;
    double most = 0;
    const auto own = std::ssize(tokens) / ranks;
    for (auto first = tokens.begin(); first != tokens.end(); first += own)
      most = std::max(most, std::accumulate(first, first + own, 0.0));
    return most / (mean() * static_cast<double>(own));
  }
  // The share of the copies of tokens that no expert took, where experts have a capacity.
  double dropped() const {
    const specs::SharedTable table = known_table(merged->point.training.model);
    if (!table) return Measures::kNone;
    const auto block = std::find_if(table->blocks.begin(), table->blocks.end(),
                                    [](const specs::BlockSpec& one) { return one.expert_tokens; });
    if (block == table->blocks.end() || block->expert_tokens->capacity == 0) return Measures::kNone;
    const auto copies = static_cast<double>(block->expert_tokens->copies * merged->point.global_batch());
    return 1 - mean() * static_cast<double>(tokens.size()) / copies;
  }
};

std::vector<LayerLoad> layers_of(const MergedPoints& points) {
  std::vector<LayerLoad> rows;
  for (const MergedPoint* merged : training_points(points)) {
    const Series* first = merged->records.empty() ? nullptr : merged->records.front()->series("expert_load");
    if (first == nullptr || first->columns == 0) continue;
    for (int64_t layer = 0; layer < first->rows; ++layer) {
      LayerLoad& row =
          rows.emplace_back(merged, layer, std::vector<double>(static_cast<size_t>(first->columns)));
      double count = 0;
      for (const Record* record : merged->records) {
        const Series* load = record->series("expert_load");
        if (load == nullptr || load->rows != first->rows || load->columns != first->columns) continue;
        ++count;
        for (int64_t expert = 0; expert < first->columns; ++expert)
          row.tokens[static_cast<size_t>(expert)] += load->at(layer, expert);
      }
      for (double& tokens : row.tokens) tokens /= count;
    }
  }
  return rows;
}

}  // namespace

Table experts_table(const MergedPoints& points) {
  const TrainingColumns labels(points);
  return make_table(
      "experts", "Experts: how evenly their tokens are spread",
      join(via(&LayerLoad::merged, labels.columns()),
           ColumnsOf<LayerLoad>{
               {{"layer", ""}, [](const auto& row) { return cells::count(row.layer); }},
               {{"experts", ""}, [](const auto& row) { return cells::count(std::ssize(row.tokens)); }},
               {{"mean", "tokens"},
                [](const auto& row) { return cells::number(row.mean()); },
                "that an expert is given in a step, of all ranks."},
               {{"largest", "tokens"}, [](const auto& row) { return cells::number(row.largest()); }},
               {{"largest / mean", ""},
                [](const auto& row) { return cells::number(row.largest() / row.mean(), 3); },
                "1: evenly."},
               {{.name = "busiest rank / mean", .is_optional = true},
                [](const auto& row) { return cells::number(row.of_busiest_rank(), 3); },
                "of the tokens that go to the experts of a rank, where ranks share them, over all steps. "
                "Without a "
                "capacity, ranks wait for the busiest one in every micro-batch, so they wait for at least as "
                "much."},
               {{.name = "dropped", .unit = "%", .is_optional = true},
                [](const auto& row) { return cells::percent(row.dropped()); },
                "the share of the copies of tokens that no expert took, because it had reached its capacity. "
                "The other columns count those that were taken."},
               {{"idle", ""},
                [](const auto& row) {
                  return cells::count(std::count(row.tokens.begin(), row.tokens.end(), 0.0));
                },
                "experts that no token went to."}}),
      layers_of(points));
}

}  // namespace shardmark
