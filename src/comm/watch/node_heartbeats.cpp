// Reads the pages, and what /proc says about the processes that write them.
#include "comm/watch/node_heartbeats.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

namespace shardmark {
namespace {

template <size_t kSize>
void copy(char (&to)[kSize], const std::string& from) {
  from.copy(to, kSize - 1);
}

RankState::Operation read(const HeartbeatPage::Operation& note, double now_s) {
  RankState::Operation operation;
  operation.number = note.number.load(std::memory_order_relaxed);
  copy(operation.name, note.name.get());
  operation.bytes = note.bytes.load(std::memory_order_relaxed);
  operation.age_s = now_s - note.at_s.load(std::memory_order_relaxed);
  operation.peer = note.peer.load(std::memory_order_relaxed);
  return operation;
}

}  // namespace

NodeMap make_node_map(const std::vector<std::string>& hosts, const std::vector<int>& first) {
  NodeMap node_map;
  std::map<int, int> node_of_first;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto [found, is_new] = node_of_first.emplace(first[rank], static_cast<int>(node_map.names.size()));
    if (is_new) {
      node_map.names.push_back(hosts[rank]);
      node_map.ranks_of.emplace_back();
    }
    node_map.node_of.push_back(found->second);
    node_map.ranks_of[static_cast<size_t>(found->second)].push_back(static_cast<int>(rank));
  }
  return node_map;
}

// A process name may contain spaces and brackets: "4711 (a name) with) spaces) T 1 ...". So the fields are
// read after the last ") ".
ProcessStat process_stat(int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  ProcessStat stat;
  if (const size_t name_end = text.rfind(") "); name_end != std::string::npos)
    std::istringstream(text.substr(name_end + 2)) >> stat.state >> stat.parent;
  return stat;
}

char process_state(int64_t pid) { return process_stat(pid).state; }

int64_t own_pid_space() {
  struct stat about {};
  return ::stat("/proc/self/ns/pid", &about) == 0 ? static_cast<int64_t>(about.st_ino) : 0;
}

NodeHeartbeats::NodeHeartbeats(std::shared_ptr<HeartbeatPage[]> pages, std::vector<int> ranks, int own_rank,
                               ProcessState process_of)
    : pages_(std::move(pages)),
      ranks_(std::move(ranks)),
      own_(static_cast<size_t>(std::find(ranks_.begin(), ranks_.end(), own_rank) - ranks_.begin())),
      process_of_(std::move(process_of)) {}

double NodeHeartbeats::least_age_s(double now_s) const {
  double least = -1;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (pages_[i].point.get().empty()) continue;
    const double age = std::max(0.0, now_s - pages_[i].at_s.load(std::memory_order_acquire));
    if (least < 0 || age < least) least = age;
  }
  return least;
}

std::vector<RankState> NodeHeartbeats::read(double now_s, double silent_s) const {
  std::vector<RankState> states;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const HeartbeatPage& page = pages_[i];
    RankState state;
    state.rank = ranks_[i];
    state.pid = page.pid;
    const bool sees_pid = page.pid_space == own().pid_space;
    state.process = sees_pid ? process_of_(state.pid) : '?';
    state.heard = true;
    state.answers = now_s - page.looked_s < silent_s && !state.is_stopped() && !state.is_gone();
    copy(state.point, page.point.get());
    // Read after the name of the configuration: see begin_point().
    state.beat_age_s = now_s - page.at_s.load(std::memory_order_acquire);
    state.num_points = page.num_points;
    copy(state.stage, page.stage.get());
    state.num_stages = page.num_stages;
    state.step = page.step;
    state.block = page.block;
    state.micro_batch = page.micro_batch;
    state.pipeline_stage = page.pipeline_stage;
    state.meets = page.waits == HeartbeatPage::kMeets;
    state.rests = page.waits == HeartbeatPage::kRests;
    state.started = shardmark::read(page.started, now_s);
    state.completed = shardmark::read(page.completed, now_s);
    state.awaited = shardmark::read(page.awaited, now_s);
    states.push_back(state);
  }
  return states;
}

}  // namespace shardmark
