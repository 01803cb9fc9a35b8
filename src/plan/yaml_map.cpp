// Maps with known keys, and the hint for a misspelt word.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "plan/yaml_node.h"

namespace shardmark {
namespace {

// Insertions, deletions and replacements that lead from a to b (Levenshtein).
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string accepted_words(const std::string& word, const std::vector<std::string>& accepted) {
  const std::string list = fmt::format("accepted: {}", fmt::join(accepted, ", "));
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
