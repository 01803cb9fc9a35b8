// Operations that run in stages. Each stage is an operation of another communicator.
//
// Note [Order of stages]: a communicator must see its operations in the same order on every rank, but when a
// stage completes is a matter of time and differs between ranks. So stage s of every operation runs on a
// communicator of its own (one communicator per stage, or one per stage and rank), and it starts only after
// stage s of all earlier operations has started.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace shardmark {

using Stage = std::function<Work()>;  // starts the stage

// One operation in its stages. On the CPU a stage starts when the one before it is complete. On a GPU all
// stages are enqueued at once on a stream that belongs to the operation; the communicators order their own
// streams after it.
struct Staged {
  std::vector<Stage> stages;
  std::vector<at::Tensor> tensors;  // kept until the operation was waited for
  Work beside;                      // runs at the same time; may be empty
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
  // `all` holds the communicators that operations run on, the flat one first. While a rank waits for any
  // operation, all of them make progress, because other ranks may be waiting for their operations, and
  // because each communicator notices its own failures.
  explicit StageQueue(std::vector<Communicator*> all) : all_(std::move(all)) {}

  std::unique_ptr<Operation> start(Staged staged);
  // Wraps an operation of the flat communicator, so that waiting for it also moves the stages of other
  // operations.
  std::unique_ptr<Operation> pass(Work work);
  void progress();  // moves all stages and communicators
  void wait_until(const std::function<bool()>& complete);

 private:
  std::vector<Communicator*> all_;
  std::deque<std::shared_ptr<Staged>> under_way_;  // in the order in which they started
};

}  // namespace shardmark
