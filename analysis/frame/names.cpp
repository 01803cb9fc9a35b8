#include "analysis/frame/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "analysis/frame/training_columns.h"
#include "strategies/brief_text.h"

namespace shardmark {

namespace {

// The options of the only model stand above the tables.
std::string model_name(const MergedPoint& merged, const std::string& label, bool is_only) {
  return is_only ? merged.point.training.model.name : label;
}

const AxisRow* axis_of(const std::string& heading) {
  const auto found = std::find_if(kTrainingAxes.begin(), kTrainingAxes.end(), [&](const AxisRow& axis) {
    return axis.heading != nullptr && axis.heading == heading;
  });
  return found == kTrainingAxes.end() ? nullptr : &*found;
}

// " kernels" of the phrase " with {} kernels": "fused" alone would not say what is.
std::string noun_of(const AxisRow* axis) {
  const std::string_view with = " with {}", phrase = axis == nullptr || !axis->phrase ? "" : axis->phrase;
  return phrase.starts_with(with) ? std::string(phrase.substr(with.size())) : "";
}

// "gpt2, bf16, fused kernels, accumulation 4"; a number alone says nothing, so it comes with its name.
std::string family_name(const MergedPoint& merged, const std::vector<Column>& columns,
                        const std::vector<Cell>& cells, const std::vector<std::set<std::string>>& texts) {
  std::string name;
  for (size_t c = 0; c < columns.size(); ++c) {
    const bool is_model = columns[c].name == "model", is_only = texts[c].size() == 1;
    if ((is_only && !is_model) || cells[c].value.is_nothing()) continue;
    const AxisRow* const axis = axis_of(columns[c].name);
    const bool needs_name = columns[c].numeric || (axis != nullptr && axis->in_words != nullptr);
    name += name.empty() ? "" : ", ";
    if (cells[c].text == "yes")  // of an axis that is true or false
      name += columns[c].name;
    else
      name += (needs_name ? columns[c].name + " " : "") +
              (is_model ? model_name(merged, cells[c].text, is_only) : cells[c].text) + noun_of(axis);
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
