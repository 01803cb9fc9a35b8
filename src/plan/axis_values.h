// What an axis (schema/axes.h) accepts, read from a suite or a flag.
#pragma once

#include <string>
#include <vector>

#include "plan/yaml_node.h"
#include "schema/axes.h"
#include "strategies/choice_kinds.h"

namespace shardmark {

// Of an axis of words: those that it accepts.
const std::vector<std::string>& words_of(const std::string& key);

// The value, or all items of the list. UsageError with the place.
std::vector<AxisValue> read_values(const AxisRow& axis, const YamlNode& node);
// The values of a block: also what stands for several of them, `all` words or a range of sizes.
std::vector<AxisValue> read_block_values(const AxisRow& axis, const YamlNode& node);
// As typed on the command line. flag: "--strategies", for messages.
std::vector<AxisValue> values_from_flag(const AxisRow& axis, const std::vector<std::string>& texts,
                                        const std::string& flag);
// A choice as the axis's member holds it: itself, or its text.
AxisValue as_value(const AxisRow& axis, const Choice& choice);

}  // namespace shardmark
