// What other processes use of a node's processors, measured before its ranks compute. All functions are pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "doctor/facts.h"

namespace shardmark::doctor {

// How busy the processors are that the ranks of a node may use.
struct NodeLoad {
  std::string node;
  int64_t processors = 0;
  // False if several of the processors are hardware threads of one core.
  bool are_cores = true;
  double others = 0;          // number of processors that other processes keep busy
  double stolen = 0;          // number that the hypervisor gives to other virtual machines
  double average = kUnknown;  // the node's load average, or kUnknown
  // Ranks that get too few processors, or whose memory bandwidth and clock are affected.
  std::vector<int> disturbed;

  double taken() const { return others + stolen; }
};

// Leaves out nodes for which the load of some processors of the ranks is unknown.
std::vector<NodeLoad> node_loads(const std::vector<RankFacts>& world);

// For example "other processes use 1.6 of 2 cores (load 7.7)".
std::string to_text(const NodeLoad& load);

nlohmann::ordered_json to_json(const std::vector<NodeLoad>& loads);

}  // namespace shardmark::doctor
