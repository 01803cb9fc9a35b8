// Choices and points as people name them: options at their defaults are left out, whatever else there is.
// Nothing here throws: what this program does not know keeps all that it says.
#pragma once

#include <string>

#include "schema/point.h"

namespace shardmark {

// Of a choice on this axis (schema/axes.h): "fsdp(shard=gradients)".
std::string brief_text(const std::string& axis, const Choice& choice);
// The same of a choice that is stored as its text.
std::string brief_text(const std::string& axis, const std::string& text);
// "training gpt2(layers=4) fsdp 2 ranks batch 4"; like to_text(point) otherwise.
std::string brief_text(const Point& point);
// The strategy, with what auto became: "auto: fsdp(shard=gradients)".
std::string strategy_text(const TrainingPoint& point);

}  // namespace shardmark
