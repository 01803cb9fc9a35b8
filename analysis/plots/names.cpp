// See names.h.
#include "analysis/plots/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/tables/training_columns.h"
#include "strategies/brief_text.h"

namespace shardmark {

namespace {

// The options of the only model stand above the tables.
std::string model_name(const MergedPoint& merged, const std::string& label, bool is_only) {
  return is_only ? merged.point.training.model.name : label;
}

bool is_number_in_words(const std::string& heading) {
  return std::any_of(kTrainingAxes.begin(), kTrainingAxes.end(), [&](const AxisRow& axis) {
    return axis.in_words != nullptr && axis.heading == heading;
  });
}

// "gpt2, bf16, accumulation 4"; a number alone says nothing, so it comes with its name.
std::string family_name(const MergedPoint& merged, const std::vector<Column>& columns,
                        const std::vector<Cell>& cells, const std::vector<std::set<std::string>>& texts) {
  std::string name;
  for (size_t c = 0; c < columns.size(); ++c) {
    const bool is_model = columns[c].name == "model", is_only = texts[c].size() == 1;
    if ((is_only && !is_model) || cells[c].value.is_nothing()) continue;
    const bool needs_name = columns[c].numeric || is_number_in_words(columns[c].name);
    name += name.empty() ? "" : ", ";
    if (cells[c].text == "yes")  // of an axis that is true or false
      name += columns[c].name;
    else
      name += (needs_name ? columns[c].name + " " : "") +
              (is_model ? model_name(merged, cells[c].text, is_only) : cells[c].text);
  }
  return name;
}

}  // namespace

PlotNames::PlotNames(const std::vector<MergedPoint>& points) {
  const TrainingColumns labels(points);
  const std::vector<Column> columns = TrainingColumns::family_columns();
  std::vector<std::set<std::string>> texts(columns.size());
  for (const MergedPoint& merged : points) {
    if (!is_training(merged)) continue;
    const std::vector<Cell>& cells = labels.family_cells(merged);
    for (size_t c = 0; c < columns.size(); ++c) texts[c].insert(cells[c].text);
    styles_.try_emplace(merged.strategy, static_cast<int>(styles_.size()));
  }
  for (const MergedPoint& merged : points) {
    if (!is_training(merged)) continue;
    if (std::string& name = families_[merged.family]; name.empty())
      name = family_name(merged, columns, labels.family_cells(merged), texts);
    strategies_.try_emplace(merged.strategy, strategy_text(merged.point.training));
  }
}

std::string ranks_text(int64_t ranks) { return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s"); }

std::string ranks_text(const MergedPoint& merged) {
  std::string text = ranks_text(merged.point.ranks);
  if (!merged.names_nodes || merged.nodes == 0) return text;
  return text + fmt::format(" on {} node{}{}", merged.nodes, merged.nodes == 1 ? "" : "s",
                            merged.nodes > 1 && merged.ranks_per_node == 0 ? ", uneven" : "");
}

std::string collective_setting_text(const MergedPoint& merged) {
  return fmt::format("{} over {}, {}{}", ranks_text(merged), brief_text("transport", merged.transport),
                     merged.point.collective.dtype, merged.names_machine ? ", " + merged.machine : "");
}

}  // namespace shardmark
