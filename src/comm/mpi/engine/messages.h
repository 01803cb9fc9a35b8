// What carries the engine's messages: MPI in the program (comm/mpi/wire.h), threads of one process in
// tests.
#pragma once

#include <cstdint>
#include <memory>

namespace shardmark {

// Messages that are on their way together. Two with the same sender, receiver and tag arrive in the order in
// which they were posted.
class Messages {
 public:
  virtual ~Messages() = default;
  // Start; never wait. The memory belongs to the message until it is complete.
  virtual void send(const void* data, int64_t bytes, int peer, int tag) = 0;
  virtual void receive(void* data, int64_t bytes, int peer, int tag) = 0;
  // Moves them on; true when none is left, and then new ones may be posted.
  virtual bool complete() = 0;
  // Takes back what is still on its way. False where that cannot be done: then the memory and this object
  // have to stay to the end of the process.
  virtual bool cancel() = 0;
};

class Wire {
 public:
  virtual ~Wire() = default;
  virtual std::unique_ptr<Messages> messages() = 0;         // used by one thread at a time
  virtual std::shared_ptr<char> memory(int64_t bytes) = 0;  // for what arrives and is worked on
};

}  // namespace shardmark
