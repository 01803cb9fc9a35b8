// The heartbeat pages of the ranks of a node, and snapshots of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/watch/heartbeat.h"

namespace shardmark {

// A page at the time of a snapshot, with ages instead of times. It is sent to other nodes byte for byte.
struct RankState {
  struct Operation {
    int64_t number = 0;
    char name[24] = {};
    double bytes = 0;
    double age_s = 0;
    int64_t peer = 0;  // from 1; 0: none
  };
  int64_t rank = 0;
  int64_t pid = 0;
  char process = '?';  // as in /proc/pid/stat; '-': gone; '?': unknown
  // The rank's node answers. If not, only the rank number is known.
  bool heard = false;
  bool answers = false;  // its watchdog polls
  double beat_age_s = 0;
  char point[192] = {};  // empty: nobody waits for this rank
  int64_t num_points = 0;
  char stage[40] = {};
  int64_t num_stages = 0;
  int64_t step = 0;
  int64_t block = 0, micro_batch = 0, pipeline_stage = 0;  // from 1; 0: none
  bool meets = false, rests = false;
  Operation started, completed, awaited;

  bool is_inside() const { return point[0] != '\0'; }
  bool is_stopped() const { return process == 'T' || process == 't'; }
  bool is_gone() const { return process == 'Z' || process == 'X' || process == '-'; }
};

// Which ranks are on which node. Nodes are numbered in the order of their lowest ranks.
struct NodeMap {
  std::vector<int> node_of;                // [rank]
  std::vector<std::string> names;          // [node]
  std::vector<std::vector<int>> ranks_of;  // [node], ascending
  std::string name_of(int rank) const {
    return names[static_cast<size_t>(node_of[static_cast<size_t>(rank)])];
  }
};
// `hosts` has the host name of each rank, `first` the lowest rank that shares memory with it.
NodeMap make_node_map(const std::vector<std::string>& hosts, const std::vector<int>& first);

// What /proc/pid/stat says of a process in this PID namespace: its state letter ('-' if it does not exist)
// and its parent.
struct ProcessStat {
  char state = '-';
  int64_t parent = -1;
};
ProcessStat process_stat(int64_t pid);
char process_state(int64_t pid);
int64_t own_pid_space();

// The pages of one node, in rank order. The ranks of the node share this memory.
class NodeHeartbeats {
 public:
  using ProcessState = std::function<char(int64_t pid)>;
  NodeHeartbeats(std::shared_ptr<HeartbeatPage[]> pages, std::vector<int> ranks, int own_rank,
                 ProcessState process_of = process_state);

  HeartbeatPage& own() const { return pages_[own_]; }
  const std::vector<int>& ranks() const { return ranks_; }
  // Seconds since the last beat of any rank inside a configuration; -1 if none is inside one.
  double least_age_s(double now_s) const;
  // Takes a snapshot. A rank does not answer if its watchdog has not polled for silent_s, or if its process
  // is stopped or gone.
  std::vector<RankState> read(double now_s, double silent_s) const;

 private:
  std::shared_ptr<HeartbeatPage[]> pages_;
  std::vector<int> ranks_;
  size_t own_;
  ProcessState process_of_;
};

}  // namespace shardmark
