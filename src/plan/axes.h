// A block of a suite: the values of each of its axes. Every combination of the values is a point.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/suite.h"
#include "plan/yaml_node.h"
#include "schema/axes.h"

namespace shardmark {

struct SuiteBlock {
  std::string place;  // place in the file, for messages
  // The workload, sampling and scaling of all points of the block, and the value of every axis that is not
  // listed.
  Point base;
  std::map<std::string, std::vector<AxisValue>> values;  // by the axis's key
};

// Reads the top level of a suite: the defaults of ranks, transport, environment and sampling for all blocks.
SuiteBlock read_defaults(const YamlMap& top);
// The keys that a block of this workload accepts, including the axes of both workloads.
std::vector<std::string> block_keys(const std::string& workload);
// Reads a block; `workload` is "training" or "collective". Throws UsageError if a key is unknown or missing,
// or has a wrong value.
SuiteBlock read_block(const YamlNode& node, const std::string& workload, const SuiteBlock& defaults);
// Throws UsageError if the map gives both batch_size and global_batch.
void refuse_two_batches(const YamlMap& map);

// Reads the keys of `sampling` into a copy of the given one; values that the node lacks stay.
Sampling read_sampling(const YamlNode& node, Sampling sampling);
const std::vector<std::string>& sampling_keys();

// Replaces values of the blocks by those that --set names, a map of the axes of both workloads and
// `sampling`. Throws UsageError if it names an axis that no block has.
void apply(const YamlMap& set, std::vector<SuiteBlock>& blocks, const std::string& path);
// Replaces values of the blocks by those of the command line. Throws UsageError if it names an axis that no
// block has.
void apply(const Overrides& overrides, std::vector<SuiteBlock>& blocks, const std::string& path);

// Returns the points of a block. Throws UsageError if there are more points than anybody can mean, or if the
// single value of an axis acts on no operation of the block. A list of such values is merged, with a warning.
std::vector<Point> expand(const SuiteBlock& block, std::vector<std::string>& warnings);

}  // namespace shardmark
