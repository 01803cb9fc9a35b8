// The names of points in plots, and which style each strategy has: the same all over a report.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/frame/merged.h"

namespace shardmark {

class PlotNames {
 public:
  explicit PlotNames(const std::vector<MergedPoint>& points);  // collectives are passed over

  // "gpt2, bf16": the model, and whatever else differs between the families of the report.
  const std::string& family(const MergedPoint& merged) const { return families_.at(merged.family); }
  // "ddp", "fsdp(shard=gradients)": options at their defaults are left out.
  const std::string& strategy(const MergedPoint& merged) const { return strategies_.at(merged.strategy); }
  int style(const MergedPoint& merged) const { return styles_.at(merged.strategy); }

 private:
  std::map<std::string, std::string> families_;    // by MergedPoint::family
  std::map<std::string, std::string> strategies_;  // by MergedPoint::strategy
  std::map<std::string, int> styles_;              // by MergedPoint::strategy
};

// "3 ranks", "1 rank"
std::string ranks_text(int64_t ranks);
// "3 ranks on 2 nodes" where the report has as many on other nodes
std::string ranks_text(const MergedPoint& merged);
// "3 ranks over mpi, float32", and the machine where there are several
std::string collective_setting_text(const MergedPoint& merged);

}  // namespace shardmark
