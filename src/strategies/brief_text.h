// Short texts of choices and points, which leave out options at their defaults. Nothing here throws: what
// this version of the program does not know is printed in full.
#pragma once

#include <string>

#include "schema/point.h"

namespace shardmark {

// A choice on this axis (schema/axes.h), for example "fsdp(shard=gradients)".
std::string brief_text(const std::string& axis, const Choice& choice);
// The same for a choice that is stored as text.
std::string brief_text(const std::string& axis, const std::string& text);
// For example "training gpt2(layers=4) fsdp 2 ranks batch 4"; otherwise like to_text(point). The study of
// another program may hold points of an unknown kind.
std::string brief_text(const Point& point);
// The strategy, and what auto became: "auto: fsdp(shard=gradients)".
std::string strategy_text(const TrainingPoint& point);

}  // namespace shardmark
