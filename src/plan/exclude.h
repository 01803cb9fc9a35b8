// Rules that exclude points from a suite. A rule is a map from keys to a value or a list, and a point that
// matches every key is excluded. Choices match by name, or by name and the options that the rule gives.
#pragma once

#include <functional>
#include <vector>

#include "plan/yaml_node.h"
#include "schema/point.h"

namespace shardmark {

using Rule = std::function<bool(const Point&)>;  // takes a point as in Suite::points

Rule read_rule(const YamlNode& node);

}  // namespace shardmark
