// A suite, read from YAML with strict checks: unknown, duplicate and mistyped keys are errors with file, line
// and column.
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
  // Any other keys of a suite, as typed: "clip_norm=1", "seed=2", "sampling.time_limit=5".
  std::vector<std::string> set;
  std::optional<int64_t> steps;  // timed steps: sets min_steps and max_steps
  std::optional<int64_t> repeats;
  std::optional<double> duration_s;  // per point
};

// The ranks of a point if the suite lists none: all ranks that are started.
inline constexpr int64_t kWorldSize = 0;

// What `accept` asks for. A suite with it tests every node before its points, and ends with a verdict on
// each.
struct Acceptance {
  double pairs_s = 25;                       // for exchanges between pairs of ranks and of nodes
  int64_t storage_bytes = int64_t{1} << 28;  // that each node writes and reads back
  // Where nodes write; empty: the temporary folder of each.
  std::string folder;
  // A study of this suite from a healthy cluster, to compare with; empty: nodes are compared with each other.
  std::string baseline;
};

// Seconds that these tests may take at most.
double longest_tests_s(const Acceptance& accept);

// The points of a suite before they are matched with a world: every axis is expanded and every choice
// resolved. Here `ranks` may be kWorldSize, batch_size may be kLargest, and the batch_size of a
// strong-scaling point is its global batch. make_plan replaces kWorldSize and the global batch by the point's
// own values.
struct Suite {
  std::string name;
  std::string path;
  std::string text;  // the YAML text
  std::string description;
  int64_t seed = 1;
  int64_t repeats = 1;
  // What was most likely not meant, one line each.
  std::vector<std::string> warnings;
  std::vector<Point> points;        // in the order of the suite, without excluded ones
  std::vector<size_t> blocks = {};  // [point], number of its block; empty: all in one block
  int64_t memory_limit_bytes = 0;   // per rank; 0: the device's own limit
  bool shuffle = true;              // run the points in an order shuffled by the seed
  std::optional<Acceptance> accept = {};
};

// Throw UsageError with the place: "suites/x.yaml:7:12: unknown key 'stratgy' in training; accepted: ...".
Suite read_suite(const std::string& path, const Overrides& overrides = {});
Suite parse_suite(const std::string& text, const std::string& path, const Overrides& overrides = {});

}  // namespace shardmark
