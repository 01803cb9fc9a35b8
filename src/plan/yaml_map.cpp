// YAML maps whose accepted keys are known: any other key is an error.
#include <algorithm>

#include "plan/yaml_node.h"

namespace shardmark {
YamlMap::YamlMap(const YamlNode& node, const std::string& noun, const std::vector<std::string>& accepted)
    : node_(node), noun_(noun), entries_(node.entries()) {
  for (const auto& entry : entries_)
    if (std::find(accepted.begin(), accepted.end(), entry.key()) == accepted.end())
      throw UsageError(
          entry.key_place() + "unknown key '" + entry.key() + "' in " + noun + "; " +
          (entry.key() == "<<" ? "merge keys are not supported, an anchor on a value is; " : "") +
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
