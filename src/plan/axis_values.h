// Reads the values of an axis (schema/axes.h) from a suite or from flags.
#pragma once

#include <string>
#include <vector>

#include "plan/yaml_node.h"
#include "schema/axes.h"
#include "strategies/choice_kinds.h"

namespace shardmark {

// The words that an axis of words accepts.
const std::vector<std::string>& words_of(const std::string& key);

// Reads one value or all items of a list. Throws UsageError with the place in the file.
std::vector<AxisValue> read_values(const AxisRow& axis, const YamlNode& node);
// Reads the values of a block, which may also be written as `all` (every word) or as a range of sizes.
std::vector<AxisValue> read_block_values(const AxisRow& axis, const YamlNode& node);
// Parses values as typed on the command line. `flag` is for messages: "--strategy".
std::vector<AxisValue> values_from_flag(const AxisRow& axis, const std::vector<std::string>& texts,
                                        const std::string& flag);
// Converts a choice to the type of the axis's member: the choice itself, or its text.
AxisValue as_value(const AxisRow& axis, const Choice& choice);

}  // namespace shardmark
