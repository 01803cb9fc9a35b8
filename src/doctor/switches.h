// Which nodes are attached to which switch, read from a file in the format of Slurm's topology.conf
// (topology/tree).
#pragma once

#include <map>
#include <string>
#include <vector>

namespace shardmark::doctor {

struct Switch {
  std::string name;
  size_t line = 0;                         // line in the file
  std::vector<std::string> nodes = {};     // of a leaf switch
  std::vector<std::string> children = {};  // switches below any other switch
  int parent = -1;                         // index; -1: top of a tree
};

class Switches {
 public:
  Switches() = default;
  Switches(std::string path, std::vector<Switch> all);
  bool empty() const { return all_.empty(); }
  const std::vector<Switch>& all() const { return all_; }  // in the order of the file
  // Indices of the switches above a node, its leaf switch first. Throws UsageError if the file does not name
  // the node. The file may use the short name of a host that calls itself name.domain.
  std::vector<int> above(const std::string& host) const;
  const Switch& leaf_of(const std::string& host) const;

 private:
  std::string path_;
  std::vector<Switch> all_;
  // Index of the leaf switch, by node name.
  std::map<std::string, int> leaf_;
};

// Reads lines "SwitchName=leaf1 Nodes=n[1-16]" and "SwitchName=spine Switches=leaf[1-4]". LinkSpeed is
// ignored, as Slurm does. Throws UsageError with file and line if there is no such file, if a key is unknown,
// if a hostlist does not parse, if a node or switch is named twice, or if a switch is not described or is
// above itself.
Switches read_switches(const std::string& path);

}  // namespace shardmark::doctor
