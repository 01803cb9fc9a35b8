// Rules that leave points out of a suite. A rule is a map of keys to a value or a list; a point that matches
// every key is left out. Choices match by name, or by name and the options that the rule gives.
#pragma once

#include <functional>
#include <vector>

#include "plan/yaml_node.h"
#include "schema/point.h"

namespace shardmark {

using Rule = std::function<bool(const Point&)>;  // of a point as in Suite::points

Rule read_rule(const YamlNode& node);

}  // namespace shardmark
