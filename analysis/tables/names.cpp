// A new alias is a word here.
#include "analysis/tables/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace shardmark {
namespace {

struct Names {
  std::string_view key;  // or a name: of all its parts
  std::vector<std::string_view> aliases;
  std::vector<std::string_view> before = {};  // keys of tables in older versions
};

const std::vector<Names>& all_names() {
  static const std::vector<Names> all = {
      {"studies", {"study"}},
      {"reference.rates", {}, {"rates"}},
      {"strategies", {"strategy", "speed", "cost", "price"}, {"costs"}},
      {"strategies.accumulation", {}, {"accumulation"}},
      {"strategies.optimizations", {}, {"optimizations"}},
      {"checkpoints", {"checkpoint", "save", "storage"}},
      {"goodput", {"checkpoint_interval", "energy"}},
      {"layouts", {"layout"}},
      {"layouts.sequences", {"sequence", "attention"}, {"sequences"}},
      {"sustained.devices", {}, {"sustained_devices"}},
      {"sustained.ranks", {}, {"sustained_ranks"}},
      {"phases", {"phase", "overlap"}},
      {"phases.communication", {"traffic", "bytes", "operations"}, {"communication"}},
      {"phases.gap", {}, {"gap", "gaps"}},
      {"phases.start", {"start", "startup", "first_step"}},
      {"scaling.weak", {"weak"}, {"weak_scaling"}},
      {"scaling.strong", {"strong", "karp_flatt", "speedup"}, {"strong_scaling"}},
      {"scaling.limits", {"efficiency"}, {"efficiency_limits"}},
      {"scaling_laws", {"laws", "amdahl", "gustafson", "usl", "gunther", "refused_fits"}},
      {"scaling_laws.quality", {}, {"fit_quality"}},
      {"interconnects", {"interconnect", "links"}},
      {"interconnects.ports", {"network", "ports"}},
      {"memory", {"peak_memory", "shares"}},
      {"memory.largest", {"largest_batch", "largest_batches"}, {"largest"}},
      {"collective_fits", {"alpha_beta", "latency", "bandwidth"}},
      {"collective_fits.held_out", {}, {"held_out_collectives"}},
      {"runs", {"train"}},
      {"problems", {"problem", "failed", "failures", "skipped"}, {"findings", "missing", "not_ok"}},
      // Tables of predict and plan.
      {"predictions", {"predicted", "prediction"}},
      {"predicted_layouts", {"layouts", "layout", "3d"}},
      {"all_reduce_overhead", {"overhead", "all_reduce"}},
      {"communication", {"traffic", "bytes", "operations"}},
  };
  return all;
}

bool has_word(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
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
         std::any_of(all_names().begin(), all_names().end(), [&](const Names& names) {
           return (names.key == key || names.key == name) && has_word(names.aliases, word);
         });
}

std::string with_other_names(std::string_view name) {
  std::vector<std::string_view> others;
  for (const Names& names : all_names())
    if (name_of_table(names.key) == name)
      others.insert(others.end(), names.aliases.begin(), names.aliases.end());
  return others.empty() ? std::string(name) : fmt::format("{} ({})", name, fmt::join(others, ", "));
}

std::string table_now(std::string_view old_key) {
  constexpr std::string_view kOldCollective = "collective_";
  for (const Names& names : all_names())
    if (has_word(names.before, old_key)) return std::string(names.key);
  return old_key.starts_with(kOldCollective) && old_key != "collective_fits"
             ? fmt::format("collectives.{}", old_key.substr(kOldCollective.size()))
             : "";
}

}  // namespace shardmark
