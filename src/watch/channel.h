// How watchdogs of different nodes talk: a few bytes now and then, lost where the receiver does not answer.
#pragma once

#include <optional>
#include <string>

namespace shardmark {

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

}  // namespace shardmark
