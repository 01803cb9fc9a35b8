// A block of a suite: the values of its axes, of which every combination is a point.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/suite.h"
#include "plan/yaml_node.h"
#include "schema/axes.h"

namespace shardmark {

struct SuiteBlock {
  std::string place;  // for messages
  Point base;         // its workload, sampling and scaling; the default of every axis
  std::map<std::string, std::vector<AxisValue>> values;  // by the axis's key
};

// Of the top level of a suite: the defaults of ranks, transport and sampling.
SuiteBlock read_defaults(const YamlMap& top);
// The keys of a block, those of every block included.
std::vector<std::string> block_keys(const std::string& workload);
// "training" or "collective". UsageError where a key is unknown, missing, or has a wrong value.
SuiteBlock read_block(const YamlNode& node, const std::string& workload, const SuiteBlock& defaults);
// One of them has both ways to write the batch: UsageError.
void refuse_two_batches(const YamlMap& map);

// The command line over the blocks. UsageError where it names an axis that no block has.
void apply(const Overrides& overrides, std::vector<SuiteBlock>& blocks, const std::string& path);

// UsageError: more points than anybody means, or a value that no operation of the block can have. warnings:
// lists of such values.
std::vector<Point> expand(const SuiteBlock& block, std::vector<std::string>& warnings);

}  // namespace shardmark
