// The Environment of a study: where and how it was made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/json_object.h"

namespace shardmark {

// Lists hold one entry per node or rank.
struct Environment {
  std::string command_line;
  std::string revision;    // output of git describe
  std::string suite_text;  // the YAML text that was read
  std::string suite_path;
  std::string started;  // ISO 8601, UTC
  std::string transport;
  int64_t world_ranks = 0;
  int64_t order_seed = 0;  // seed of the shuffled order of points
  int64_t threads_per_rank = 1;
  std::vector<std::string> nodes;       // host name of each node
  std::vector<std::string> devices;     // name of each rank's device
  std::vector<std::string> rank_nodes;  // host name of each rank
  JsonObject versions;                  // library -> version
  JsonObject variables;                 // allow-listed environment variables
  JsonObject facts;                     // cores, memory, processor, peak FLOP/s ...
};

}  // namespace shardmark
