// Messages between threads. They are matched in the order in which they were posted and delivered in any
// order.
#include "network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/error.h"

namespace shardmark {
namespace {

constexpr int kMaxDelay = 6;

}  // namespace

class NetworkMessages final : public Messages {
 public:
  NetworkMessages(Network& network, int rank) : network_(network), rank_(rank) {}
  ~NetworkMessages() override {
    const std::lock_guard lock(network_.mutex_);
    EXPECT_EQ(num_pending_, 0) << "messages on their way have lost their memory";
  }

  void send(const void* data, int64_t bytes, int peer, int tag) override {
    const std::lock_guard lock(network_.mutex_);
    network_.check(rank_);
    Network::Message& message = network_.match(rank_, peer, tag, bytes, /*sends=*/true);
    message.source = static_cast<const char*>(data);
    if (network_.random_() % 2 == 0) {
      message.copy.assign(message.source, message.source + bytes);
      message.source = message.copy.data();
      return;
    }
    message.sender = this;
    ++num_pending_;
  }
  void receive(void* data, int64_t bytes, int peer, int tag) override {
    const std::lock_guard lock(network_.mutex_);
    network_.check(rank_);
    Network::Message& message = network_.match(peer, rank_, tag, bytes, /*sends=*/false);
    message.target = static_cast<char*>(data);
    message.receiver = this;
    ++num_pending_;
  }
  bool complete() override {
    {
      const std::lock_guard lock(network_.mutex_);
      network_.check(rank_);
      network_.deliver_some();
      if (num_pending_ == 0) return true;
    }
    std::this_thread::yield();  // ranks share few cores here
    return false;
  }
  bool cancel() override {
    const std::lock_guard lock(network_.mutex_);
    network_.messages_.remove_if([this](const Network::Message& message) {
      return message.sender == this || message.receiver == this;
    });
    num_pending_ = 0;
    return true;
  }

 private:
  friend class Network;
  Network& network_;
  int rank_;
  int num_pending_ = 0;  // protected by the network's mutex
};

class NetworkWire final : public Wire {
 public:
  NetworkWire(Network& network, int rank) : network_(network), rank_(rank) {}
  std::unique_ptr<Messages> messages() override { return std::make_unique<NetworkMessages>(network_, rank_); }
  std::shared_ptr<char> memory(int64_t bytes) override {
    network_.memory_bytes_ += bytes;
    return {new char[static_cast<size_t>(bytes)], [this, bytes](const char* data) {
              delete[] data;
              network_.memory_bytes_ -= bytes;
            }};
  }

 private:
  Network& network_;
  int rank_;
};

std::unique_ptr<Wire> Network::wire(int rank) { return std::make_unique<NetworkWire>(*this, rank); }

void Network::fail(int rank) {
  const std::lock_guard lock(mutex_);
  failed_.insert(rank);
}

void Network::check(int rank) const {
  if (failed_.contains(rank)) throw SystemError("the link of rank " + std::to_string(rank) + " is down");
}

// Returns the first message whose other side waits for this one, or a new message.
Network::Message& Network::match(int from, int to, int tag, int64_t bytes, bool sends) {
  const auto waits = [&](const Message& message) {
    return message.from == from && message.to == to && message.tag == tag &&
           (sends ? message.source : message.target) == nullptr;
  };
  const auto found = std::find_if(messages_.begin(), messages_.end(), waits);
  if (found == messages_.end()) {
    Message& message = messages_.emplace_back();
    message.from = from;
    message.to = to;
    message.tag = tag;
    message.bytes = bytes;
    return message;
  }
  EXPECT_EQ(found->bytes, bytes) << "from rank " << from << " to rank " << to << ", tag " << tag;
  found->delay = static_cast<int>(random_() % kMaxDelay);
  return *found;
}

void Network::deliver_some() {
  for (auto message = messages_.begin(); message != messages_.end();) {
    if (message->source == nullptr || message->target == nullptr || --message->delay > 0) {
      ++message;
      continue;
    }
    std::memcpy(message->target, message->source, static_cast<size_t>(message->bytes));
    if (message->sender != nullptr) --message->sender->num_pending_;
    --message->receiver->num_pending_;
    message = messages_.erase(message);
  }
}

void on_ranks(int num_ranks, const std::function<void(int)>& body) {
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < num_ranks; ++rank) {
    ranks.emplace_back([&body, rank] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
}

}  // namespace shardmark
