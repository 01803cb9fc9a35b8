// See labels.h.
#include "analysis/table/labels.h"

#include "base/error.h"

namespace shardmark {

void Labels::add(const Choice& choice, const OptionTable& defaults) {
  const auto [found, is_new] = seen_.try_emplace(choice.name, Seen{choice.options, {}});
  Seen& seen = found->second;
  for (const OptionSpec& spec : defaults)
    if (choice.options.contains(spec.key) && choice.options.at(spec.key) != spec.default_value)
      seen.shown.insert(spec.key);
  if (is_new || seen.first == choice.options) return;
  single_ = false;
  for (const auto& [key, value] : choice.options)
    if (!seen.first.contains(key) || seen.first.at(key) != value) seen.shown.insert(key);
  for (const auto& [key, value] : seen.first)
    if (!choice.options.contains(key)) seen.shown.insert(key);
}

std::string Labels::label(const Choice& choice) const {
  const auto found = seen_.find(choice.name);
  ENSURE(found != seen_.end(), "label of a choice that was not added: " + choice.name);
  if (is_single()) return to_text(choice);
  Choice brief{choice.name};
  for (const auto& [key, value] : choice.options)
    if (found->second.shown.count(key) > 0) brief.options[key] = value;
  return to_text(brief);
}

std::string Labels::legend() const {
  std::string legend;
  if (is_single()) return legend;
  for (const auto& [name, seen] : seen_) {
    Choice shared{name};
    for (const auto& [key, value] : seen.first)
      if (seen.shown.count(key) == 0) shared.options[key] = value;
    if (!shared.options.empty()) legend += (legend.empty() ? "" : "; ") + to_text(shared);
  }
  return legend;
}

}  // namespace shardmark
