// A network between ranks that are threads of one process. Messages are delayed, overtake each other, and
// fail on request.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "comm/pt2pt/engine/engine.h"

namespace shardmark {

class Network {
 public:
  explicit Network(uint32_t seed) : random_(seed) {}

  std::unique_ptr<Wire> wire(int rank);
  void fail(int rank);  // from now on, every call of this rank throws SystemError
  int64_t memory_bytes() const { return memory_bytes_; }  // allocated and not freed yet

 private:
  friend class NetworkMessages;
  friend class NetworkWire;
  // A message, of which one side may still be missing. A short message may be copied when it is sent; then
  // the sender is finished with it.
  struct Message {
    int from, to, tag;
    const char* source = nullptr;
    char* target = nullptr;
    int64_t bytes = 0;
    class NetworkMessages* sender = nullptr;
    class NetworkMessages* receiver = nullptr;
    std::vector<char> copy;
    int delay = 0;  // number of polls by any rank until it arrives, once both sides are there
  };
  Message& match(int from, int to, int tag, int64_t bytes, bool sends);
  void deliver_some();
  void check(int rank) const;

  std::mutex mutex_;  // protects everything below
  std::mt19937 random_;
  std::list<Message> messages_;
  std::set<int> failed_;
  std::atomic<int64_t> memory_bytes_ = 0;
};

// Calls body(rank) in one thread per rank and joins them. An exception in a thread fails the test.
void on_ranks(int num_ranks, const std::function<void(int)>& body);

}  // namespace shardmark
