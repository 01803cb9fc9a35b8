// The aliases of tables: a new alias is a word here.
#include "analysis/tables/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace shardmark {
namespace {

constexpr std::string_view kCollective = "collective_";

struct Names {
  std::string_view key;
  std::vector<std::string_view> others;
};

const std::vector<Names>& all_names() {
  static const std::vector<Names> all = {
      {"studies", {"study"}},
      {"strategies", {"strategy", "speed"}},
      {"costs", {"cost", "price"}},
      {"goodput", {"checkpoint_interval", "energy"}},
      {"sequences", {"sequence", "attention"}},
      {"phases", {"phase", "overlap"}},
      {"layouts", {"layout"}},
      {"gap", {"gaps"}},
      {"weak_scaling", {"weak"}},
      {"strong_scaling", {"strong", "karp_flatt", "speedup"}},
      {"efficiency_limits", {"efficiency"}},
      {"scaling_laws", {"laws", "amdahl", "gustafson", "usl", "gunther", "refused_fits"}},
      {"interconnects", {"interconnect", "links"}},
      {"all_reduce_overhead", {"overhead", "all_reduce"}},
      {"memory", {"peak_memory", "shares"}},
      {"largest", {"largest_batch", "largest_batches"}},
      {"communication", {"traffic", "bytes", "operations"}},
      {"collective_fits", {"alpha_beta", "latency", "bandwidth"}},
      {"not_ok", {"failed", "failures", "skipped"}},
      {"runs", {"train"}},
      {"predictions", {"predicted", "prediction"}},
      {"predicted_layouts", {"layouts", "layout", "3d"}},
  };
  return all;
}

const std::vector<std::string_view>& others_of(std::string_view key) {
  static const std::vector<std::string_view> none;
  const auto found = std::find_if(all_names().begin(), all_names().end(),
                                  [&](const Names& names) { return names.key == key; });
  return found == all_names().end() ? none : found->others;
}

// "collective_all_reduce_2": the table of one operation and rank count.
bool is_of_collective(std::string_view key, std::string_view operation) {
  if (!key.starts_with(kCollective)) return false;
  const std::string_view rest = key.substr(kCollective.size());
  const size_t ranks = rest.rfind('_');
  if (ranks == std::string_view::npos ||
      rest.find_first_not_of("0123456789", ranks + 1) != std::string_view::npos)
    return false;
  return operation == "collectives" || operation == rest.substr(0, ranks);
}

}  // namespace

bool is_called(std::string_view key, std::string_view word) {
  const std::vector<std::string_view>& others = others_of(key);
  return key == word || std::find(others.begin(), others.end(), word) != others.end() ||
         is_of_collective(key, word);
}

std::string with_other_names(const std::string& key) {
  const std::vector<std::string_view>& others = others_of(key);
  return others.empty() ? key : fmt::format("{} ({})", key, fmt::join(others, ", "));
}

}  // namespace shardmark
