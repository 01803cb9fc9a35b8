// A block of a suite as axes: lists of values, of which every combination is a point.
#pragma once

#include <string>
#include <vector>

#include "plan/suite.h"
#include "plan/yaml_node.h"

namespace shardmark {

// What every block has; the top level of a suite gives the defaults.
struct CommonAxes {
  std::string place;  // of the block, for messages
  std::vector<int64_t> ranks = {kWorldSize};
  std::vector<std::string> transports = {""};  // "": by the device
  Sampling sampling;
};

struct TrainingAxes : CommonAxes {
  std::vector<Choice> models;
  std::vector<Choice> data;
  std::vector<Choice> strategies;
  std::vector<Choice> optimizers;
  std::vector<std::string> precisions = {"fp32"};
  std::vector<std::string> reduce_dtypes = {"same"};
  std::vector<double> clip_norms = {0};
  std::vector<int64_t> checkpointings = {0};
  std::vector<int64_t> accumulations = {1};
  std::vector<int64_t> batches;  // per rank (weak), or of all ranks (strong)
  std::string scaling = "weak";
};

struct CollectiveAxes : CommonAxes {
  std::vector<std::string> operations;
  std::vector<std::string> dtypes = {"float32"};
  std::vector<std::string> reductions = {"sum"};  // for operations that reduce
  std::vector<int64_t> sizes;                     // bytes
  std::vector<bool> in_place = {true};            // for operations that have such a form
};

// Reads the common keys that are present over the ones given.
CommonAxes read_common(const YamlMap& map, CommonAxes axes);
TrainingAxes read_training(const YamlNode& block, const CommonAxes& defaults);
// What a training block may hold, and its reader: the keys that are present over the axes given.
const std::vector<std::string>& training_keys();
TrainingAxes read_training_keys(const YamlMap& map, TrainingAxes axes);
CollectiveAxes read_collective(const YamlNode& block, const CommonAxes& defaults);

// The command line over the blocks. UsageError where it names an axis that no block has.
void apply(const Overrides& overrides, std::vector<TrainingAxes>& training,
           std::vector<CollectiveAxes>& collectives, const std::string& path);

std::vector<Point> expand(const TrainingAxes& axes);
std::vector<Point> expand(const CollectiveAxes& axes);

}  // namespace shardmark
