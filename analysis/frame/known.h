// What specs/ says about a choice in a study. A study may come from a version that has other models
// and strategies, or other options of them, so nothing here throws.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schema/point.h"
#include "specs/model_table.h"
#include "specs/tokens.h"
#include "strategies/program.h"

namespace shardmark {

specs::SharedTable known_table(const Choice& model);
std::optional<int64_t> known_bytes(const std::string& dtype);  // of an element of a collective
// The tokens of a rank in a dispatch or combine, and the rows that travel. ranks_per_node: 0 for one node.
// Nothing for other operations, and where an option or the type is unknown.
struct KnownTokens {
  int64_t tokens;
  specs::TokenTraffic rows;
};
std::optional<KnownTokens> known_tokens(const Point& point, int64_t ranks_per_node);
std::optional<int64_t> known_master_bytes(const std::string& precision);  // of a weight
std::optional<int64_t> known_optimizer_state(const Choice& optimizer);    // elements per parameter
// A training point with every option that this program knows resolved, and with what auto chose for auto:
// what specs/ can be asked about. Nothing where a word, an option or a number is beyond them.
std::optional<Point> known_point(Point point);
// A step of a training point by formula; nothing where known_point has nothing.
std::optional<strategies::Program> known_program(const Point& point);
// What the gradient of a point of ddp shrinks to on its way, in bytes: its values, without indices, scales,
// ranks; a NaN for other strategies.
double known_value_bytes(const Point& point);
// "fsdp(shard=gradients)" with every option. UsageError: unknown, or options that it does not have.
Choice strategy_from_text(const std::string& text);
// Bytes of each bucket that ddp reduces in a step; nothing for other strategies.
std::vector<int64_t> known_bucket_bytes(const Point& point);

}  // namespace shardmark
