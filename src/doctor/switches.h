// Which nodes hang on which switch: read from a file in the form of Slurm's topology.conf (topology/tree).
#pragma once

#include <map>
#include <string>
#include <vector>

namespace shardmark::doctor {

struct Switch {
  std::string name;
  size_t line = 0;                         // of the file
  std::vector<std::string> nodes = {};     // of a leaf
  std::vector<std::string> children = {};  // switches, of any other
  int parent = -1;                         // index; -1: a root
};

class Switches {
 public:
  Switches() = default;
  Switches(std::string path, std::vector<Switch> all);
  bool empty() const { return all_.empty(); }
  const std::vector<Switch>& all() const { return all_; }  // as in the file
  // Switches above a node, its leaf first: indices. UsageError: the file does not name the node. A file may
  // call a node by its name alone where the host says name.domain.
  std::vector<int> above(const std::string& host) const;
  const Switch& leaf_of(const std::string& host) const;

 private:
  std::string path_;
  std::vector<Switch> all_;
  std::map<std::string, int> leaf_;  // by node
};

// Lines "SwitchName=leaf1 Nodes=n[1-16]" and "SwitchName=spine Switches=leaf[1-4]"; LinkSpeed is passed over,
// as Slurm does. UsageError by file and line: no such file, another key, a hostlist that does not parse, a
// node or switch that is named twice, a switch that nothing describes or that is above itself.
Switches read_switches(const std::string& path);

}  // namespace shardmark::doctor
