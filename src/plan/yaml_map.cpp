// Maps with known keys, and the hint for a misspelt word.
#include <fmt/format.h>

#include <algorithm>

#include "plan/yaml_node.h"

namespace shardmark {
namespace {

// Insertions, deletions, replacements and swaps of neighbours that lead from a to b (optimal string
// alignment).
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d.back().back();
}

}  // namespace

std::string accepted_words(const std::string& word, const std::vector<std::string>& accepted) {
  std::string list = fmt::format("accepted: {}", fmt::join(accepted, ", "));
  if (word.size() < 3 || word.size() > 40 || accepted.empty()) return list;
  const auto distance = [&](const std::string& known) { return edit_distance(word, known); };
  const auto nearest = *std::min_element(accepted.begin(), accepted.end(), [&](const auto& a, const auto& b) {
    return distance(a) < distance(b);
  });
  return distance(nearest) <= word.size() / 3 ? "did you mean '" + nearest + "'? " + list : list;
}

YamlMap::YamlMap(const YamlNode& node, const std::string& noun, const std::vector<std::string>& accepted)
    : node_(node), noun_(noun), entries_(node.entries()) {
  for (const auto& entry : entries_)
    if (std::find(accepted.begin(), accepted.end(), entry.key()) == accepted.end())
      throw UsageError(entry.key_place() + "unknown key '" + entry.key() + "' in " + noun + "; " +
                       (entry.key() == "<<" ? "merge keys are not read, an anchor on a value is; " : "") +
                       accepted_words(entry.key(), accepted));
}

const YamlNode* YamlMap::find(const std::string& key) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const YamlNode& entry) { return entry.key() == key; });
  return found == entries_.end() ? nullptr : &*found;
}

const YamlNode& YamlMap::need(const std::string& key) const {
  const YamlNode* found = find(key);
  if (found == nullptr) throw UsageError(node_.place() + noun_ + " needs the key '" + key + "'");
  return *found;
}

}  // namespace shardmark
