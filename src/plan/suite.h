// A suite as written in YAML, strictly checked: unknown, duplicate and mistyped keys are errors with file, line and column.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schema/point.h"

namespace shardmark {

// What the command line changes in a suite; empty lists change nothing. Text as a user types it.
struct Overrides {
  std::vector<int64_t> ranks;
  std::vector<std::string> strategies;   // "ddp", "fsdp(shard=gradients)"
  std::vector<std::string> models;
  std::vector<int64_t> batch_sizes;
  std::vector<std::string> optimizers;
  std::vector<std::string> precisions;
  std::optional<int64_t> steps;          // timed steps: sets min_steps and max_steps
  std::optional<int64_t> repeats;
  std::optional<int64_t> seed;
  std::optional<double> time_limit_s;    // per point
};

// The points of a suite, before they are matched with a world: every axis expanded, every choice resolved.
struct Suite {
  std::string name;
  std::string path;
  std::string text;                 // as read
  std::string description;
  int64_t seed = 1;
  std::vector<Point> points;        // in the suite's order, excluded ones left out
  bool shuffle = true;              // run in an order shuffled by the seed
};

// UsageError: "suites/x.yaml:7:12: unknown key 'stratgy' in training; accepted: ...".
Suite read_suite(const std::string& path, const Overrides& overrides = {});
Suite parse_suite(const std::string& text, const std::string& path, const Overrides& overrides = {});

}  // namespace shardmark
