// One rank's part in detecting that nothing moves: what it does at each poll, without threads or clocks.
//
// Note [HangMonitor]. Ranks of a node read each other's pages (the heartbeats), so any of them can speak for
// the node; its lowest rank that answers does. Nodes exchange nothing while their ranks move. When no rank of
// a node has moved for the timeout, its speaker asks the other nodes for their heartbeats: their first ranks,
// then, where no answer came, all their ranks. Where nothing moves anywhere it says what it found and the job
// ends; where something does, it asks again when that has stood still for the timeout. Node 0 asks first.
// Every other node gives it and the nodes between a head start, and leaves the asking to a node that has
// asked it. So there is one message, n questions of n nodes at a time, and no node that must be alive.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "comm/watch/diagnosis.h"
#include "comm/watch/node_heartbeats.h"

namespace shardmark {

// How watchdogs of different nodes talk: a few bytes now and then, lost where the receiver does not answer.
class Channel {
 public:
  struct Message {
    int from = 0;  // rank
    std::string bytes;
  };
  virtual ~Channel() = default;
  virtual void send(int rank, const std::string& bytes) = 0;  // never waits for the receiver
  virtual std::optional<Message> receive() = 0;               // what has arrived, if anything has
};

struct HangMonitorOptions {
  double timeout_s = 600;
  double answer_s = 0.9;      // that others have, twice; the last wait goes on while answers come in
  double head_start_s = 2.0;  // of node 0 before node 1, of both before the others
  double silent_s = 2.5;      // a rank whose watchdog has not looked for so long does not answer
  double record_s = 1.5;      // that rank 0 has to write down what another rank found
};

class HangMonitor {
 public:
  // heartbeats: of this node. Everything must outlive it.
  HangMonitor(const NodeHeartbeats& heartbeats, const NodeMap& node_map, int rank, Channel& channel,
              const HangMonitorOptions& options);

  struct Order {
    std::optional<Diagnosis> say;       // to whoever reads stderr
    std::optional<std::string> record;  // the reason, on rank 0
    bool end = false;                   // the job, after that
  };
  Order look(double now_s);
  bool is_busy() const { return inquiry_ || end_s_; }  // looks again soon

 private:
  using Answers = std::map<int, std::vector<RankState>>;  // by node
  struct Inquiry {
    char number = 0;  // so that nobody takes an answer to an earlier one for one to this
    double began_s = 0;
    double heard_s = 0;  // the latest first answer of a node
    bool asked_all = false;
    Answers answers;
  };
  std::optional<std::string> read_messages(double now_s);
  bool speaks(double now_s) const;
  double due_s(double now_s) const;  // when this node may ask; infinite while it moves
  Inquiry& ask(double now_s);
  void ask_again(Inquiry& inquiry);
  static void take_answer(Inquiry& inquiry, int node, const std::string& bytes, double now_s);
  bool is_answered(const Inquiry& inquiry, double now_s) const;
  Order judge(const Answers& answers, double now_s);
  Order speak(const Diagnosis& finding, bool rank_0_answers, double now_s);

  const NodeHeartbeats& heartbeats_;
  const NodeMap& node_map_;
  int rank_, node_;
  Channel& channel_;
  HangMonitorOptions options_;
  std::optional<Inquiry> inquiry_;
  char num_inquiries_ = 0;
  double not_before_s_ = 0;      // somebody moves, or a node before this one asks
  std::optional<double> end_s_;  // has spoken
};

}  // namespace shardmark
