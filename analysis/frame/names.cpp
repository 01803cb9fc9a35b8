#include "analysis/frame/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analysis/frame/strategy_styles.h"
#include "analysis/frame/training_columns.h"
#include "strategies/brief_text.h"

namespace shardmark {

namespace {

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

// "save " of the phrase " save {}", for a choice whose name would not say what it is.
std::string words_before(const AxisRow* axis) {
  const std::string_view phrase = axis == nullptr || !axis->phrase ? "" : axis->phrase;
  const size_t value = phrase.find('{');
  return value == 0 || value == std::string_view::npos ? "" : std::string(phrase.substr(1, value - 1));
}

// What says how a copy of the model lies over its ranks.
bool is_layout(const std::string& heading) {
  for (const char* const one : {"tensor", "sequence parallel", "context", "expert", "dispatch", "pipeline",
                                "schedule", "stages by", "rank order"})
    if (heading == one) return true;
  return false;
}

// Machine and transport stand above the tables where all agree; nobody asks for the seed, synthetic data and
// defaults then.
Said said_of(const Column& column, const MergedPoint& merged) {
  if (column.name == "model" || column.name == "optimizer" || column.name == "precision") return Said::once;
  if (column.name == "data" && merged.point.training.data.name == "synthetic") return Said::if_differs;
  const AxisRow* const axis = axis_of(column.name);
  return axis == nullptr || is_default(*axis, merged.point) ? Said::if_differs : Said::once;
}

}  // namespace

std::string cell_in_words(const Column& column, const Cell& cell) {
  if (cell.says_nothing() || cell.text == "no") return "";
  if (cell.text == "yes") return column.name;  // of an axis that is true or false
  if (column.name == "ranks") return cell.text + (cell.text == "1" ? " rank" : " ranks");
  const AxisRow* const axis = axis_of(column.name);
  const bool needs_name = column.numeric || (axis != nullptr && axis->in_words != nullptr);
  return (needs_name ? column.name + " " : "") + cell.text + noun_of(axis);
}

LabelPart part_of(const Column& column, const Cell& cell, Said said) {
  if (column.is_brief && !cell.says_nothing()) {
    LabelPart part = choice_part(column.name, cell.text, said);
    part.text = words_before(axis_of(column.name)) + part.text;
    return part;
  }
  return {column.name, cell_in_words(column, cell), {}, said};
}

// Puts the parts of a family's name into the order in which people ask for them: model and layout, then
// what a caller puts between (batch, ranks, strategy), then the other settings, and last where it was
// measured.
PlotNames::FamilyParts PlotNames::parts_of(const MergedPoint& merged, const std::vector<Column>& columns,
                                           const std::vector<Cell>& cells) {
  FamilyParts parts;
  LabelParts layout, where;
  for (size_t c = 0; c < columns.size(); ++c) {
    LabelPart part = part_of(columns[c], cells[c], said_of(columns[c], merged));
    LabelParts& kind = part.axis == "model"                                 ? parts.first
                       : is_layout(part.axis)                               ? layout
                       : part.axis == "machine" || part.axis == "transport" ? where
                                                                            : parts.rest;
    kind.push_back(std::move(part));
  }
  parts.first.insert(parts.first.end(), layout.begin(), layout.end());
  parts.rest.insert(parts.rest.end(), where.begin(), where.end());
  return parts;
}

PlotNames::PlotNames(const std::vector<MergedPoint>& points) {
  const TrainingColumns labels(points);
  const std::vector<Column> columns = TrainingColumns::family_columns();
  for (const MergedPoint& merged : points) {
    if (!is_training(merged)) continue;
    if (!parts_.contains(merged.family))
      parts_[merged.family] = parts_of(merged, columns, labels.family_cells(merged));
    styles_.try_emplace(merged.strategy, style_of_strategy(strategy_text(merged.point.training),
                                                           static_cast<int>(styles_.size())));
    strategies_.try_emplace(merged.strategy, strategy_text(merged.point.training));
  }
  std::vector<LabelParts> families;
  for (const auto& [family, parts] : parts_) {
    LabelParts& all = families.emplace_back(parts.first);
    all.insert(all.end(), parts.rest.begin(), parts.rest.end());
    all.front().said = Said::always;  // the model
  }
  const Labels names = labels_of(families);
  size_t place = 0;
  for (const auto& [family, parts] : parts_) families_[family] = names.names[place++];
}

LabelParts PlotNames::parts(const MergedPoint& merged, const LabelParts& own) const {
  const FamilyParts& family = parts_.at(merged.family);
  LabelParts parts = family.first;
  parts.insert(parts.end(), own.begin(), own.end());
  parts.insert(parts.end(), family.rest.begin(), family.rest.end());
  return parts;
}

std::string ranks_text(int64_t ranks) { return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s"); }

std::string ranks_text(const MergedPoint& merged) {
  std::string text = ranks_text(merged.point.ranks);
  if (!merged.names_nodes || merged.nodes == 0) return text;
  return text + fmt::format(" on {} node{}{}", merged.nodes, merged.nodes == 1 ? "" : "s",
                            merged.nodes > 1 && merged.ranks_per_node == 0 ? ", uneven" : "");
}

std::string batch_text(int64_t batch, bool is_global) {
  return is_global ? fmt::format("global batch {}", batch) : fmt::format("batch {} per rank", batch);
}

std::string collective_setting_text(const MergedPoint& merged) {
  return fmt::format("{} over {}, {}{}", ranks_text(merged), brief_text("transport", merged.transport),
                     merged.point.collective.dtype, merged.names_machine ? ", " + merged.machine : "");
}

LabelParts collective_setting_parts(const MergedPoint& merged) {
  return {{"ranks", ranks_text(merged)},
          {"type", merged.point.collective.dtype},
          {"transport", merged.transport.empty() ? "" : "over " + brief_text("transport", merged.transport)},
          {"machine", merged.names_machine ? merged.machine : ""}};
}

}  // namespace shardmark
