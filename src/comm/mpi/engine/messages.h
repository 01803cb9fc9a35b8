// The messages that the engine sends: MPI in the program (comm/mpi/wire.h), threads of one process in tests.
#pragma once

#include <cstdint>
#include <memory>

namespace shardmark {

// A set of messages that are in flight together. Two messages with the same sender, receiver and tag arrive
// in the order in which they were posted.
class Messages {
 public:
  virtual ~Messages() = default;
  // Start a message without waiting. The memory belongs to the message until it is complete.
  virtual void send(const void* data, int64_t bytes, int peer, int tag) = 0;
  virtual void receive(void* data, int64_t bytes, int peer, int tag) = 0;
  // Makes progress. Returns true when all messages are complete; then new ones may be posted.
  virtual bool complete() = 0;
  // Cancels the messages in flight. Returns false if that is not possible; then their memory and this object
  // must live until the process ends.
  virtual bool cancel() = 0;
};

class Wire {
 public:
  virtual ~Wire() = default;
  virtual std::unique_ptr<Messages> messages() = 0;         // used by one thread at a time
  virtual std::shared_ptr<char> memory(int64_t bytes) = 0;  // scratch memory for chunks
};

}  // namespace shardmark
