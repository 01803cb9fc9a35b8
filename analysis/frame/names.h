// The names of points, and which style each strategy has in plots: the same all over a report.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/frame/labels.h"
#include "analysis/frame/merged.h"
#include "analysis/table/table.h"

namespace shardmark {

class PlotNames {
 public:
  explicit PlotNames(const std::vector<MergedPoint>& points);  // collectives are passed over

  // "gpt2(width=64), bf16": the model, and whatever else differs between the families of the report.
  const std::string& family(const MergedPoint& merged) const { return families_.at(merged.family); }
  // "ddp", "fsdp(shard=gradients)": options at their defaults are left out.
  const std::string& strategy(const MergedPoint& merged) const { return strategies_.at(merged.strategy); }
  int style(const MergedPoint& merged) const { return styles_.at(merged.strategy); }
  // For the name of a thing that is about points of this family: the model and the layout, then `own` (its
  // batch and ranks), then the rest.
  LabelParts parts(const MergedPoint& merged, const LabelParts& own) const;

 private:
  struct FamilyParts {
    LabelParts first, rest;
  };
  static FamilyParts parts_of(const MergedPoint& merged, const std::vector<Column>& columns,
                              const std::vector<Cell>& cells);

  std::map<std::string, FamilyParts> parts_;       // by MergedPoint::family
  std::map<std::string, std::string> families_;    // by MergedPoint::family
  std::map<std::string, std::string> strategies_;  // by MergedPoint::strategy
  std::map<std::string, int> styles_;              // by MergedPoint::strategy
};

// "fused kernels", "accumulation 4": what the cell of a column says by itself; "" where it says nothing.
std::string cell_in_words(const Column& column, const Cell& cell);
// The same as a part of a label: a choice with its options.
LabelPart part_of(const Column& column, const Cell& cell, Said said = Said::once);

// "3 ranks", "1 rank"
std::string ranks_text(int64_t ranks);
// "3 ranks on 2 nodes" where the report has as many on other nodes
std::string ranks_text(const MergedPoint& merged);
std::string batch_text(int64_t batch, bool is_global);  // "batch 4 per rank", "global batch 16"
// "3 ranks over mpi, float32", and the machine where there are several
std::string collective_setting_text(const MergedPoint& merged);
// The same in parts.
LabelParts collective_setting_parts(const MergedPoint& merged);

}  // namespace shardmark
