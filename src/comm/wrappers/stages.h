// Operations that run in stages, each stage an operation of another communicator.
//
// Note [Order of stages]: a communicator must see its operations in the same order on every rank, but when a
// stage ends is a matter of time. So stage s of every operation has a communicator (or one per rank) of its
// own, and starts only after stage s of all operations before it has started.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace shardmark {

using Stage = std::function<Work()>;  // starts it

// One operation in its stages. On the CPU a stage starts when the one before is complete; on a GPU all are
// enqueued at once, on a stream of the operation's own, which the communicators order their own streams by.
struct Staged {
  std::vector<Stage> stages;
  std::vector<at::Tensor> tensors;  // kept until waited for
  Work beside;                      // something that runs beside the stages; may be empty
  size_t num_started = 0;
  Work current = {};
  bool done = false;
  struct OwnStream {
    std::shared_ptr<const c10::Stream> stream;
    c10::Event end;
  };
  std::unique_ptr<OwnStream> own = nullptr;  // on a GPU
};

class StageQueue {
 public:
  // all: that operations run on, the flat one first. All move while anybody waits, because other ranks may be
  // waiting for their operations, and each notices failures of its own.
  explicit StageQueue(std::vector<Communicator*> all) : all_(std::move(all)) {}

  std::unique_ptr<Operation> start(Staged staged);
  // An operation of flat, which while it is waited for moves the stages of others.
  std::unique_ptr<Operation> pass(Work work);
  void progress();  // moves all stages and communicators
  void wait_until(const std::function<bool()>& complete);

 private:
  std::vector<Communicator*> all_;
  std::deque<std::shared_ptr<Staged>> under_way_;  // in the order of their start
};

}  // namespace shardmark
