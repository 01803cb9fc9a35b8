// A new alias is a word here.
#include "analysis/tables/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace shardmark {
namespace {

struct Names {
  std::string_view key;
  std::vector<std::string_view> others;
};

// Of a name, or of one key.
const std::vector<Names>& aliases() {
  static const std::vector<Names> all = {
      {"studies", {"study"}},
      {"strategies", {"strategy", "speed", "cost", "price"}},
      {"goodput", {"checkpoint_interval", "energy"}},
      {"phases", {"phase", "overlap"}},
      {"phases.communication", {"traffic", "bytes", "operations"}},
      {"communication", {"traffic", "bytes", "operations"}},  // of plan
      {"layouts", {"layout"}},
      {"layouts.sequences", {"sequence", "attention"}},
      {"memory", {"peak_memory", "shares"}},
      {"memory.largest", {"largest_batch", "largest_batches"}},
      {"scaling.weak", {"weak"}},
      {"scaling.strong", {"strong", "karp_flatt", "speedup"}},
      {"scaling.limits", {"efficiency"}},
      {"scaling_laws", {"laws", "amdahl", "gustafson", "usl", "gunther", "refused_fits"}},
      {"interconnects", {"interconnect", "links"}},
      {"all_reduce_overhead", {"overhead", "all_reduce"}},
      {"collective_fits", {"alpha_beta", "latency", "bandwidth"}},
      {"problems", {"problem", "failed", "failures", "skipped"}},
      {"runs", {"train"}},
      {"predictions", {"predicted", "prediction"}},
      {"predicted_layouts", {"layouts", "layout", "3d"}},
  };
  return all;
}

// Tables of older versions, by the key that has their rows now.
const std::vector<Names>& old_names() {
  static const std::vector<Names> all = {
      {"strategies", {"costs"}},
      {"strategies.accumulation", {"accumulation"}},
      {"strategies.optimizations", {"optimizations"}},
      {"phases.communication", {"communication"}},
      {"phases.gap", {"gap"}},
      {"layouts.sequences", {"sequences"}},
      {"memory.largest", {"largest"}},
      {"scaling.weak", {"weak_scaling"}},
      {"scaling.strong", {"strong_scaling"}},
      {"scaling.limits", {"efficiency_limits"}},
      {"scaling_laws.quality", {"fit_quality"}},
      {"sustained.devices", {"sustained_devices"}},
      {"sustained.ranks", {"sustained_ranks"}},
      {"reference.rates", {"rates"}},
      {"collective_fits.held_out", {"held_out_collectives"}},
      {"problems", {"findings", "missing", "not_ok"}},
  };
  return all;
}

bool holds_word(const Names& names, std::string_view word) {
  return std::find(names.others.begin(), names.others.end(), word) != names.others.end();
}

// Whether the table holds one operation, on any number of ranks: "collectives.all_reduce_2".
bool is_of_operation(std::string_view key, std::string_view operation) {
  constexpr std::string_view kCollectives = "collectives.";
  return key.starts_with(kCollectives) &&
         key.substr(kCollectives.size(), key.rfind('_') - kCollectives.size()) == operation;
}

}  // namespace

std::string_view name_of_table(std::string_view key) { return key.substr(0, key.find('.')); }

bool is_called(std::string_view key, std::string_view word) {
  const std::string_view name = name_of_table(key);
  return key == word || name == word || is_of_operation(key, word) ||
         std::any_of(aliases().begin(), aliases().end(), [&](const Names& names) {
           return (names.key == key || names.key == name) && holds_word(names, word);
         });
}

std::string with_other_names(std::string_view name) {
  std::vector<std::string_view> others;
  for (const Names& names : aliases())
    if (name_of_table(names.key) == name)
      others.insert(others.end(), names.others.begin(), names.others.end());
  return others.empty() ? std::string(name) : fmt::format("{} ({})", name, fmt::join(others, ", "));
}

std::string table_now(std::string_view old_key) {
  constexpr std::string_view kOldCollective = "collective_";
  for (const Names& names : old_names())
    if (holds_word(names, old_key)) return std::string(names.key);
  return old_key.starts_with(kOldCollective) && old_key != "collective_fits"
             ? fmt::format("collectives.{}", old_key.substr(kOldCollective.size()))
             : "";
}

}  // namespace shardmark
