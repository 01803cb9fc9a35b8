// Axes whose values are choices: models, data sources, strategies, optimizers, written as `ddp` or `{fsdp:
// {shard: full}}`. A list among the options is an axis too: {gpt2: {layers: [2, 4]}} is two models.
#pragma once

#include <vector>

#include "plan/yaml_node.h"
#include "strategies/choice_kinds.h"

namespace shardmark {

// Every default filled in, every list expanded.
std::vector<Choice> read_choices(const YamlNode& axis, const ChoiceKind& kind);
// As written, names and options checked but no defaults: for rules that match choices.
std::vector<Choice> read_partial_choices(const YamlNode& axis, const ChoiceKind& kind);
// As typed on the command line: "fsdp(shard=gradients)". flag: "--strategies", for messages.
std::vector<Choice> choices_from_flag(const std::vector<std::string>& texts, const std::string& flag,
                                      const ChoiceKind& kind);
// The same of one, where a list has no place.
Choice choice_from_flag(const std::string& text, const std::string& flag, const ChoiceKind& kind);

}  // namespace shardmark
