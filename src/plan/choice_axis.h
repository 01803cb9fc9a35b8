// Reads axes whose values are choices: models, data sources, strategies, optimizers, written as `ddp` or
// `{fsdp: {shard: full}}`. A list among the options is expanded, too: {gpt2: {layers: [2, 4]}} is two models.
#pragma once

#include <vector>

#include "plan/yaml_node.h"
#include "strategies/choice_kinds.h"

namespace shardmark {

// Reads choices, with every default filled in and every list expanded.
std::vector<Choice> read_choices(const YamlNode& axis, const ChoiceKind& kind);
// Reads choices for rules that match points. Names and options are checked, but defaults are not filled in:
// each choice has the options that are written, in the form that points have them. One without a value is at
// its default, and points leave it out (OptionSpec::is_later).
std::vector<Choice> read_partial_choices(const YamlNode& axis, const ChoiceKind& kind);
// Parses choices as typed on the command line: "fsdp(shard=gradients)". `flag` is for messages:
// "--strategy".
std::vector<Choice> choices_from_flag(const std::vector<std::string>& texts, const std::string& flag,
                                      const ChoiceKind& kind);
// The same for one choice.
Choice choice_from_flag(const std::string& text, const std::string& flag, const ChoiceKind& kind);

}  // namespace shardmark
