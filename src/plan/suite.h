// A suite as written in YAML, strictly checked: unknown, duplicate and mistyped keys are errors with file,
// line and column.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schema/point.h"

namespace shardmark {

// What the command line changes in a suite; empty lists change nothing.
struct Overrides {
  std::map<std::string, std::vector<std::string>> axes;  // by key, as typed: {"strategy", {"ddp", "zero3"}}
  std::optional<int64_t> steps;                          // timed steps: sets min_steps and max_steps
  std::optional<int64_t> repeats;
  std::optional<int64_t> seed;
  std::optional<double> time_limit_s;  // per point
  std::optional<double> duration_s;    // per point
};

// Ranks of a point whose suite lists none: the whole world, whatever its size.
inline constexpr int64_t kWorldSize = 0;

// The points of a suite, before they are matched with a world: every axis expanded, every choice resolved.
// Here `ranks` may be kWorldSize, batch_size kLargest, and the batch_size of a strong-scaling point is its
// global batch: make_plan gives both their values.
struct Suite {
  std::string name;
  std::string path;
  std::string text;  // as read
  std::string description;
  int64_t seed = 1;
  int64_t repeats = 1;
  std::vector<std::string> warnings;  // of what was most likely not meant, a line each
  std::vector<Point> points;          // in the suite's order, excluded ones left out
  std::vector<size_t> blocks = {};    // [point]: the number of its block; none: all in one
  int64_t memory_limit_bytes = 0;     // of a rank; 0: the device's own
  bool shuffle = true;                // run in an order shuffled by the seed
};

// UsageError: "suites/x.yaml:7:12: unknown key 'stratgy' in training; accepted: ...".
Suite read_suite(const std::string& path, const Overrides& overrides = {});
Suite parse_suite(const std::string& text, const std::string& path, const Overrides& overrides = {});

}  // namespace shardmark
