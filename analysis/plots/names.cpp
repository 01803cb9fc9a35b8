// See names.h.
#include "analysis/plots/names.h"

#include <fmt/format.h>

#include <set>

namespace shardmark {

PlotNames::PlotNames(const std::vector<MergedPoint>& points) : labels_(points) {
  const std::vector<Column> columns = TrainingColumns::family_columns();
  std::vector<std::set<std::string>> texts(columns.size());
  for (const MergedPoint& merged : points) {
    if (!is_training(merged)) continue;
    const std::vector<Cell>& cells = labels_.family_cells(merged);
    for (size_t c = 0; c < columns.size(); ++c) texts[c].insert(cells[c].text);
    styles_.try_emplace(merged.strategy, static_cast<int>(styles_.size()));
  }
  for (const MergedPoint& merged : points) {
    if (!is_training(merged)) continue;
    std::string& name = families_[merged.family];
    if (!name.empty()) continue;
    const std::vector<Cell>& cells = labels_.family_cells(merged);
    for (size_t c = 0; c < columns.size(); ++c) {
      if ((columns[c].name != "model" && texts[c].size() == 1) || cells[c].value.is_null()) continue;
      // A number alone says nothing; a word does.
      const bool needs_name = columns[c].numeric || columns[c].name == "checkpointing";
      name += (name.empty() ? "" : ", ") + (needs_name ? columns[c].name + " " : "") + cells[c].text;
    }
  }
}

std::string ranks_text(int64_t ranks) { return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s"); }

}  // namespace shardmark
