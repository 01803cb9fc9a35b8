// What other processes use of the processors of a node, measured before its ranks compute. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "doctor/facts.h"

namespace shardmark::doctor {

// How busy the processors are that the ranks of a node may run on.
struct NodeLoad {
  std::string node;
  int64_t processors = 0;
  bool are_cores = true;       // else several processors are hardware threads of one core
  double others = 0;           // of them, kept busy by other processes
  double stolen = 0;           // of them, given to other virtual machines by the hypervisor
  double average = kUnknown;   // the node's load average; kUnknown
  std::vector<int> disturbed;  // ranks that get too few processors, or share what all of a node share

  double taken() const { return others + stolen; }
};

// A node that could not be measured, or not all processors of its ranks, is left out.
std::vector<NodeLoad> node_loads(const std::vector<RankFacts>& world);

// "other processes use 1.6 of 2 cores (load 7.7)"
std::string to_text(const NodeLoad& load);

nlohmann::ordered_json to_json(const std::vector<NodeLoad>& loads);

}  // namespace shardmark::doctor
