// One rank's part in detecting a hang of the job: what its watchdog does at each poll. There are no threads
// or clocks in here, so that tests can play any sequence of events.
//
// Note [HangMonitor]. The ranks of a node read each other's heartbeat pages, so any of them can speak for the
// node; the lowest rank that answers does. Nodes exchange no messages while their ranks make progress. When
// no rank of a node has made progress for the timeout, its speaker asks the other nodes for their heartbeats:
// first the lowest rank of each node, then, if no answer came, all other ranks of that node. If there is no
// progress anywhere, the speaker prints what it found, and the job ends. If some rank has made progress, the
// speaker asks again after that rank, too, has stood still for the timeout. Node 0 asks first. Every other
// node gives the nodes before it a head start, and does not ask for itself if a node before it has asked. So
// a hang yields one message on stderr, n questions go to n nodes at a time, and no particular node has to be
// alive.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "comm/watch/diagnosis.h"
#include "comm/watch/node_heartbeats.h"

namespace shardmark {

// How the watchdogs of different nodes exchange messages: a few bytes now and then. A message is lost if the
// receiver does not answer.
class Channel {
 public:
  struct Message {
    int from = 0;  // rank
    std::string bytes;
  };
  virtual ~Channel() = default;
  virtual void send(int rank, const std::string& bytes) = 0;  // never waits for the receiver
  virtual std::optional<Message> receive() = 0;               // the next message, if any has arrived
};

struct HangMonitorOptions {
  double timeout_s = 600;
  // Time that the other nodes have to answer, granted twice (the lowest rank, then all ranks of the node).
  // The second wait goes on while answers come in.
  double answer_s = 0.9;
  // Head start of node 0 before node 1, and of these two before the others.
  double head_start_s = 2.0;
  // A rank whose watchdog has not looked for this long counts as not answering.
  double silent_s = 2.5;
  // Time that rank 0 gets to record what another rank found, before the job ends.
  double record_s = 1.5;
};

class HangMonitor {
 public:
  // `heartbeats` are those of this node. All arguments must outlive this object.
  HangMonitor(const NodeHeartbeats& heartbeats, const NodeMap& node_map, int rank, Channel& channel,
              const HangMonitorOptions& options);

  struct Order {
    std::optional<Diagnosis> say;       // print this to stderr
    std::optional<std::string> record;  // record this reason (on rank 0)
    bool end = false;                   // end the job after that
  };
  Order look(double now_s);
  bool is_busy() const { return inquiry_ || end_s_; }  // poll more often

 private:
  using Answers = std::map<int, std::vector<RankState>>;  // [node]
  struct Inquiry {
    // Distinguishes answers to this inquiry from late answers to an earlier one.
    char number = 0;
    double began_s = 0;
    double heard_s = 0;  // when the latest first answer of a node came
    bool asked_all = false;
    Answers answers;
  };
  std::optional<std::string> read_messages(double now_s);
  bool speaks(double now_s) const;
  // When this node may ask; infinity while one of its ranks makes progress.
  double due_s(double now_s) const;
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
  // Until then another rank makes progress, or a node before this one is asking.
  double not_before_s_ = 0;
  // Set once this rank has spoken: the job ends then.
  std::optional<double> end_s_;
};

}  // namespace shardmark
